"""A worker's shift: what it does with its jobs, and what it reports."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rota.errors import RotaError
from rota.measure.processes import emptied

REST = 0.01
"""Seconds until a worker that has found no job looks again."""


class Failed(RotaError):
    """What a job's work raises to say that it has failed."""


Work = Callable[[str], None]
"""What is done with a job's text; it may raise `Failed`. Processes get it, so it is a function of a
module, or an object of a module's class."""


@dataclass(frozen=True, slots=True)
class Told:
    """What has happened in a shift since the last report.

    Moments are in seconds since the epoch, durations in seconds.

    Attributes:
        worked: When work began on which job, without failed jobs.
        claims: How long each claim took that gave jobs.
        failed: When work began on which job that has failed.
        deadlocks: When the worker was a deadlock's victim.
        ended: When the shift ended; None while it goes on.
        error: What ended it early.
    """

    worked: list[tuple[float, str]]
    failed: list[tuple[float, str]]
    claims: list[float]
    deadlocks: list[float]
    ended: float | None
    error: str | None


class Shift:
    """One worker's shift.

    Attributes:
        drain: Whether the worker ends when there is no job to claim; else it looks again.
        over: Set when the worker shall end.
        ended: When it ended, in seconds since the epoch.
        error: What ended it early.
    """

    def __init__(self, work: Work, *, drain: bool = True) -> None:
        self.drain = drain
        self.over = threading.Event()
        self.ended: float | None = None
        self.error: str | None = None
        self._work = work
        self._worked: list[tuple[float, str]] = []
        self._claims: list[float] = []
        self._claiming: float | None = None
        self._failed: list[tuple[float, str]] = []
        self._deadlocks: list[float] = []
        self._at_the_end: Callable[[], None] = lambda: None

    @contextmanager
    def claiming(self) -> Iterator[None]:
        """Around the statements of a claim, which counts if the step finds a job."""
        began = time.perf_counter()
        yield
        self._claiming = time.perf_counter() - began

    def claimed(self, seconds: float | None = None) -> None:
        """A claim gave jobs: the last that `claiming` timed, or a claim that took `seconds`."""
        seconds = self._claiming if seconds is None else seconds
        if seconds is not None:
            self._claims.append(seconds)
        self._claiming = None

    def work(self, text: str) -> None:
        """Do the work of a job.

        Raises:
            Failed: The work has failed; the strategy acts on it as its design does.
        """
        began = time.time()
        try:
            self._work(text)
        except Failed:
            self._failed.append((began, text))
            raise
        self._worked.append((began, text))

    def deadlock(self) -> None:
        """Count a deadlock; for designs that deal with deadlocks themselves."""
        self._deadlocks.append(time.time())

    def rest(self) -> None:
        """Wait a little, because there was no job."""
        self.over.wait(REST)

    def at_the_end(self, stop: Callable[[], None]) -> None:
        """Call `stop` when the worker shall end: for designs with a loop of their own."""
        self._at_the_end = stop
        if self.over.is_set():
            stop()

    def end(self) -> None:
        """Let the worker end after the job it is at; callable from any thread."""
        self.over.set()
        self._at_the_end()

    def told(self) -> Told:
        """What has happened since the last time."""
        # The end first: a report with it has everything that came before.
        ended = self.ended
        return Told(
            worked=emptied(self._worked),
            failed=emptied(self._failed),
            claims=emptied(self._claims),
            deadlocks=emptied(self._deadlocks),
            ended=ended,
            error=self.error,
        )
