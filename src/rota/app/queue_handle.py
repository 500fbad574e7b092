"""A queue as the code that stops and starts it sees it."""

from collections.abc import Callable, Collection, Generator, Mapping
from datetime import timedelta
from typing import Any

from rota.database.database import Database
from rota.errors import ConfigError
from rota.model.durations import seconds
from rota.model.job import JobId
from rota.model.options import check_name
from rota.model.queue_settings import (
    NAMES,
    NOTHING,
    QueueSettings,
    Retention,
)
from rota.model.queue_settings import (
    retention as retention_of,
)
from rota.model.states import State
from rota.store.execute import adrive, drive
from rota.store.operation import Operation

WAITING = (State.SCHEDULED, State.AVAILABLE, State.RETRYABLE)
"""The states of jobs that have yet to run."""

BATCH = 1_000
"""Jobs that one transaction of `clear` deletes."""


class QueueHandle:
    """Pauses, resumes and clears a queue, and changes its settings. Made by `Rota.queue`.

    A pause holds for all workers.
    """

    __slots__ = ("_database", "name")

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self.name = check_name(name, "queue")

    def __repr__(self) -> str:
        return f"<QueueHandle {self.name}>"

    def pause(self) -> bool:
        """Stop workers from taking its jobs; running jobs go on. False if it was already paused."""
        return self._database.run(self._database.store.pause(self.name))

    async def apause(self) -> bool:
        """`pause` for async code."""
        return await self._database.arun(self._database.store.pause(self.name))

    def resume(self) -> bool:
        """Let workers take its jobs again. False if it was not paused."""
        return self._database.run(self._database.store.resume(self.name))

    async def aresume(self) -> bool:
        """`resume` for async code."""
        return await self._database.arun(self._database.store.resume(self.name))

    def settings(self) -> QueueSettings:
        """Its settings in the database, without those in the code; `None` where nothing is set."""
        return self._database.run(self._database.store.queue_settings()).get(self.name, NOTHING)

    async def asettings(self) -> QueueSettings:
        """`settings` for async code."""
        found = await self._database.arun(self._database.store.queue_settings())
        return found.get(self.name, NOTHING)

    def set(
        self,
        *,
        retention: Retention | None = None,
        max_attempts: int | None = None,
        timeout: float | timedelta | None = None,
        concurrency: int | None = None,
    ) -> QueueSettings:
        """Change its settings in the database; returns what is set then.

        These override the settings in the code of all programs.

        What is not given stays as it is. Creates the queue.

        Args:
            retention: Seconds (or a timedelta) that completed and cancelled jobs stay readable, or
                a mapping from states.
            max_attempts: How many times a job is tried before it is discarded.
            timeout: Seconds (or a timedelta) that one attempt may take.
            concurrency: How many of its jobs one worker process runs at once.

        Raises:
            ConfigError: A value cannot be used, or none is given.
        """
        changes = _changes(retention, max_attempts, timeout, concurrency)
        return self._database.run(self._database.store.set_queue(self.name, changes))

    async def aset(
        self,
        *,
        retention: Retention | None = None,
        max_attempts: int | None = None,
        timeout: float | timedelta | None = None,  # noqa: ASYNC109 - a setting, as in `set`
        concurrency: int | None = None,
    ) -> QueueSettings:
        """`set` for async code."""
        changes = _changes(retention, max_attempts, timeout, concurrency)
        return await self._database.arun(self._database.store.set_queue(self.name, changes))

    def unset(self, *names: str) -> QueueSettings:
        """Remove settings from the database, all if none is named; returns what is set then.

        Args:
            names: `completed`, `cancelled`, `discarded` (retentions), `max_attempts`, `timeout`,
                `concurrency`.

        Raises:
            ConfigError: There is no such setting.
        """
        return self._database.run(self._database.store.set_queue(self.name, _none(names)))

    async def aunset(self, *names: str) -> QueueSettings:
        """`unset` for async code."""
        return await self._database.arun(self._database.store.set_queue(self.name, _none(names)))

    def clear(
        self,
        states: Collection[State | str] = WAITING,
        *,
        until: int | None = None,
        told: Callable[[State, int], None] = lambda state, deleted: None,  # noqa: ARG005
    ) -> dict[State, int]:
        """Delete its jobs in these states, by default those that wait; returns how many, by state.

        Running jobs stay, and so do jobs that are enqueued meanwhile. Each of several transactions
        deletes some: if the call is interrupted, the rest stays.

        Args:
            states: Which jobs; not the running ones.
            until: Only jobs with ids up to this one; by default those that there are now.
            told: Called after each transaction, with how many jobs in that state are deleted so
                far.

        Raises:
            ConfigError: A state cannot be cleared.
        """
        return drive(self._clearing(_clearable(states), until, told), self._database.run)

    async def aclear(
        self, states: Collection[State | str] = WAITING, *, until: int | None = None
    ) -> dict[State, int]:
        """`clear` for async code."""
        steps = self._clearing(_clearable(states), until, lambda *_: None)
        return await adrive(steps, self._database.arun)

    def _clearing(
        self, states: list[State], until: int | None, told: Callable[[State, int], None]
    ) -> Generator[Operation[Any], Any, dict[State, int]]:
        store = self._database.store
        newest = (yield store.last_job()) if until is None else JobId(until)
        deleted = dict.fromkeys(states, 0)
        for state in states:
            last: JobId | None = JobId(0)
            while last is not None:
                batch = yield store.clear(self.name, state, after=last, until=newest, limit=BATCH)
                deleted[state] += batch.deleted
                last = batch.last
                told(state, deleted[state])
        return deleted


def _changes(
    retention: Retention | None,
    max_attempts: int | None,
    timeout: float | timedelta | None,
    concurrency: int | None,
) -> Mapping[str, float | None]:
    """The settings that are given.

    Raises:
        ConfigError: A value cannot be used, or none is given.
    """
    named: dict[str, float | None] = {
        "max_attempts": max_attempts,
        "timeout": None if timeout is None else seconds(timeout, "timeout"),
        "concurrency": concurrency,
        **retention_of(retention, "retention"),
    }
    changes = {name: value for name, value in named.items() if value is not None}
    if not changes:
        message = "set: say what to set: retention=, max_attempts=, timeout= or concurrency="
        raise ConfigError(message)
    NOTHING.using(changes)  # raises for values that cannot be
    return changes


def _none(names: Collection[str]) -> dict[str, float | None]:
    """No value for each of these settings.

    Raises:
        ConfigError: There is no such setting.
    """
    if unknown := [name for name in names if name not in NAMES]:
        message = f"unset: there is no setting {unknown[0]!r}; the settings are {', '.join(NAMES)}"
        raise ConfigError(message)
    return dict.fromkeys(names or NAMES)


def _clearable(states: Collection[State | str]) -> list[State]:
    """The states, in the order of a job's life.

    Raises:
        ConfigError: One is none, or is that of running jobs.
    """
    named = (states,) if isinstance(states, str) else states
    able = [state for state in State if state is not State.RUNNING]
    for state in named:
        if state not in able:
            message = f"clear: {state!r} jobs cannot be cleared; only these can: {', '.join(able)}"
            raise ConfigError(message)
    return [state for state in able if state in named]
