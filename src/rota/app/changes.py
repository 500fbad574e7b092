"""What becomes of a job, change by change: for pages that show it live, and for `rota jobs watch`.

Each step of the iteration is a wait of its own, which ends with the next change; between two steps
nothing is open, so there is nothing to close. All steps that wait in an app share one thread, one
connection, and its looks (`rota.database.waiting`). What changed while no step waited is found by
comparing with what the last step gave.
"""

import re
import time
from dataclasses import dataclass
from typing import Self

from rota.database.database import Database
from rota.database.waiting import Following, Waiting
from rota.errors import ConfigError
from rota.model.job import AttemptError, JobId, JobRecord, LogLine, Progress
from rota.store.execute import in_thread

Position = tuple[int, int]
"""Of a log line: its lease and its number, which both only grow."""

START: Position = (0, 0)


@dataclass(frozen=True, slots=True)
class Change:
    """What is new about a job since the previous change; the first change has everything so far.

    Attributes:
        record: The job as it is now, with its progress and its log.
        id: Where to go on with `changes(after=…)`: it says which log lines were seen.
        moved: Whether the state, the attempt, the worker or the request to cancel is new.
        progress: The job's progress, if that is new.
        lines: The log lines that are new.
        errors: The failed attempts that are new.
    """

    record: JobRecord
    id: str
    moved: bool
    progress: Progress | None
    lines: tuple[LogLine, ...]
    errors: tuple[AttemptError, ...]


class Changes:
    """The changes of one job, for `for` and `async for`. Made by `JobHandle.changes`.

    After an error, or after a step that was cancelled, the next step goes on where the last one
    ended.
    """

    def __init__(self, database: Database, job: JobId, after: str | None) -> None:
        self._database = database
        self._job = job
        self._known: JobRecord | None = None
        self._looked: float | None = None
        self._told = START if after is None else _position(after)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Change:
        if self._over:
            raise StopIteration
        self._database.ready()
        waiting, wait = self._begin()
        try:
            return self._change(wait.ended.result())
        finally:
            waiting.end(wait)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        import asyncio  # here, as in `in_thread`

        if self._over:
            raise StopAsyncIteration
        if self._known is None:
            await in_thread(self._database.ready)
        waiting, wait = self._begin()
        try:
            return self._change(await asyncio.wrap_future(wait.ended))
        finally:
            waiting.end(wait)

    @property
    def _over(self) -> bool:
        return self._known is not None and self._known.state.finished

    def _begin(self) -> tuple[Waiting, Following]:
        waiting = self._database.waiting
        return waiting, waiting.follow(self._job, self._known, self._looked)

    def _change(self, now: JobRecord) -> Change:
        before, self._known = self._known, now
        self._looked = time.monotonic()
        if before is None:
            lines = tuple(line for line in now.log if _at(line) > self._told)
            progress, errors = now.progress, now.errors
        else:
            shown = set(map(_at, before.log))
            lines = tuple(line for line in now.log if _at(line) not in shown)
            progress = now.progress if now.progress != before.progress else None
            errors = tuple(error for error in now.errors if error not in before.errors)
        self._told = max([self._told, *map(_at, lines)])
        moved = before is None or _moves(before) != _moves(now)
        return Change(now, "{}-{}".format(*self._told), moved, progress, lines, errors)


def _moves(job: JobRecord) -> tuple[object, ...]:
    return job.state, job.attempt, job.worker, job.cancel_requested, job.iteration


def _at(line: LogLine) -> Position:
    return line.lease, line.number


def _position(after: str) -> Position:
    """What the id of a change says.

    Raises:
        ConfigError: It is none.
    """
    if (
        not isinstance(after, str)
        or (found := re.fullmatch(r"(\d{1,19})-(\d{1,19})", after)) is None
    ):
        message = f"changes: after= is the id of a change, such as '17-4', not {after!r}"
        raise ConfigError(message)
    return int(found[1]), int(found[2])
