"""Unique jobs: at most one of a key at a time, and what a second enqueue does."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from rota.errors import ConfigError
from rota.model.durations import seconds

STATES = ("waiting", "running")


class OnConflict(StrEnum):
    """What an enqueue does where its key is taken."""

    SKIP = "skip"
    """Nothing is stored; the answer is the job that has the key."""
    REPLACE = "replace"
    """A job that has not started gets the new args, priority and time."""
    RAISE = "raise"
    """An error."""
    DEBOUNCE = "debounce"
    """Like `replace`, and the start is pushed back, up to a cap."""


@dataclass(frozen=True, slots=True)
class Unique:
    """At most one job of a task and key at a time.

    Args:
        by: Names of arguments that make the key; none: all jobs of the task have the same key.
        key: A template instead of names, such as `"order:{order_id}"`.
        while_: How long a job keeps its key: while it is `waiting`, or until it has finished
            (`waiting` and `running`, the default).
        period: Seconds (or a timedelta) in which there is at most one job, finished or not; periods
            begin at multiples of their length since 1970.
        on_conflict: `skip`, `replace`, `raise` or `debounce`.
        cap: With `debounce`, how many seconds after the first enqueue the job starts at the latest.

    Raises:
        ConfigError: A value is not allowed, or two cannot be combined.
    """

    by: tuple[str, ...] = ()
    key: str | None = None
    while_: tuple[str, ...] = STATES
    period: float | timedelta | None = None
    on_conflict: str = OnConflict.SKIP
    cap: float | timedelta | None = None

    def __post_init__(self) -> None:
        if not _names(self.by):
            message = f"Unique(by=…): must be a tuple of argument names, not {self.by!r}"
            raise ConfigError(message)
        if self.by and self.key is not None:
            message = "Unique: by and key cannot be combined; give one of them"
            raise ConfigError(message)
        if not _names(self.while_) or set(self.while_) not in ({"waiting"}, set(STATES)):
            message = (
                "Unique(while_=…): must be ('waiting',) or ('waiting', 'running'), "
                f"not {self.while_!r}"
            )
            raise ConfigError(message)
        if self.on_conflict not in tuple(OnConflict):
            kinds = ", ".join(OnConflict)
            message = f"Unique(on_conflict=…): must be one of {kinds}, not {self.on_conflict!r}"
            raise ConfigError(message)
        for name in ("period", "cap"):
            value = getattr(self, name)
            if value is not None and seconds(value, f"Unique({name}=…)") == 0:
                message = f"Unique({name}=…): must be more than 0 seconds"
                raise ConfigError(message)
        if self.cap is not None and self.on_conflict != OnConflict.DEBOUNCE:
            message = "Unique(cap=…) is for on_conflict='debounce' alone"
            raise ConfigError(message)

    @property
    def template(self) -> str:
        """The key as a template."""
        if self.key is not None:
            return self.key
        return ",".join(f"{name}={{{name}}}" for name in self.by) or "*"

    @property
    def while_waiting(self) -> bool:
        """Whether the key is free as soon as the job starts."""
        return "running" not in self.while_

    @property
    def replaces(self) -> bool:
        """Whether a second enqueue changes a job that waits."""
        return self.on_conflict in {OnConflict.REPLACE, OnConflict.DEBOUNCE}

    @property
    def cap_seconds(self) -> float | None:
        """`cap` in seconds."""
        return None if self.cap is None else seconds(self.cap, "cap")

    def in_period(self, keys: Sequence[str], now: float) -> tuple[Sequence[str], datetime | None]:
        """The keys as they are at a moment (seconds since 1970), and until when they stay taken.

        A period makes the moment it began a part of the key: the next one has other keys.
        """
        if self.period is None:
            return keys, None
        length = seconds(self.period, "period")
        number = int(now // length)
        began = datetime.fromtimestamp(number * length, UTC)
        suffix = f" {began:%Y-%m-%dT%H:%M:%S.%f}".rstrip("0").rstrip(".")
        until = datetime.fromtimestamp((number + 1) * length, UTC)
        return [key + suffix for key in keys], until


def _names(value: object) -> bool:
    """Whether a value is a tuple or list of text; a set has another order in each process."""
    return isinstance(value, tuple | list) and all(isinstance(name, str) for name in value)
