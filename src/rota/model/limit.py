"""Limits: at most so many jobs of a key at once, or so many starts in a time, over all workers."""

from dataclasses import dataclass

from rota.errors import ConfigError

MOST = 2**31 - 1
"""The highest number that every database holds."""


@dataclass(frozen=True, slots=True)
class Limit:
    """How many jobs of a key may run, and how often they may start; exact, across all workers.

    Args:
        key: A template such as `"tenant:{tenant}"`. Tasks whose keys come out the same share the
            limit; a key without names in it, such as `"smtp"`, is one limit for all jobs. `None`:
            each task has its own limit.
        running: At most so many run at once. With 1 the jobs of a key run in their order.
        per_second: At most so many start within any second.
        per_minute: At most so many start within any minute.
        per_hour: At most so many start within any hour.

    Raises:
        ConfigError: Nothing is limited, or a number is not a whole one from 1 to 2147483647.
    """

    key: str | None = None
    running: int | None = None
    per_second: int | None = None
    per_minute: int | None = None
    per_hour: int | None = None

    def __post_init__(self) -> None:
        numbers = {
            "running": self.running,
            "per_second": self.per_second,
            "per_minute": self.per_minute,
            "per_hour": self.per_hour,
        }
        given = {name: number for name, number in numbers.items() if number is not None}
        if not given:
            message = f"Limit: nothing is limited; give one of {', '.join(numbers)}"
            raise ConfigError(message)
        for name, number in given.items():
            whole = isinstance(number, int) and not isinstance(number, bool)
            if not whole or not 1 <= number <= MOST:
                message = (
                    f"Limit({name}=…): must be a whole number from 1 to {MOST}, not {number!r}; "
                    "to let nothing run, pause the queue"
                )
                raise ConfigError(message)
        if len(given.keys() - {"running"}) > 1:
            message = "Limit: give only one rate: per_second, per_minute or per_hour"
            raise ConfigError(message)

    @property
    def rate(self) -> tuple[int, float] | None:
        """At most so many starts in so many seconds."""
        if self.per_second is not None:
            return self.per_second, 1.0
        if self.per_minute is not None:
            return self.per_minute, 60.0
        if self.per_hour is not None:
            return self.per_hour, 3600.0
        return None
