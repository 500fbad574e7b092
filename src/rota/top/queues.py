"""The queues as they are shown: figures, order, filter."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rota.model.patterns import meaning
from rota.model.states import State
from rota.top.history import History, Minute, Rates
from rota.top.snapshot import Snapshot

POINTS = 12
"""Parts of the minute that a sparkline shows: five seconds each."""


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One queue.

    Attributes:
        rates: Per second; None after a single look.
        served: Whether a living worker takes its jobs.
        oldest: Seconds since the next job to start was enqueued, the longest of all priorities;
            for delayed and retried jobs their wait is included.
        minute: What the course is made of, which few of many rows are asked for.
    """

    name: str
    paused: bool
    counts: Mapping[State, int]
    rates: Rates | None
    oldest: float | None
    minute: Minute
    served: bool = True

    @property
    def course(self) -> tuple[float | None, ...]:
        """Claims per second during the last minute."""
        return tuple(self.minute.course(self.name, POINTS))

    @property
    def waits_in_vain(self) -> bool:
        """Whether jobs wait that no worker takes, although the queue is not paused."""
        return self.oldest is not None and not self.served and not self.paused


def queue_rows(snapshot: Snapshot, history: History) -> list[QueueRow]:
    """All queues, by name."""
    oldest: dict[str, float] = {}
    for lane in snapshot.lanes:
        if lane.oldest is not None:
            oldest[lane.queue] = max(lane.oldest, oldest.get(lane.queue, 0.0))
    living = (worker for worker in snapshot.workers if worker.silent <= worker.timeout)
    served = {queue for worker in living for queue in worker.queues}
    minute = history.minute()
    return [
        QueueRow(
            name=queue.name,
            paused=queue.paused,
            counts=queue.counts,
            rates=minute.rates(queue.name),
            oldest=oldest.get(queue.name),
            minute=minute,
            served=meaning(served, queue.name) is not None,
        )
        for queue in snapshot.queues
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
"""Sort keys of queues: names from the first, figures from the largest."""


def next_sort(sort: str) -> str:
    """The sort key after this; the first after the last."""
    names = list(SORTS)
    return names[(names.index(sort) + 1) % len(names)]


def arranged(rows: Sequence[QueueRow], sort: str, wanted: str) -> list[QueueRow]:
    """The rows with `wanted` in their name, in any case; sorted, and by name where equal."""
    found = [row for row in rows if wanted.casefold() in row.name.casefold()]
    found.sort(key=lambda row: row.name)
    if sort != "name":
        found.sort(key=SORTS[sort], reverse=True)
    return found


@dataclass(frozen=True, slots=True)
class Sums:
    """All queues together, shown or not; `unserved`: jobs wait in them, and no worker takes them."""

    queues: int
    paused: int
    unserved: int
    counts: Mapping[State, int]
    rates: Rates | None


def sums(rows: Sequence[QueueRow]) -> Sums:
    """Add all rows up."""
    known = [row.rates for row in rows if row.rates is not None]
    return Sums(
        queues=len(rows),
        paused=sum(row.paused for row in rows),
        unserved=sum(row.waits_in_vain for row in rows),
        counts={state: sum(row.counts.get(state, 0) for row in rows) for state in State},
        rates=Rates(sum(rate.appended for rate in known), sum(rate.claimed for rate in known))
        if known
        else None,
    )
