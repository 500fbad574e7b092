"""What happened in the last hour, day or week in one queue or all: three charts and their table."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from rota.dashboard.message import Page
from rota.dashboard.routes import Call
from rota.errors import RotaError
from rota.model.history import HistoryPoint, step_of


class Span(NamedTuple):
    """How far back, and how long each point lasts, in minutes: so that there are at most 300."""

    title: str
    minutes: int
    step: int


SPANS = {
    "hour": Span("1 hour", 60, 1),
    "day": Span("24 hours", 1440, 5),
    "week": Span("7 days", 10_080, 60),
}

SERIES = ("appended", "completed", "discarded")
"""What is shown per minute."""


def history(call: Call) -> Page:
    """The numbers of a queue, or of all queues together."""
    queue = call.request.query.get("queue", "")
    known = shown(call, queue)
    title = f"History of {queue}" if queue else "History"
    return Page("history.html", title, _data(known), {"history": known})


def _data(known: dict[str, Any]) -> dict[str, Any]:
    return {
        "queue": known["queue"] or None,
        "step_seconds": known["step"],
        "points": known["points"],
    }


def if_known(call: Call, queue: str = "") -> dict[str, Any] | None:
    """`shown` for a part of another page, which is there without it, too."""
    try:
        return shown(call, queue)
    except RotaError:
        return None


def shown(call: Call, queue: str) -> dict[str, Any]:
    """What the charts show.

    Raises:
        ConfigError: No queue can have this name.
    """
    asked = call.request.query.get("span", "")
    name = asked if asked in SPANS else "hour"
    span = SPANS[name]
    points = call.app.admin.history(queue or None, since=span.minutes * 60, step=span.step * 60)
    grid = _grid(points, span)
    lines = {series: [_rate(point, series) for point in grid] for series in SERIES}
    lines["available"] = [None if point is None else float(point.available) for point in grid]
    # Where nothing waits, nothing is old.
    lines["oldest"] = [None if point is None else point.oldest or 0.0 for point in grid]
    return {
        "queue": queue,
        "span": name,
        "spans": [(key, each.title) for key, each in SPANS.items()],
        "step": span.step * 60,
        "points": points,
        "lines": lines,
        "tops": {
            "jobs": _top(lines[series] for series in SERIES),
            "available": _top([lines["available"]]),
            "oldest": _top([lines["oldest"]]),
        },
    }


def _grid(points: Sequence[HistoryPoint], span: Span) -> list[HistoryPoint | None]:
    """A place for each step up to now, empty where nothing is known."""
    by_step = {point.at: point for point in points}
    last = step_of(datetime.now(UTC) - timedelta(minutes=1), span.step)
    count = span.minutes // span.step
    steps = (last - timedelta(minutes=span.step * back) for back in reversed(range(count)))
    return [by_step.get(at) for at in steps]


def _rate(point: HistoryPoint | None, series: str) -> float | None:
    return None if point is None else point.per_minute(getattr(point, series))


def _top(lines: Any) -> float:
    return max((value for line in lines for value in line if value is not None), default=0.0)
