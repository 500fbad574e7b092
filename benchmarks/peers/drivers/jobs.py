"""The jobs that a driver is to enqueue, and the clock that times them.

A job for warming up comes first, so that connecting is not in the time. The clock starts when the
first of the others is taken, and stops when a driver asks for more than there are: then all those
it has taken are enqueued.
"""

import time
from collections.abc import Callable, Iterator, Sequence

from benchmarks.peers.drivers.driver import Job
from benchmarks.peers.records import WARM_UP

LATE = 1.0
"""Seconds after the last moment in which jobs are still enqueued."""


class Jobs:
    """Jobs to take: as many as are wanted, or for so many seconds.

    Attributes:
        enqueued: How many were taken, without the warm-up.
        seconds: How long that took.
    """

    def __init__(self, *, count: float = float("inf"), seconds: float = float("inf")) -> None:
        self.enqueued = 0
        self.seconds = 0.0
        self._count = count
        self._limit = seconds

    def one_by_one(self) -> Iterator[Job]:
        """One job after the other."""
        for chunk in self.chunks(1):
            yield chunk[0]

    def chunks(self, size: int) -> Iterator[Sequence[Job]]:
        """So many at a time."""
        yield [(WARM_UP, time.monotonic())]
        began = now = time.monotonic()
        while self.enqueued < self._count and now - began < self._limit:
            first = self.enqueued
            self.enqueued = int(min(first + size, self._count))
            yield [(number, now) for number in range(first, self.enqueued)]
            now = time.monotonic()
        self.seconds = now - began

    def as_due(self, moments: Callable[[], Sequence[float]]) -> Iterator[Job]:
        """A job at each moment, in seconds from the start.

        A producer that falls behind leaves the last ones out. `moments` is called after the
        warm-up.
        """
        yield WARM_UP, time.monotonic()
        due = moments()
        began = now = time.monotonic()
        for moment in due:
            time.sleep(max(0.0, began + moment - time.monotonic()))
            now = time.monotonic()
            if now > began + due[-1] + LATE:
                break
            yield self.enqueued, now
            self.enqueued += 1
        self.seconds = time.monotonic() - began
