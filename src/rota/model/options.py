"""The options of a job: what a task declares, and what `.using(...)` changes for one call."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Self

from rota.errors import ConfigError
from rota.model.backoff import check_attempts
from rota.model.durations import moment, seconds
from rota.model.headers import ON_FAILURE, ON_SUCCESS, check_expires, check_headers, encoded
from rota.model.job import JobSpec
from rota.model.limit import Limit
from rota.model.unique import Unique

LOWEST, HIGHEST = -32768, 32767
"""The range of priorities; smaller first."""

LONGEST_NAME = 200
"""Characters a task's or a queue's name may have."""


@dataclass(frozen=True, slots=True)
class JobOptions:
    """Where, when and how often a job runs.

    Args:
        queue: The queue it waits in.
        priority: Smaller first; between -32768 and 32767.
        delay: Seconds (or a timedelta) until it becomes available.
        at: An aware datetime at which it becomes available.
        max_attempts: How often it is tried before it is discarded; `None`: as its queue says.
        timeout: Seconds (or a timedelta) one attempt may take; `None`: as its queue says.
        wake: Whether a sleeping worker is told of the job at once. PostgreSQL cannot prepare a
            transaction (two-phase commit) that does so.
        unique: A key such as `"order:{order_id}"`, or a `Unique`: at most one such job at a time.
        limit: How many jobs of a key may run at once, or start in a time.
        fair: A key such as `"tenant:{tenant}"`, between whose values the queue is shared fairly.
        headers: Names and texts that travel with it, such as a trace; 4 kB at the most.
        expires: Seconds (or a timedelta) after its enqueue, or an aware datetime, after which no
            attempt of it begins: it is cancelled instead.
        on_success: The name of the task of which a job is enqueued when this one is completed.
        on_failure: The name of that which follows when it is discarded.

    Raises:
        ConfigError: A value is outside its range, or both `delay` and `at` are given.
    """

    queue: str = "default"
    priority: int = 0
    delay: float | timedelta | None = None
    at: datetime | None = None
    max_attempts: int | None = None
    timeout: float | timedelta | None = None
    wake: bool = True
    unique: str | Unique | None = None
    limit: Limit | None = None
    fair: str | None = None
    headers: Mapping[str, str] | None = None
    expires: float | timedelta | datetime | None = None
    on_success: str | None = None
    on_failure: str | None = None

    def __post_init__(self) -> None:
        check_name(self.queue, "queue")
        _check_priority(self.priority)
        if self.max_attempts is not None:
            check_attempts(self.max_attempts, "max_attempts")
        self._check_times()
        if self.timeout is not None and seconds(self.timeout, "timeout") == 0:
            message = "timeout: must be more than 0 seconds; leave it out for no limit"
            raise ConfigError(message)
        for name in (self.on_success, self.on_failure):
            if name is not None:
                check_name(name, "task")
        for name, check in (("headers", check_headers), ("expires", check_expires)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check(getattr(self, name)))
        if isinstance(self.unique, str):
            object.__setattr__(self, "unique", Unique(key=self.unique))
        for name, value, kind in (
            ("unique", self.unique, Unique),
            ("limit", self.limit, Limit),
            ("fair", self.fair, str),
        ):
            if value is not None and not isinstance(value, kind):
                message = f"{name}: must be a {kind.__name__}, not {type(value).__name__}"
                raise ConfigError(message)

    def _check_times(self) -> None:
        if self.delay is not None and self.at is not None:
            message = "delay and at cannot be combined; give one of them"
            raise ConfigError(message)
        if self.delay is not None:
            seconds(self.delay, "delay")
        if self.at is not None:
            object.__setattr__(self, "at", moment(self.at, "at"))

    def using(self, changes: dict[str, object], *beside: str) -> Self:
        """The same options with some of them changed.

        Args:
            changes: The options by name.
            beside: Other names that the caller takes, for the message.

        Raises:
            ConfigError: An option is not known, or a value is outside its range.
        """
        known = {option.name for option in fields(self)}
        if unknown := sorted(changes.keys() - known):
            from difflib import get_close_matches

            there = sorted(known.union(beside))
            meant = get_close_matches(unknown[0], there, 1)
            message = (
                f"unknown option {', '.join(unknown)}; {f'did you mean {meant[0]}? ' if meant else ''}"
                f"the options are {', '.join(there)}"
            )
            raise ConfigError(message)
        # The later of two `.using()` decides when the job starts.
        if changes.keys() & {"delay", "at"}:
            changes = {"delay": None, "at": None, **changes}
        return replace(self, **changes)  # type: ignore[arg-type]  # __post_init__ checks them

    def spec(self, task: str) -> JobSpec:
        """The spec of a job of `task` with these options."""
        delay = None if self.delay is None else seconds(self.delay, "delay")
        return JobSpec(
            task=task,
            queue=self.queue,
            priority=self.priority,
            max_attempts=self.max_attempts,
            timeout=None if self.timeout is None else seconds(self.timeout, "timeout"),
            delay=delay or None,
            at=self.at,
            wake=bool(self.wake),
            unique=self.unique if isinstance(self.unique, Unique) else None,
            limit=self.limit,
            headers=encoded(self._all_headers),
            expires=self.expires,  # type: ignore[arg-type]  # __post_init__ has made it one of these
        )

    @property
    def _all_headers(self) -> Mapping[str, str] | None:
        """The headers of the caller's, and Rota's own for what has no column."""
        if self.on_success is None and self.on_failure is None:
            return self.headers
        own = {ON_SUCCESS: self.on_success, ON_FAILURE: self.on_failure}
        return {**(self.headers or {}), **{name: task for name, task in own.items() if task}}

    @property
    def keyed(self) -> bool:
        """Whether jobs with these options have keys."""
        return self.unique is not None or self.limit is not None or self.fair is not None


def _check_priority(priority: int) -> None:
    whole = isinstance(priority, int) and not isinstance(priority, bool)
    if not whole or not LOWEST <= priority <= HIGHEST:
        message = (
            f"priority: must be a whole number between {LOWEST} and {HIGHEST}, not {priority!r}"
        )
        raise ConfigError(message)


def check_name(name: str, what: str) -> str:
    """Check the name of a queue or a task.

    Raises:
        ConfigError: It is empty, too long, begins or ends with a blank, or holds characters that
            cannot be stored or printed.
    """
    printable = isinstance(name, str) and name.isprintable() and name == name.strip()
    if not printable or not 0 < len(name) <= LONGEST_NAME:
        message = (
            f"{what}: must be a name of 1 to {LONGEST_NAME} printable characters, without spaces "
            f"around it, not {name!r}"
        )
        raise ConfigError(message)
    return name
