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
        end: When it had done its work, or was stopped, or its process ended; infinite while it goes on.
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
    story = Story()
    sure: dict[int, float] = {}
    calls: dict[tuple[int, str], Run] = {}
    dead: dict[int, float] = {}
    away: dict[int, list[tuple[float, float]]] = defaultdict(list)
    everywhere: list[tuple[float, float]] = []
    for at, pid, what, words in lines:
        match what, words:
            case "tried", (first, count, task, how):
                for number in range(int(first), int(first) + int(count)):
                    job = story.jobs.setdefault(number, Job(number))
                    job.task, job.how, job.tried = task, how, at
            case ("sure" | "never"), (first, count):
                for number in range(int(first), int(first) + int(count)):
                    story.jobs.setdefault(number, Job(number)).fate = Fate(what)
                    sure[number] = at
            case "start", (call, named, attempt, job_id, key):
                run = calls[pid, call] = Run(at, pid, int(job_id), int(attempt), key)
                story.jobs.setdefault(int(named), Job(int(named))).runs.append(run)
            case ("end" | "left"), (call,):
                calls[pid, call].end, calls[pid, call].done = at, what == "end"
            case "lost", ():
                away[pid].append((at - GRACE / 2, at + GRACE))
                story.disturbed.append((at - GRACE / 2, at + GRACE))
            case "dead", (ended_pid,):
                dead.setdefault(int(ended_pid), at)
                story.disturbed.append((at - GRACE / 2, at + GRACE))
            case "away", (frozen, seconds):
                away[int(frozen)].append((at, at + float(seconds) + GRACE))
            case "fault", (kind, seconds):
                story.faults[kind] += 1
                story.disturbed.append((at - float(seconds), at + GRACE))
            case "tail", (seconds,):
                story.tails.append((at - float(seconds), at))
            case "moved", (seconds,):
                everywhere.append((at - float(seconds), at + GRACE))
    everywhere += [(begin, end + GRACE) for begin, end in story.tails]
    _lose(story, sure)
    for job in story.jobs.values():
        for run in job.runs:
            run.end = min(run.end, dead.get(run.pid, math.inf))
            run.counts = _counts(run, [*away[run.pid], *everywhere])
    return story


def _lose(story: Story, sure: dict[int, float]) -> None:
    """What was acknowledged in a tail is as uncertain as what was not."""
    for number, at in sure.items():
        job = story.jobs[number]
        if job.fate is Fate.SURE and any(begin <= at <= end for begin, end in story.tails):
            job.fate = Fate.MAYBE


def _counts(run: Run, away: list[tuple[float, float]]) -> float:
    """Until when a run counts: it had begun while its worker was one that works."""
    cuts = [max(begin, run.begin) for begin, end in away if begin < run.end and run.begin < end]
    return min([run.end, *cuts])
