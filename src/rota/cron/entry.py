"""Cron entries: what is to be enqueued, and when."""

from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum

import msgspec

from rota.errors import ConfigError
from rota.model.job import MAX_ATTEMPTS


class Missed(StrEnum):
    """What becomes of due times when no worker was running."""

    SKIP = "skip"
    """Nothing."""
    LATEST = "latest"
    """One job for all, at the newest of these due times."""
    ALL = "all"
    """A job for each of them, the oldest first."""


@dataclass(frozen=True, slots=True)
class CronEntry:
    """What is to be enqueued, and when.

    Args:
        name: The entry's own name.
        expression: Five fields, six with seconds first, or a word such as `@daily`.
        task: The name of the task.
        timezone: The zone whose wall clock the expression means.
        missed: What becomes of missed runs.
        jitter: A job starts up to so many seconds after its due time.
        args: A JSON object.
        due: The parameter that gets the due time, if there is one.
        queue: As in a job.
        priority: As in a job.
        max_attempts: As in a job.
        timeout: As in a job, in seconds.
        options: What else its jobs have, a JSON object (`rota.cron.jobs`); `None`: nothing else.
    """

    name: str
    expression: str
    task: str
    timezone: str = "UTC"
    missed: Missed = Missed.LATEST
    jitter: float = 0.0
    args: str = "{}"
    due: str | None = None
    queue: str = "default"
    priority: int = 0
    max_attempts: int = MAX_ATTEMPTS
    timeout: float | None = None
    options: str | None = None

    @property
    def declaration(self) -> str:
        """The whole entry as text: what the code has declared, to be compared."""
        fields = asdict(self)
        # Entries without options are declared as they were before there were options.
        if self.options is None:
            del fields["options"]
        return msgspec.json.encode(fields).decode()

    def same_times(self, other: "CronEntry") -> bool:
        """Whether both are due at the same times."""
        return (self.expression, self.timezone) == (other.expression, other.timezone)


@dataclass(frozen=True, slots=True)
class CronRecord:
    """An entry as the database knows it.

    `due` is its next due time and `last` the newest one that has made a job, in the entry's time
    zone. `declared`: it comes from code. `undeclared`: no living worker has it in its code any
    more, so it makes no jobs.
    """

    entry: CronEntry
    paused: bool
    declared: bool
    undeclared: bool
    due: datetime | None
    last: datetime | None


def check_missed(missed: str) -> Missed:
    """Check what is to become of missed runs.

    Raises:
        ConfigError: `missed` is none of the three words.
    """
    try:
        return Missed(missed)
    except ValueError:
        message = f"missed: must be one of {', '.join(Missed)}, not {missed!r}"
        raise ConfigError(message) from None
