"""The queues as they are shown: their figures, their order, and which of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rota.model.states import State
from rota.top.history import History, Rates
from rota.top.snapshot import Snapshot

POINTS = 12
"""Parts of the minute that a sparkline shows: five seconds each."""


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One queue.

    Attributes:
        rates: Per second; None after a single look.
        oldest: Seconds since the next job to start was enqueued; of several priorities the
            longest. A retried or delayed job was enqueued before it had to wait.
        course: Claims per second during the last minute.
    """

    name: str
    paused: bool
    counts: Mapping[State, int]
    rates: Rates | None
    oldest: float | None
    course: tuple[float | None, ...]


def queue_rows(snapshot: Snapshot, history: History) -> list[QueueRow]:
    """All queues, by name."""
    oldest: dict[str, float] = {}
    for lane in snapshot.lanes:
        if lane.oldest is not None:
            oldest[lane.queue] = max(lane.oldest, oldest.get(lane.queue, 0.0))
    return [
        QueueRow(
            name=one.name,
            paused=one.paused,
            counts=one.counts,
            rates=history.rates(one.name),
            oldest=oldest.get(one.name),
            course=tuple(history.course(one.name, POINTS)),
        )
        for one in snapshot.queues
    ]


def _count(state: State) -> Callable[[QueueRow], float]:
    return lambda row: row.counts.get(state, 0)


SORTS: Mapping[str, Callable[[QueueRow], Any]] = {
    "name": lambda row: row.name,
    "available": _count(State.AVAILABLE),
    "running": _count(State.RUNNING),
    "retryable": _count(State.RETRYABLE),
    "discarded": _count(State.DISCARDED),
    "in/s": lambda row: row.rates.appended if row.rates else 0.0,
    "out/s": lambda row: row.rates.claimed if row.rates else 0.0,
    "oldest": lambda row: row.oldest or 0.0,
}
"""By what queues can be sorted: names from the first, figures from the largest."""


def next_sort(sort: str) -> str:
    """The one that comes after, in a circle."""
    names = list(SORTS)
    return names[(names.index(sort) + 1) % len(names)]


def arranged(rows: Sequence[QueueRow], sort: str, wanted: str) -> list[QueueRow]:
    """Those with `wanted` in their name, whatever its case; sorted, and by name where equal."""
    found = [row for row in rows if wanted.casefold() in row.name.casefold()]
    found.sort(key=lambda row: row.name)
    if sort != "name":
        found.sort(key=SORTS[sort], reverse=True)
    return found


@dataclass(frozen=True, slots=True)
class Sums:
    """All queues together, shown or not."""

    queues: int
    paused: int
    counts: Mapping[State, int]
    rates: Rates | None


def sums(rows: Sequence[QueueRow]) -> Sums:
    """Add them up."""
    known = [row.rates for row in rows if row.rates is not None]
    return Sums(
        queues=len(rows),
        paused=sum(row.paused for row in rows),
        counts={state: sum(row.counts.get(state, 0) for row in rows) for state in State},
        rates=Rates(sum(one.appended for one in known), sum(one.claimed for one in known))
        if known
        else None,
    )
