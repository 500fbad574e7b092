"""Lines over time for SVG: what a browser without JavaScript shows in place of the charts."""

from collections.abc import Sequence

WIDTH, HEIGHT = 600, 120


def path(values: Sequence[float | None], top: float) -> str:
    """The line through these values, from left edge to right; it breaks where nothing is known."""
    step = WIDTH / max(len(values) - 1, 1)
    parts = []
    drawn = False
    for at, value in enumerate(values):
        if value is not None:
            height = HEIGHT - value / top * HEIGHT if top > 0 else HEIGHT
            # A line of its own length makes a dot of a value between two gaps.
            parts.append(
                f"{'L' if drawn else 'M'}{at * step:.1f},{height:.1f}" + ("" if drawn else "h.1")
            )
        drawn = value is not None
    return "".join(parts)
