"""Charts drawn by matplotlib: lines for what changes over time, bars for what is compared.

As SVG in a page, colours of text, grid and background are left to the page (`var(--…)`), so that a
chart fits a light page and a dark one. As PNG, a chart has title and legend of its own.
"""

import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rota.errors import ConfigError
from rota.reports.report import Bars, Lines, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (7.6, 3.3)
"""Inches."""

COLOURS = ("#3b7dd8", "#e07b39", "#3a9d6e", "#a463c9", "#c94f6d", "#8a8f3c", "#4aa3a8", "#9a7b5f")
"""Of lines and bars: in between, so that they stand out on white and on black."""

DASHES: tuple[Literal["-", "--", ":"], ...] = ("-", "--", ":")

INK = {"#010101": "var(--ink)", "#020202": "var(--quiet)", "#030303": "var(--grid)"}
"""What matplotlib is told, and what the page decides."""

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9.5,
    "text.color": "#010101",
    "axes.labelcolor": "#020202",
    "axes.edgecolor": "#030303",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#030303",
    "grid.linewidth": 0.8,
    "xtick.color": "#020202",
    "ytick.color": "#020202",
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}

FEW = 12
"""Points, or bars, that one can tell apart."""

WIDE = 80
"""Characters of labels that fit side by side."""

FAR_APART = 50
"""Sizes that differ by so much need a logarithmic scale to be seen."""


PAPER = {"#010101": "#1b1f24", "#020202": "#59636e", "#030303": "#d5dae0"}
"""The same where there is no page: the colours of a light one."""

DOTS = 150
"""Per inch of a PNG."""


def check(extra: str = "bench") -> None:
    """Say now, and not after an hour, that charts cannot be drawn; `extra` is who needs them.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ImportError as error:
        message = (
            "the charts are drawn by matplotlib, which is not installed: "
            f"pip install 'rota[{extra}]'"
        )
        raise ConfigError(message) from error
    del mpl


def draw(chart: Lines | Bars, series: Mapping[str, Series], number: int) -> str:
    """One chart as an SVG element; `number` keeps its inner names apart from other charts'."""
    import matplotlib as mpl

    with mpl.rc_context({**STYLE, "svg.hashsalt": f"chart {number}"}):
        figure = _figure(chart, series)
        text = io.StringIO()
        nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
        figure.savefig(text, format="svg", metadata=nothing)
    return _inline(text.getvalue())


def picture(chart: Lines | Bars, series: Mapping[str, Series]) -> bytes:
    """One chart as a PNG that can be read without a page."""
    import matplotlib as mpl

    style = {key: PAPER.get(value, value) if isinstance(value, str) else value
             for key, value in STYLE.items()}  # fmt: skip
    with mpl.rc_context({**style, "savefig.facecolor": "#ffffff"}):
        figure = _figure(chart, series)
        figure.suptitle(chart.title, fontsize=11)
        if names := legend(chart):
            from matplotlib.lines import Line2D

            keys = [Line2D([], [], color=one.colour, linestyle=one.dashes) for one in names]
            figure.legend(
                keys, [one.name for one in names], loc="outside lower center",
                ncols=min(4, len(names)), frameon=False,
            )  # fmt: skip
            width, height = figure.get_size_inches()
            figure.set_size_inches(width, height + 0.5 + 0.2 * (len(names) // 4))
        data = io.BytesIO()
        figure.savefig(data, format="png", dpi=DOTS, metadata={"Software": None})
    return data.getvalue()


def _figure(chart: Lines | Bars, series: Mapping[str, Series]) -> "Figure":
    from matplotlib.figure import Figure

    width, height = SIZE
    if isinstance(chart, Bars) and _lying(chart):
        height = 1 + 0.32 * sum(map(len, chart.groups.values()))
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    match chart:
        case Lines():
            _lines(axes, chart, series)
        case Bars():
            _bars(axes, chart)
    return figure


class Key(NamedTuple):
    """What a line or a bar looks like."""

    name: str
    colour: str
    dashes: Literal["-", "--", ":"]


def legend(chart: Lines | Bars) -> list[Key]:
    """What the colours of a chart mean; nothing where there is only one.

    The page shows it, because there it can take as many lines as it needs.
    """
    if isinstance(chart, Lines):
        names = [chart.names.get(name, name) for name in chart.series]
    else:
        names = list(chart.groups)
    return _keys(names) if len(names) > 1 else []


def _lines(axes: "Axes", chart: Lines, series: Mapping[str, Series]) -> None:
    for key in _keys(chart.series):
        one = series[key.name]
        y = [float("nan") if value is None else value for value in one.y]
        marker = "o" if len(one.x) <= FEW else ""
        # Not clipped: a line at zero would lose its lower half.
        axes.plot(
            one.x, y, clip_on=False, color=key.colour, linestyle=key.dashes, linewidth=1.8,
            marker=marker, markersize=4,
        )  # fmt: skip
    axes.set_xlabel(chart.x)
    axes.set_ylabel(chart.y)
    at = [x for name in chart.series for x in series[name].x if x > 0]
    if at and chart.x == "jobs" and max(at) / min(at) >= FAR_APART:
        axes.set_xscale("log")
        axes.set_yscale("log")
    else:
        highest = max((y for name in chart.series for y in series[name].y if y), default=0.0)
        axes.set_ylim(0, highest * 1.08 or 1)
        axes.margins(x=0.02)
        if len(at := sorted(set(at))) <= FEW and all(x == round(x) for x in at):
            axes.set_xticks(at)
    axes.xaxis.set_major_formatter("{x:,.10g}")
    axes.yaxis.set_major_formatter("{x:,.10g}")


def _bars(axes: "Axes", chart: Bars) -> None:
    labels = _labels(chart)
    lying = _lying(chart)
    width = 0.8 / max(1, len(chart.groups))
    for number, (group, key) in enumerate(
        zip(chart.groups.values(), _keys(list(chart.groups)), strict=True)
    ):
        places = [n + (number - (len(chart.groups) - 1) / 2) * width for n in range(len(labels))]
        values = [group.get(label, 0.0) for label in labels]
        draw_bars = axes.barh if lying else axes.bar
        drawn = draw_bars(places, values, width * 0.92, color=key.colour)
        if lying or len(labels) * len(chart.groups) <= FEW:
            axes.bar_label(drawn, list(map(_short, values)), padding=3, fontsize=8.5)
    if lying:
        axes.set_yticks(range(len(labels)), labels)
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(chart.y)
        axes.xaxis.set_major_formatter("{x:,.10g}")
        axes.margins(x=0.12, y=0.01)
    else:
        axes.set_xticks(range(len(labels)), labels)
        axes.set_ylabel(chart.y)
        axes.yaxis.set_major_formatter("{x:,.10g}")
        axes.margins(y=0.12)


def _labels(chart: Bars) -> list[str]:
    return list(dict.fromkeys(label for group in chart.groups.values() for label in group))


def _lying(chart: Bars) -> bool:
    """Whether the labels are too long to stand side by side."""
    labels = _labels(chart)
    return max(map(len, labels), default=0) * len(labels) > WIDE


def _short(value: float) -> str:
    # Three digits say enough, and what is larger is whole anyway.
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004


def _keys(names: Sequence[str]) -> list[Key]:
    """Colours in their order; where they begin again, lines are dashed."""
    count = len(COLOURS)
    return [
        Key(name, COLOURS[n % count], DASHES[n // count % len(DASHES)])
        for n, name in enumerate(names)
    ]


def _inline(svg: str) -> str:
    """The element alone, in the page's colours, with names that no other chart has."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<svg height="[^"]*"', '<svg role="img"', svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) (?:width="[^"]*pt")', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) (?:height="[^"]*pt")', r"\1", svg, count=1)
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg)
    svg = svg.replace("*{stroke-linejoin: round; stroke-linecap: butt}", "")
    for told, meant in INK.items():
        svg = svg.replace(told, meant)
    return svg
