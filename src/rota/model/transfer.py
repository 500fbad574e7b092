"""A transfer: jobs on their way between databases, which they leave and enter in two transactions.

In the transaction that takes the jobs out of their database, all that is known of them is written
into one job there, whose args the transfer is. So they are never in no database, and what is left
of a mover that was killed can be finished by the next one. In the transaction that stores them in
the other database, the transfer's token is written there as well, for good: it is not stored a
second time, by whom and how late ever.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Self

import msgspec

from rota.errors import ConfigError
from rota.model.headers import decoded, encoded
from rota.model.job import JobId, JobSpec, Order
from rota.model.redaction import redacting

TASK = "rota.transfer"
"""The task of the jobs that are transfers; no worker has it."""

QUEUE = "rota.transfers"
"""The queue where they wait."""

NEVER = datetime(9000, 1, 1, tzinfo=UTC)
"""When they are due."""

MOVED = "rota.moved_from"
"""The header that says which job of which shard a job was, such as `eu:123`."""


MOMENTS = ("enqueued_at", "scheduled_at", "last_run", "until", "first_at")
"""The attributes of a job on its way that are moments."""


class LimitNumbers(msgspec.Struct, frozen=True):
    """A limit as a database has it: key, how many at once, how many starts in how many seconds."""

    key: str
    running: int | None
    rate: int | None
    seconds: float | None


class JobOnItsWay(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that is known of a job that waits.

    Moments are seconds since 1970; args, errors and headers are JSON text.

    `attempt` is how often it was begun. `until`, `first_at` and `while_waiting` are of its unique
    key.
    """

    id: JobId
    task: str
    args: str
    queue: str
    priority: int
    attempt: int
    max_attempts: int
    timeout: float | None
    enqueued_at: float
    scheduled_at: float | None = None
    errors: str | None = None
    iteration: int | None = None
    last_run: float | None = None
    headers: str | None = None
    unique_key: str | None = None
    while_waiting: bool = False
    until: float | None = None
    first_at: float | None = None
    limit: LimitNumbers | None = None
    fair: str | None = None


class Transfer(msgspec.Struct, frozen=True):
    """Jobs of one key on their way.

    Attributes:
        token: Tells it from every other transfer.
        key: Whose jobs they are.
        source: The shard that they leave.
        target: The shard that they enter.
        jobs: In the order in which they are stored there.
    """

    token: str
    key: str
    source: str
    target: str
    jobs: tuple[JobOnItsWay, ...] = ()

    def of(self, jobs: Sequence[JobOnItsWay]) -> Self:
        """The same transfer with these jobs."""
        return msgspec.structs.replace(self, jobs=tuple(jobs))

    def order(self) -> Order:
        """What stores it as a job. Its jobs are hidden where args are shown: they may have secrets."""
        spec = JobSpec(
            TASK,
            QUEUE,
            max_attempts=1,
            at=NEVER,
            wake=False,
            headers=redacting(None, ("jobs",)),
        )
        return Order(spec, [msgspec.json.encode(self).decode()])

    def headers(self, job: JobOnItsWay) -> str | None:
        """The headers of a job in the target, which say where it was."""
        return encoded({**decoded(job.headers), MOVED: f"{self.source}:{job.id}"})


def read_transfer(args: str) -> Transfer:
    """A transfer from the args of its job.

    Raises:
        ConfigError: They are none.
    """
    try:
        return msgspec.json.decode(args, type=Transfer)
    except msgspec.MsgspecError as error:
        message = f"this version of Rota cannot read it as a transfer: {error}"
        raise ConfigError(message) from error


def job_on_its_way(row: Sequence[Any]) -> JobOnItsWay:
    """A row of either store's `transfer_read.sql`."""
    *plain, limit, running, rate, seconds, fair = row
    values: dict[str, Any] = dict(zip(JobOnItsWay.__struct_fields__, plain, strict=False))
    values["while_waiting"] = bool(values["while_waiting"])
    # SQLite's moments are finer than a microsecond, and PostgreSQL would round some of them
    # otherwise than Python does.
    for name in MOMENTS:
        if (moment := values[name]) is not None:
            values[name] = round(moment, 6)
    values["limit"] = None if limit is None else LimitNumbers(limit, running, rate, seconds)
    return JobOnItsWay(**values, fair=fair)
