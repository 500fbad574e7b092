"""What the ledger tells, put in order: jobs with their runs, and when which process could not work."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from tests.swarm.ledger import Line

GRACE = 2.0
"""Seconds in which a worker that could not work notices what it has lost, on a busy machine."""


class Fate(StrEnum):
    """What became of an enqueue."""

    SURE = "sure"
    """It was acknowledged."""
    NEVER = "never"
    """It was rolled back."""
    MAYBE = "maybe"
    """Its acknowledgement did not come, or what was acknowledged may be lost."""


@dataclass
class Run:
    """A call of a handler.

    Attributes:
        end: When it had done its work, or was stopped, or its process ended; infinite while it goes
            on.
        done: Whether it had done its work.
        counts: Until when its worker was a living one, for all that others could know.
    """

    begin: float
    pid: int
    job: int
    attempt: int
    key: str
    end: float = math.inf
    done: bool = False
    counts: float = math.inf


@dataclass
class Job:
    """What was to be enqueued under a number, and the calls of its handler."""

    number: int
    task: str = "tick"
    how: str = "cron"
    tried: float = 0.0
    fate: Fate = Fate.MAYBE
    runs: list[Run] = field(default_factory=list)

    @property
    def done(self) -> bool:
        """Whether a handler has done its work."""
        return any(run.done for run in self.runs)


@dataclass
class Story:
    """All of it.

    Attributes:
        jobs: By their numbers.
        tails: Times in which what was committed may be lost.
        disturbed: Times in which jobs may have been handed out in vain.
        faults: How many there were of each kind.
    """

    jobs: dict[int, Job] = field(default_factory=dict)
    tails: list[tuple[float, float]] = field(default_factory=list)
    disturbed: list[tuple[float, float]] = field(default_factory=list)
    faults: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def quiet(self, begin: float, end: float) -> bool:
        """Whether nothing has disturbed these times."""
        return not any(since < end and begin < until for since, until in self.disturbed)


def told(lines: Iterable[Line]) -> Story:
    """Put the lines of a ledger in order."""
    telling = _Telling()
    for at, pid, what, words in lines:
        getattr(telling, f"_{what}")(at, pid, *words)
    return telling.end()


class _Telling:
    """Has a method for each word that begins a line."""

    def __init__(self) -> None:
        self._story = Story()
        self._acknowledged: dict[int, float] = {}
        self._calls: dict[tuple[int, str], Run] = {}
        self._ended: dict[int, float] = {}
        self._absent: dict[int, list[tuple[float, float]]] = defaultdict(list)
        self._everywhere: list[tuple[float, float]] = []

    def _job(self, number: int) -> Job:
        return self._story.jobs.setdefault(number, Job(number))

    def _tried(self, at: float, _: int, first: str, count: str, task: str, how: str) -> None:
        for number in _span(first, count):
            job = self._job(number)
            job.task, job.how, job.tried = task, how, at

    def _sure(self, at: float, _: int, first: str, count: str) -> None:
        for number in _span(first, count):
            self._job(number).fate = Fate.SURE
            self._acknowledged[number] = at

    def _never(self, _: float, __: int, first: str, count: str) -> None:
        for number in _span(first, count):
            self._job(number).fate = Fate.NEVER

    def _start(self, at: float, pid: int, call: str, *said: str) -> None:
        number, attempt, job, key = said
        run = self._calls[pid, call] = Run(at, pid, int(job), int(attempt), key)
        self._job(int(number)).runs.append(run)

    def _end(self, at: float, pid: int, call: str) -> None:
        self._left(at, pid, call)
        self._calls[pid, call].done = True

    def _left(self, at: float, pid: int, call: str) -> None:
        self._calls[pid, call].end = at

    def _lost(self, at: float, pid: int) -> None:
        self._absent[pid].append((at - GRACE / 2, at + GRACE))
        self._story.disturbed.append((at - GRACE / 2, at + GRACE))

    def _dead(self, at: float, _: int, pid: str) -> None:
        self._ended.setdefault(int(pid), at)
        self._story.disturbed.append((at - GRACE / 2, at + GRACE))

    def _away(self, at: float, _: int, pid: str, seconds: str) -> None:
        self._absent[int(pid)].append((at, at + float(seconds) + GRACE))

    def _fault(self, at: float, _: int, kind: str, seconds: str) -> None:
        self._story.faults[kind] += 1
        self._vain(at, _, seconds)

    def _vain(self, at: float, _: int, seconds: str) -> None:
        """A fault that was broken off: it may have disturbed."""
        self._story.disturbed.append((at - float(seconds), at + GRACE))

    def _tail(self, at: float, _: int, seconds: str) -> None:
        self._story.tails.append((at - float(seconds), at))
        self._moved(at, _, seconds)

    def _moved(self, at: float, _: int, seconds: str) -> None:
        self._everywhere.append((at - float(seconds), at + GRACE))

    def _attached(self, at: float, _: int) -> None:
        """A standby changes nothing; when there was one is for a person that looks for what was lost."""

    def end(self) -> Story:
        """The story, when all lines were told."""
        story = self._story
        for number, at in self._acknowledged.items():
            job = story.jobs[number]
            # A producer may have been frozen between its commit and the line that says so.
            if job.fate is Fate.SURE and any(
                begin <= at and job.tried <= end for begin, end in story.tails
            ):
                # As uncertain as what was not acknowledged.
                job.fate = Fate.MAYBE
        for job in story.jobs.values():
            for run in job.runs:
                run.end = min(run.end, self._ended.get(run.pid, math.inf))
                run.counts = _counts(run, [*self._absent[run.pid], *self._everywhere])
        return story


def _span(first: str, count: str) -> range:
    return range(int(first), int(first) + int(count))


def _counts(run: Run, absent: list[tuple[float, float]]) -> float:
    """Until when a run counts: it had begun while its worker was one that works."""
    cuts = [max(begin, run.begin) for begin, end in absent if begin < run.end and run.begin < end]
    return min([run.end, *cuts])
