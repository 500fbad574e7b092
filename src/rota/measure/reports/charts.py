"""Charts drawn by matplotlib: lines for what changes over time, bars for what is compared.

As SVG in a page, colours of text, grid and background are left to the page (`var(--…)`), so that a
chart fits a light page and a dark one. As PNG, a chart has title and legend of its own.
"""

import io
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from rota.errors import ConfigError
from rota.measure.reports.report import Bars, Lines, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = (7.6, 3.3)
"""Inches."""

COLOURS = ("#2f7fc1", "#d98200", "#10957a", "#cf5a1b", "#b765a0", "#4ba3d9", "#85858c")
"""Of lines and bars: Okabe and Ito's, which the colour-blind can tell apart, without their yellow
and black, and somewhat shifted, so that they stand out on white and on black."""

Dashes: TypeAlias = Literal["-", "--", ":", "-."]
DASHES: tuple[Dashes, ...] = ("-", "--", ":", "-.")

STEPS = ("#2f7fc1", "#7db4dd", "#e8cf7a", "#f0b45c", "#d97a12", "#a23a0a")
"""Of the parts of stacked bars, whose order means something: from cold to hot."""

INK = {"#010101": "var(--ink)", "#020202": "var(--quiet)", "#030303": "var(--grid)"}
"""Placeholders for matplotlib, and the page's colours, which replace them."""

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
"""Points, or bars, that a reader can tell apart."""

WIDE = 80
"""Characters of labels that fit side by side."""

FAR_APART = 50
"""Sizes that differ by so much need a logarithmic scale to be seen."""

MANY = 4
"""Lines at most that a legend explains; more have their names at their ends."""

LINE = 11.5
"""Points that a name at the end of a line needs in height."""

TITLE = 90
"""Characters in a line of a picture's title."""

PAPER = {"#010101": "#1b1f24", "#020202": "#59636e", "#030303": "#d5dae0"}
"""The same where there is no page: the colours of a light one."""

DOTS = 150
"""Per inch of a PNG."""


def check(extra: str = "bench") -> None:
    """Fail now, and not after an hour, where charts cannot be drawn; `extra` installs what they need.

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
        figure.suptitle(textwrap.fill(chart.title, TITLE), fontsize=11)
        if names := legend(chart):
            from matplotlib.lines import Line2D

            longest = max(len(key.name) for key in names)
            columns = max(1, min(4, len(names), TITLE // (longest + 8)))
            width = 7.0 if isinstance(chart, Bars) else 1.8
            keys = [
                Line2D([], [], color=key.colour, linestyle=key.dashes, linewidth=width)
                for key in names
            ]
            figure.legend(
                keys, [key.name for key in names], loc="outside lower center",
                ncols=columns, frameon=False,
            )  # fmt: skip
            wide, high = figure.get_size_inches()
            figure.set_size_inches(wide, high + 0.5 + 0.2 * ((len(names) - 1) // columns))
        data = io.BytesIO()
        figure.savefig(data, format="png", dpi=DOTS, metadata={"Software": None})
    return data.getvalue()


def _figure(chart: Lines | Bars, series: Mapping[str, Series]) -> "Figure":
    from matplotlib.figure import Figure

    width, height = SIZE
    if isinstance(chart, Bars) and _lying(chart):
        rows = len(_labels(chart)) if chart.stacked else sum(map(len, chart.groups.values()))
        height = 1 + 0.32 * rows
    elif isinstance(chart, Lines) and _named_at_ends(chart):
        height = max(height, 1 + len(chart.series) * LINE / 72)
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
    dashes: Dashes


def legend(chart: Lines | Bars) -> list[Key]:
    """What the colours of a chart mean; nothing where there is only one colour.

    The page shows the legend, because there it can take as many lines as it needs.
    """
    if isinstance(chart, Lines):
        names = (
            [] if _named_at_ends(chart) else [chart.names.get(name, name) for name in chart.series]
        )
        return _keys(names) if len(names) > 1 else []
    # A single part is named, too: others may just have been empty.
    return _parts(chart) if len(chart.groups) > 1 or chart.stacked else []


def _named_at_ends(chart: Lines) -> bool:
    return len(chart.series) > MANY


def _lines(axes: "Axes", chart: Lines, series: Mapping[str, Series]) -> None:
    keys = _keys(chart.series)
    for key in keys:
        line = series[key.name]
        y = [float("nan") if value is None else value for value in line.y]
        marker = "o" if len(line.x) <= FEW else ""
        # Not clipped: a line at zero would lose its lower half.
        axes.plot(
            line.x, y, clip_on=False, color=key.colour, linestyle=key.dashes, linewidth=1.8,
            marker=marker, markersize=4,
        )  # fmt: skip
    axes.set_xlabel(chart.x)
    axes.set_ylabel(chart.y)
    at = [x for name in chart.series for x in series[name].x if x > 0]
    if at and chart.x == "jobs" and (chart.spread or max(at) / min(at) >= FAR_APART):
        axes.set_xscale("log")
        axes.set_yscale("log")
    else:
        _scale(axes, [series[name] for name in chart.series], spread=chart.spread)
        axes.margins(x=0.02)
        if len(at := sorted(set(at))) <= FEW and all(x == round(x) for x in at):
            axes.set_xticks(at)
    axes.xaxis.set_major_formatter("{x:,.10g}")
    axes.yaxis.set_major_formatter("{x:,.10g}")
    if _named_at_ends(chart):
        _names_at_ends(axes, chart, keys, series)


def _scale(axes: "Axes", drawn: Sequence[Series], *, spread: bool) -> None:
    """The y axis: from zero; or, where lines lie far above others, logarithmic."""
    highest = [max((y for y in line.y if y is not None), default=0.0) for line in drawn]
    above = [y for y in highest if y > 0]
    if not (spread and above and max(above) / min(above) >= FAR_APART):
        axes.set_ylim(0, max(above, default=0.0) * 1.08 or 1)
        return
    values = [y for line in drawn for y in line.y if y is not None]
    least = min(y for y in values if y > 0)
    if min(values) > 0:
        axes.set_yscale("log")
        axes.set_ylim(least / 1.3, max(above) * 1.5)
    else:
        # Zero stands below the smallest power of ten.
        axes.set_yscale("symlog", linthresh=10 ** math.floor(math.log10(least)), linscale=0.5)
        axes.set_ylim(0, max(above) * 1.5)


def _names_at_ends(
    axes: "Axes", chart: Lines, keys: Sequence[Key], series: Mapping[str, Series]
) -> None:
    """Write each line's name where the line ends, moved up or down where names would meet."""
    ends = []
    for key in keys:
        line = series[key.name]
        points = [(x, y) for x, y in zip(line.x, line.y, strict=True) if y is not None]
        if points:
            end = axes.transAxes.inverted().transform(axes.transData.transform(points[-1]))
            ends.append((float(end[1]), points[-1], key))
    ends.sort(key=lambda end: end[0])
    inches = axes.get_figure(root=True).get_size_inches()[1] - 0.6  # type: ignore[union-attr]
    for height, (_, point, key) in zip(
        _apart([end[0] for end in ends], LINE / 72 / inches), ends, strict=True
    ):
        axes.annotate(
            chart.names.get(key.name, key.name), point, (1.03, height),
            textcoords="axes fraction", va="center", fontsize=8, color=key.colour,
            arrowprops={"arrowstyle": "-", "color": key.colour, "linewidth": 0.6, "alpha": 0.6,
                        "linestyle": key.dashes, "relpos": (0, 0.5), "shrinkA": 0, "shrinkB": 2},
        )  # fmt: skip


def _apart(heights: Sequence[float], gap: float) -> list[float]:
    """Heights in ascending order, moved as little as need be to lie at least a gap apart.

    Those that would meet are put around their middle; between 0 and 1 as far as there is room.
    """
    groups: list[list[float]] = []
    for height in heights:
        groups.append([height])
        while len(groups) > 1 and _bottom(groups[-2], gap) + gap * len(groups[-2]) > _bottom(
            groups[-1], gap
        ):
            last = groups.pop()
            groups[-1] += last
    return [_bottom(group, gap) + gap * number for group in groups for number in range(len(group))]


def _bottom(group: Sequence[float], gap: float) -> float:
    """The height of a group's lowest, so that the whole group is within the chart."""
    size = gap * (len(group) - 1)
    return max(0.0, min(1.0 - size, sum(group) / len(group) - size / 2))


def _bars(axes: "Axes", chart: Bars) -> None:
    labels = _labels(chart)
    lying = _lying(chart)
    beside = 1 if chart.stacked else max(1, len(chart.groups))
    width = 0.8 / beside
    below = [0.0] * len(labels)
    for number, (group, key) in enumerate(zip(chart.groups.values(), _parts(chart), strict=True)):
        shift = (0 if chart.stacked else number) - (beside - 1) / 2
        middles = [n + shift * width for n in range(len(labels))]
        values = [group.get(label, 0.0) for label in labels]
        if lying:
            drawn = axes.barh(middles, values, width * 0.92, left=below, color=key.colour)
        else:
            drawn = axes.bar(middles, values, width * 0.92, bottom=below, color=key.colour)
        if chart.stacked:
            below = [start + value for start, value in zip(below, values, strict=True)]
        elif lying or len(labels) * len(chart.groups) <= FEW:
            shown = [_short(group[label]) if label in group else "" for label in labels]
            axes.bar_label(drawn, shown, padding=3, fontsize=8.5)
    # Where all bars end at the same value, such as 100 percent, the ends need no label.
    if chart.stacked and len({*map(_short, below)}) > 1:
        axes.bar_label(drawn, list(map(_short, below)), padding=3, fontsize=8.5)
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
    # Three digits say enough; larger numbers are whole anyway.
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004


def _parts(chart: Bars) -> list[Key]:
    """The groups; parts of a whole go from cold to hot."""
    if not chart.stacked:
        return _keys(list(chart.groups))
    last = max(1, len(chart.groups) - 1)
    return [
        Key(name, STEPS[min(n * (len(STEPS) - 1) // last, len(STEPS) - 1)], "-")
        for n, name in enumerate(chart.groups)
    ]


def _keys(names: Sequence[str]) -> list[Key]:
    """Colours in their order; where the colours begin again, lines are dashed."""
    count = len(COLOURS)
    return [
        Key(name, COLOURS[n % count], DASHES[n // count % len(DASHES)])
        for n, name in enumerate(names)
    ]


def _inline(svg: str) -> str:
    """The element alone, in the page's colours, without the ids that all charts have in common."""
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg[svg.index("<svg") :])
    for placeholder, colour in INK.items():
        svg = svg.replace(placeholder, colour)
    return svg
