"""What the drawings are made of: boxes, arrows and words at places that a drawing chooses by hand."""

from collections.abc import Sequence
from html import escape

Point = tuple[float, float]

STYLE = """
  svg { --paper: #ffffff; --ink: #1b1f24; --quiet: #59636e; --line: #818b98; --box: #f6f8fa;
        --good: #dafbe1; --good-line: #1a7f37; --bad: #ffebe9; --bad-line: #cf222e;
        --blue: #ddf4ff; --blue-line: #0969da; --warm: #fff8c5; --warm-line: #9a6700; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #0d1117; --ink: #e6edf3; --quiet: #9198a1; --line: #7d8590; --box: #161b22;
          --good: #12261e; --good-line: #3fb950; --bad: #25171c; --bad-line: #f85149;
          --blue: #121d2f; --blue-line: #58a6ff; --warm: #272115; --warm-line: #d29922; } }
  .paper { fill: var(--paper); }
  text { fill: var(--ink); font: 14px system-ui, sans-serif; }
  .strong { font-weight: 600; }
  .small { font-size: 12px; fill: var(--quiet); }
  .code { font: 13px ui-monospace, monospace; }
  .box, .plain { fill: var(--box); stroke: var(--line); }
  .good { fill: var(--good); stroke: var(--good-line); }
  .bad { fill: var(--bad); stroke: var(--bad-line); }
  .blue { fill: var(--blue); stroke: var(--blue-line); }
  .warm { fill: var(--warm); stroke: var(--warm-line); }
  .frame { fill: none; stroke: var(--line); stroke-dasharray: 4 4; }
  .wire { fill: none; stroke: var(--line); stroke-width: 1.5; }
  .wire.bad { stroke: var(--bad-line); } .wire.good { stroke: var(--good-line); } .wire.blue { stroke: var(--blue-line); }
  .dashed { stroke-dasharray: 5 4; }
  .halo { paint-order: stroke; stroke: var(--paper); stroke-width: 5px; stroke-linejoin: round; }
  #head path { fill: var(--line); }
"""


class Drawing:
    """A picture that grows: what is drawn later lies above."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._size = (width, height)
        self._title = title
        self._parts: list[str] = []

    def box(  # noqa: D417 - the place is its corner's
        self,
        at: Point,
        size: Point,
        lines: Sequence[str] = (),
        *,
        kind: str = "box",
        words: str = "strong",
        small: Sequence[str] = (),
    ) -> None:
        """A box, with lines of text in its middle.

        Args:
            lines: What it says.
            kind: What it looks like: `box`, `good`, `bad`, `blue`, `warm`, `frame`.
            words: What the lines look like: `strong`, `code`, `small`, or nothing.
            small: Lines below these, in small letters.
        """
        x, y = at
        width, height = size
        self._parts.append(
            f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="7"/>'
        )
        total = 18 * len(lines) + 15 * len(small)
        down = y + (height - total) / 2 - 4
        for line in lines:
            down += 18
            self.text((x + width / 2, down), line, kind=words, anchor="middle")
        for line in small:
            down += 15
            self.text((x + width / 2, down), line, kind="small", anchor="middle")

    def text(self, at: Point, line: str, *, kind: str = "", anchor: str = "start") -> None:
        """A line of text; `anchor` says whether its place is its start, middle or end."""
        x, y = at
        self._parts.append(
            f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(line)}</text>'
        )

    def arrow(
        self,
        *points: Point,
        says: str = "",
        at: Point | None = None,
        kind: str = "",
        anchor: str = "middle",
        bare: bool = False,
    ) -> None:
        """A line through points, with rounded corners and a head at its end unless it is `bare`.

        Args:
            points: Where it goes.
            says: Its words, with the paper around them.
            at: Where the words are; else in the middle of the first stretch.
            kind: `good`, `bad`, `blue`, `dashed`, or several of them.
            anchor: Whether `at` is the words' start, middle or end.
            bare: Whether it has no head.
        """
        head = "" if bare else ' marker-end="url(#head)"'
        self._parts.append(f'<path class="wire {kind}" d="{rounded(points)}"{head}/>')
        if says:
            (x1, y1), (x2, y2) = points[0], points[1]
            place = at or ((x1 + x2) / 2, (y1 + y2) / 2 + 4)
            self.text(place, says, kind="small halo", anchor=anchor)

    def svg(self) -> str:
        """The picture."""
        width, height = self._size
        title = escape(self._title)
        head = (
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"'
            ' markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>'
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">\n'
            f"<title>{title}</title>\n<style>{STYLE}</style>\n{head}\n"
            f'<rect class="paper" width="{width}" height="{height}" rx="8"/>\n'
            + "\n".join(self._parts)
            + "\n</svg>\n"
        )


def rounded(points: Sequence[Point], radius: float = 8) -> str:
    """A path through points whose corners are rounded.

    Stretches are horizontal or vertical, or there are no corners.
    """
    first, *rest = points
    path = f"M{first[0]:g} {first[1]:g}"
    before = first
    for number, (x, y) in enumerate(rest):
        if number + 1 < len(rest):
            then = rest[number + 1]
            path += (
                f" L{towards((x, y), before, radius)} Q{x:g} {y:g} {towards((x, y), then, radius)}"
            )
        else:
            path += f" L{x:g} {y:g}"
        before = (x, y)
    return path


def towards(corner: Point, other: Point, radius: float) -> str:
    """The point that is so far from a corner on the way to another point."""
    (x, y), (to_x, to_y) = corner, other
    far = max(abs(to_x - x) + abs(to_y - y), 1)
    part = min(radius / far, 0.5)
    return f"{x + (to_x - x) * part:g} {y + (to_y - y) * part:g}"
