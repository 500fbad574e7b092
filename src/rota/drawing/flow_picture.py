"""The picture of a flow: a box per node, or per group if there are many; arrows from left to right.

A box has a node's name, its state as word and colour, and how many of its jobs have ended. Arrows
for `on="failed"` are dashed, those for `on="finished"` dotted. What other arrows imply is not
drawn.
"""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import NamedTuple

from rota.drawing.layers import Layout, Point, layout
from rota.model.flow import Condition, FlowGraph, NodeRecord, NodeState
from rota.model.flow_groups import Totals, groups_of, members, totals
from rota.model.graph import Arrow, forward, implied

MOST = 200
"""Boxes of a picture. If a flow has more nodes, each group is one box; then the first so many."""

READ = 1000
"""Nodes that are read for a picture."""

CHARACTERS = 26
"""Of a name in a box; a tooltip has all of it."""

LETTER, PADDING, NARROWEST = 7.0, 14, 104
"""Pixels: of a letter, on both sides of a name, and of a box."""

HEIGHT, GAP, BETWEEN, MARGIN, STACK = 46, 16, 64, 14, 4
"""Pixels: of a box, between boxes, between layers, around the picture, of a map's second sheet."""

STYLE = """
.flow{font-family:system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;font-size:13px}
.flow .paper{fill:#fbfaf8}.flow .box{fill:#fff;stroke:#b9b4ab;stroke-width:1.2}.flow text{fill:#1d2326}.flow .said{font-size:11px;fill:#5a6367}
.flow .way{fill:none;stroke:#8a9296;stroke-width:1.4}.flow .tip{fill:#8a9296}.flow .side,.flow .whole{fill:#b9b4ab}
.flow .running .box{stroke:#0b5fa5}.flow .running .side{fill:#0b5fa5}.flow .completed .side,.flow .done{fill:#2f6b3a}
.flow .failed .box{stroke:#b3261e}.flow .failed .side,.flow .bad{fill:#b3261e}.flow .whole{opacity:.45}
.flow .cancelled .box,.flow .skipped .box{stroke-dasharray:4 3}
@media (prefers-color-scheme:dark){
.flow .paper{fill:#14181a}.flow .box{fill:#1b2023;stroke:#4a5459}.flow text{fill:#e6e9ea}.flow .said{fill:#a9b2b6}
.flow .way{stroke:#7d878c}.flow .tip{fill:#7d878c}.flow .side,.flow .whole{fill:#4a5459}
.flow .running .box{stroke:#7db8f0}.flow .running .side{fill:#7db8f0}.flow .completed .side,.flow .done{fill:#86c995}
.flow .failed .box{stroke:#ff8a80}.flow .failed .side,.flow .bad{fill:#ff8a80}
}"""
"""For a picture that stands alone; a page has rules of its own for these classes."""

Link = Callable[[NodeRecord], str]
"""Where the box of a node leads to."""


class Box(NamedTuple):
    """A box: what it says, and a bar of how many jobs have ended."""

    name: str
    state: NodeState
    said: str
    counted: NodeRecord | Totals
    many: bool
    node: NodeRecord | None


class Drawing(NamedTuple):
    """What is drawn. `note`: what is not."""

    boxes: Sequence[Box]
    arrows: Mapping[Arrow, Condition]
    note: str


def picture(graph: FlowGraph, link: Link | None = None, *, alone: bool = True) -> str:
    """A flow as SVG.

    Args:
        graph: Its nodes, and what they wait for.
        link: Where the box of a node leads to; `None`: nowhere.
        alone: With its own colours and background, for a file; else those of the page around it
            count.
    """
    drawing = drawn(graph)
    arrows = list(drawing.arrows)
    places = layout(len(drawing.boxes), arrows)
    longest = max((len(_brief(box.name)) for box in drawing.boxes), default=0)
    said = max((len(box.said) for box in drawing.boxes), default=0)
    letters = max(longest * LETTER, said * LETTER * 0.86)
    canvas = _Canvas(places, max(NARROWEST, round(letters + 2 * PADDING)))
    note = drawing.note if alone else ""
    height = canvas.height + (20 if note else 0)
    about = f"Flow {graph.flow.id}: {graph.flow.name}"
    size = f'viewBox="0 0 {canvas.width} {height}" width="{canvas.width}" height="{height}"'
    named = f'role="group" aria-label="{_text(about)}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" class="flow" {size} {named}>']
    if alone:
        parts += [f"<title>{_text(about)}</title>", f"<style>{STYLE}\n</style>"]
        parts.append(f'<rect class="paper" width="{canvas.width}" height="{height}"/>')
    parts += [
        canvas.way(way, drawing.arrows[arrow])
        for arrow, way in zip(arrows, places.ways, strict=True)
    ]
    for box, point in zip(drawing.boxes, places.points, strict=True):
        target = link(box.node) if link is not None and box.node is not None else ""
        parts.append(canvas.box(box, point, target))
    if note:
        parts.append(f'<text class="said" x="{MARGIN}" y="{height - 8}">{_text(note)}</text>')
    parts.append("</svg>")
    return "\n".join(parts)


def drawn(graph: FlowGraph) -> Drawing:
    """What is drawn of a flow: its nodes, or if many, its outermost groups; at most `MOST`."""
    nodes = graph.nodes
    folded = graph.more or len(nodes) > MOST
    of_groups = members(nodes)
    boxes: dict[str, Box] = {}
    held: dict[int, str] = {}
    for node in nodes:
        groups = groups_of(node.name) if folded else []
        name = groups[0] + "/" if groups else node.name
        held[node.id] = name
        if name not in boxes:
            boxes[name] = _of_group(name, of_groups[groups[0]]) if groups else _of_node(node)
    first = list(boxes)[:MOST]
    places = {name: place for place, name in enumerate(first)}
    arrows: dict[Arrow, Condition] = {}
    for edge in graph.edges:
        start, to = places.get(held.get(edge.after, "")), places.get(held.get(edge.node, ""))
        if start is not None and to is not None and start != to:
            arrows.setdefault((start, to), edge.condition)
    straight = forward(len(first), list(arrows))
    for arrow in implied(len(first), straight):
        # That something runs after a failure is not implied.
        if arrows[arrow] is not Condition.FAILED:
            del arrows[arrow]
    notes = []
    if folded and len(boxes) < len(nodes):
        notes.append("groups are drawn as one box each")
    if len(boxes) > MOST:
        notes.append(f"only the first {MOST:,} boxes are drawn")
    elif graph.more:
        notes.append(f"only the first {len(nodes):,} nodes are drawn")
    note = f"This flow has many nodes: {', and '.join(notes)}." if notes else ""
    return Drawing([boxes[name] for name in first], arrows, note)


def _of_node(node: NodeRecord) -> Box:
    said = node.state.value
    if node.many and node.state is NodeState.FAILED:
        said += f" · {node.failed:,} of {node.expects:,}"
    elif node.many:
        said += f" · {node.expects - node.left:,} of {node.expects:,}"
        said += f", {node.failed:,} failed" if node.failed else ""
    return Box(node.name, node.state, said, node, node.many, node)


def _of_group(name: str, nodes: Sequence[NodeRecord]) -> Box:
    whole = totals(nodes)
    said = f"{whole.state} · {whole.ended:,} of {whole.nodes:,} nodes"
    return Box(name, whole.state, said, whole, many=True, node=None)


class _Canvas:
    """From layers and rows to pixels."""

    def __init__(self, places: Layout, box_width: int) -> None:
        self._box = box_width
        self.width = round(
            2 * MARGIN + places.layers * box_width + max(0, places.layers - 1) * BETWEEN + STACK
        )
        self.height = round(2 * MARGIN + max(1, places.rows) * (HEIGHT + GAP) - GAP + STACK)

    def _left(self, point: Point) -> float:
        return MARGIN + point.layer * (self._box + BETWEEN)

    def _top(self, point: Point) -> float:
        return MARGIN + STACK + point.row * (HEIGHT + GAP)

    def way(self, points: Sequence[Point], condition: Condition) -> str:
        """An arrow: cubic curves from point to point, level through bends."""
        start, *bends, end = points
        x, y = self._left(start) + self._box, self._top(start) + HEIGHT / 2
        path = [f"M{_n(x)} {_n(y)}"]
        for point in (*bends, end):
            to_x, to_y = self._left(point), self._top(point) + HEIGHT / 2
            if point is end:
                to_x -= 7
            # An arrow that leads back goes round.
            reach = max(24.0, (to_x - x) / 2) if to_x > x else 90.0
            path.append(
                f"C{_n(x + reach)} {_n(y)} {_n(to_x - reach)} {_n(to_y)} {_n(to_x)} {_n(to_y)}"
            )
            x, y = to_x, to_y
            if point is not end:
                x += self._box
                path.append(f"H{_n(x)}")
        dash = {
            Condition.FAILED: ' stroke-dasharray="7 4"',
            Condition.FINISHED: ' stroke-dasharray="1.5 4"',
        }
        tip = f"M{_n(x + 7)} {_n(y)}l-8 -4v8z"
        return (
            f'<path class="way on-{condition}" d="{"".join(path)}"{dash.get(condition, "")}/>'
            f'<path class="tip" d="{tip}"/>'
        )

    def box(self, box: Box, point: Point, link: str) -> str:
        """A box with its words, and its bar if it has several jobs."""
        x, y, width = self._left(point), self._top(point), self._box
        shape = f'width="{width}" height="{HEIGHT}" rx="7"'
        parts = []
        if box.many:
            parts.append(f'<rect class="box" x="{_n(x + STACK)}" y="{_n(y - STACK)}" {shape}/>')
        parts += [
            f'<rect class="box" x="{_n(x)}" y="{_n(y)}" {shape}/>',
            f'<rect class="side" x="{_n(x)}" y="{_n(y + 7)}" width="4" height="{HEIGHT - 14}" rx="2"/>',
            f'<text x="{_n(x + PADDING)}" y="{_n(y + 19)}">{_text(_brief(box.name))}</text>',
            f'<text class="said" x="{_n(x + PADDING)}" y="{_n(y + 34)}">{_text(box.said)}</text>',
        ]
        if box.many and box.counted.expects:
            parts.append(self._bar(box.counted, x + PADDING, y + HEIGHT - 6))
        reason = f": {box.node.reason}" if box.node is not None and box.node.reason else ""
        title = f"<title>{_text(f'{box.name} is {box.said}{reason}')}</title>"
        drawn = f'<g class="node {box.state}">{title}{"".join(parts)}</g>'
        return f'<a href="{_text(link)}">{drawn}</a>' if link else drawn

    def _bar(self, counted: NodeRecord | Totals, x: float, y: float) -> str:
        """How many jobs are completed, and how many have ended otherwise."""
        whole = self._box - 2 * PADDING
        done = whole * counted.completed / counted.expects
        bad = whole * counted.failed / counted.expects
        bar = f'<rect class="whole" x="{_n(x)}" y="{_n(y)}" width="{_n(whole)}" height="2.5"/>'
        if done:
            bar += f'<rect class="done" x="{_n(x)}" y="{_n(y)}" width="{_n(done)}" height="2.5"/>'
        if bad:
            bad = max(bad, 2.0)
            bar += f'<rect class="bad" x="{_n(min(x + done, x + whole - bad))}" y="{_n(y)}" width="{_n(bad)}" height="2.5"/>'
        return bar


def _brief(name: str) -> str:
    """A long name without its middle: groups are at its beginning, numbers at its end."""
    if len(name) <= CHARACTERS:
        return name
    half = CHARACTERS // 2
    return f"{name[: half - 1]}…{name[-half:]}"


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _text(text: str) -> str:
    """For XML, which has no place for control characters."""
    return escape("".join(letter if letter.isprintable() else "\ufffd" for letter in text))
