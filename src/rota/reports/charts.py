"""Charts as SVG, drawn by matplotlib: lines for what changes over time, bars for what is compared.

Colours of text, grid and background are left to the page (`var(--…)`), so that a chart fits a
light page and a dark one.
"""

import io
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rota.errors import ConfigError
from rota.reports.report import Bars, Lines, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = (7.6, 3.3)
"""Inches."""

COLOURS = ("#3b7dd8", "#e07b39", "#3a9d6e", "#a463c9", "#c94f6d", "#8a8f3c", "#4aa3a8", "#9a7b5f")
"""Of lines and bars: in between, so that they stand out on white and on black."""

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


def check() -> None:
    """Say now, and not after an hour, that charts cannot be drawn.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ImportError as error:
        message = (
            "the charts of --html are drawn by matplotlib, which is not installed: "
            "pip install 'rota[bench]'; or leave --html out"
        )
        raise ConfigError(message) from error
    del mpl


def draw(chart: Lines | Bars, series: Mapping[str, Series], number: int) -> str:
    """One chart as an SVG element; `number` keeps its inner names apart from other charts'."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({**STYLE, "svg.hashsalt": f"chart {number}"}):
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
        text = io.StringIO()
        nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
        figure.savefig(text, format="svg", metadata=nothing)
    return _inline(text.getvalue())


def legend(chart: Lines | Bars) -> list[tuple[str, str]]:
    """What the colours of a chart mean: names and colours; nothing where there is only one.

    The page shows it, because there it can take as many lines as it needs.
    """
    names = list(chart.series if isinstance(chart, Lines) else chart.groups)
    return list(zip(names, _colours(len(names)), strict=True)) if len(names) > 1 else []


def _lines(axes: "Axes", chart: Lines, series: Mapping[str, Series]) -> None:
    for name, colour in zip(chart.series, _colours(len(chart.series)), strict=True):
        one = series[name]
        y = [float("nan") if value is None else value for value in one.y]
        marker = "o" if len(one.x) <= FEW else ""
        # Not clipped: a line at zero would lose its lower half.
        axes.plot(one.x, y, clip_on=False, color=colour, linewidth=1.8, marker=marker, markersize=4)
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
    axes.xaxis.set_major_formatter("{x:,.10g}")
    axes.yaxis.set_major_formatter("{x:,.10g}")


def _bars(axes: "Axes", chart: Bars) -> None:
    labels = _labels(chart)
    lying = _lying(chart)
    width = 0.8 / max(1, len(chart.groups))
    for number, (group, colour) in enumerate(
        zip(chart.groups.values(), _colours(len(chart.groups)), strict=True)
    ):
        places = [n + (number - (len(chart.groups) - 1) / 2) * width for n in range(len(labels))]
        values = [group.get(label, 0.0) for label in labels]
        draw_bars = axes.barh if lying else axes.bar
        drawn = draw_bars(places, values, width * 0.92, color=colour)
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


def _colours(count: int) -> list[str]:
    return [COLOURS[n % len(COLOURS)] for n in range(count)]


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
