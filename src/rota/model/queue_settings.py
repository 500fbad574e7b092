"""What can be set for a queue, where, and which setting counts.

How a job runs and how long it stays can be said by five sources. The first that does counts:

1. the call that enqueues: `.using(max_attempts=…)`
2. the task: `@rota.task(timeout=…)`
3. the database: `rota queues set mail --timeout 30s`
4. the program that declares the queue: `rota.queue("mail", timeout=30)`
5. Rota itself: five attempts, no limit of time, a day for completed and cancelled jobs

The database comes before the program, so that an operator can help at three in the morning without
a deploy; the task comes before both, because its author knows what a second attempt does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from math import inf
from typing import Any, Final

from rota.errors import ConfigError
from rota.model.backoff import check_attempts
from rota.model.durations import seconds
from rota.model.states import FINISHED, State

FOREVER: Final = inf
"""As a retention of discarded jobs: they stay until they are deleted or retried."""

MOST_AT_ONCE = 100_000
"""Jobs of one queue that one worker may run at once, as a setting: far more than it can."""

Retention = float | timedelta | Mapping[str, float | timedelta]
"""Seconds (or a timedelta) for completed and cancelled jobs, or a mapping from states to these."""


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """The settings of a queue in one layer; `None` where nothing is set.

    Args:
        completed: Seconds that completed jobs stay readable; 0 leaves no row behind.
        cancelled: The same for cancelled jobs.
        discarded: The same for discarded jobs; `FOREVER` is allowed.
        max_attempts: How many times a job is tried before it is discarded.
        timeout: Seconds one attempt may take.
        concurrency: How many of its jobs one worker process runs at once.

    Raises:
        ConfigError: A value is outside its range.
    """

    completed: float | None = None
    cancelled: float | None = None
    discarded: float | None = None
    max_attempts: int | None = None
    timeout: float | None = None
    concurrency: int | None = None

    def __post_init__(self) -> None:
        for state, keep in self.retention.items():
            if keep is not None and not (keep == FOREVER and state is State.DISCARDED):
                seconds(keep, f"retention of {state} jobs")
        if self.max_attempts is not None:
            check_attempts(self.max_attempts, "max_attempts")
        if self.timeout is not None and seconds(self.timeout, "timeout") == 0:
            message = "timeout: must be more than 0 seconds; leave it out for no limit"
            raise ConfigError(message)
        if self.concurrency is not None:
            check_concurrency(self.concurrency)

    @property
    def retention(self) -> dict[State, float | None]:
        """How long finished jobs stay, by their state."""
        return {
            State.COMPLETED: self.completed,
            State.CANCELLED: self.cancelled,
            State.DISCARDED: self.discarded,
        }

    def using(self, changes: Mapping[str, Any]) -> "QueueSettings":
        """A copy with some of them changed.

        Raises:
            ConfigError: A value is outside its range.
        """
        return replace(self, **changes)


NAMES = tuple(field.name for field in fields(QueueSettings))
"""All settings, by their names."""

NOTHING = QueueSettings()
"""A layer that says nothing."""


def sources(layers: Mapping[str, QueueSettings]) -> dict[str, str]:
    """For each setting that is said at all, the name of the layer that counts."""
    return {
        name: next(layer for layer, said in layers.items() if getattr(said, name) is not None)
        for name in NAMES
        if any(getattr(said, name) is not None for said in layers.values())
    }


def believed(*layers: QueueSettings) -> QueueSettings:
    """The settings that count, of layers in this order; see the top of this module."""
    named = {str(number): layer for number, layer in enumerate(layers)}
    return QueueSettings(
        **{name: getattr(named[layer], name) for name, layer in sources(named).items()}
    )


def retention(value: Retention | None, what: str) -> dict[str, float]:
    """Seconds by state; a single duration is for completed and cancelled jobs.

    Raises:
        ConfigError: It is no duration, or a state is named in which no job is kept.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        keep = seconds(value, what)
        return {State.COMPLETED.value: keep, State.CANCELLED.value: keep}
    kept: dict[str, float] = {}
    for name, duration in value.items():
        state = check_kept(name, what)
        forever = state is State.DISCARDED and duration == FOREVER
        kept[state.value] = FOREVER if forever else seconds(duration, f"{what}[{state.value!r}]")
    return kept


def check_kept(name: str, what: str) -> State:
    """The state of that name, if finished jobs are kept in it.

    Raises:
        ConfigError: There is no such state, or jobs in it are not finished.
    """
    if name not in FINISHED:
        states = ", ".join(sorted(FINISHED))
        message = f"{what}: only {states} jobs are kept, not {name!r}"
        raise ConfigError(message)
    return State(name)


def check_concurrency(count: int) -> int:
    """Check how many jobs of a queue may run at once.

    Raises:
        ConfigError: It is not a whole number between 1 and `MOST_AT_ONCE`.
    """
    whole = isinstance(count, int) and not isinstance(count, bool)
    if not whole or not 1 <= count <= MOST_AT_ONCE:
        message = (
            f"concurrency: must be a whole number between 1 and {MOST_AT_ONCE}, not {count!r}; "
            "`rota queues pause` lets none run"
        )
        raise ConfigError(message)
    return count
