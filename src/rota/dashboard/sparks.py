"""A minute in a few pixels: the points of a line, for SVG."""

from collections.abc import Sequence

WIDTH, HEIGHT = 96, 20


def spark(values: Sequence[float | None]) -> str:
    """Points of a polyline, as high as the largest value; empty if nothing is known or all is 0."""
    largest = max((value for value in values if value is not None), default=0.0)
    if largest <= 0 or len(values) < 2:  # noqa: PLR2004 - a line has two ends
        return ""
    step = WIDTH / (len(values) - 1)
    return " ".join(
        f"{at * step:.1f},{HEIGHT - 1 - value / largest * (HEIGHT - 2):.1f}"
        for at, value in enumerate(values)
        if value is not None
    )
