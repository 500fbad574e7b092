"""The looks of the last minute, and the rates between them."""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from rota.model.job import QueueRecord

SPAN = 60.0
"""Seconds that are remembered."""


class Totals(NamedTuple):
    """Jobs that a queue ever took in and gave out."""

    appended: int
    claimed: int


class Rates(NamedTuple):
    """Jobs per second that became available, and that were claimed."""

    appended: float
    claimed: float


class History:
    """Remembers totals; rates are their differences.

    Totals only grow, unless the database was replaced. Then the history is forgotten.
    """

    def __init__(self) -> None:
        self._looks: deque[tuple[float, dict[str, Totals]]] = deque()

    def add(self, moment: float, queues: Iterable[QueueRecord]) -> None:
        """Remember a look; `moment` is in seconds and grows."""
        totals = {queue.name: Totals(queue.appended, queue.claimed) for queue in queues}
        if self._looks and _shrunk(self._looks[-1][1], totals):
            self._looks.clear()
        self._looks.append((moment, totals))
        # One look before the span is kept, so that the whole span is known.
        while len(self._looks) > 2 and self._looks[1][0] <= moment - SPAN:  # noqa: PLR2004
            self._looks.popleft()

    def minute(self) -> "Minute":
        """What is remembered now."""
        return Minute(tuple(self._looks))

    def rates(self, queue: str) -> Rates | None:
        """See `Minute`."""
        return self.minute().rates(queue)

    def course(self, queue: str, points: int) -> list[float | None]:
        """See `Minute`."""
        return self.minute().course(queue, points)


class Minute(NamedTuple):
    """The looks of a minute: each with its moment and the totals of all queues."""

    looks: tuple[tuple[float, dict[str, Totals]], ...]

    def rates(self, queue: str) -> Rates | None:
        """The rates between the last two looks; None before the second look."""
        if len(self.looks) < 2:  # noqa: PLR2004
            return None
        (before, old), (after, new) = self.looks[-2], self.looks[-1]
        seconds = after - before
        if queue not in new or seconds <= 0:
            return None
        # A new queue had no jobs.
        first = old.get(queue, Totals(0, 0))
        last = new[queue]
        return Rates(
            (last.appended - first.appended) / seconds, (last.claimed - first.claimed) / seconds
        )

    def course(self, queue: str, points: int) -> list[float | None]:
        """Claims per second in `points` equal parts of the span, the newest last.

        Between two looks jobs count as claimed evenly. None before the first look.
        """
        if len(self.looks) < 2:  # noqa: PLR2004
            return [None] * points
        moments = [moment for moment, _ in self.looks]
        claimed = [totals.get(queue, Totals(0, 0)).claimed for _, totals in self.looks]
        end = moments[-1]
        ends = [end - SPAN + SPAN * number / points for number in range(points + 1)]
        at = [_between(moments, claimed, moment) for moment in ends]
        width = SPAN / points
        return [
            None if first is None or last is None else (last - first) / width
            for first, last in pairwise(at)
        ]


def _shrunk(old: dict[str, Totals], new: dict[str, Totals]) -> bool:
    return any(
        queue not in new
        or new[queue].appended < before.appended
        or new[queue].claimed < before.claimed
        for queue, before in old.items()
    )


def _between(moments: list[float], totals: list[int], moment: float) -> float | None:
    """The total at a moment, on the line between the looks around it."""
    if moment < moments[0]:
        return None
    after = bisect_right(moments, moment)
    if after == len(moments):
        return float(totals[-1])
    first, last = moments[after - 1], moments[after]
    part = (moment - first) / (last - first)
    return totals[after - 1] + part * (totals[after] - totals[after - 1])
