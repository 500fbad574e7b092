"""A worker as the database knows it."""

from dataclasses import dataclass
from datetime import datetime

from rota.model.job import JobId


@dataclass(frozen=True, slots=True)
class HeldJob:
    """A job that a worker holds: it runs, or is about to.

    `since` is when the worker claimed it; `None` on SQLite, which does not record that.
    """

    id: JobId
    task: str
    queue: str
    attempt: int
    since: datetime | None


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """A worker that has not closed its session.

    Attributes:
        id: Its session.
        host: The machine it runs on.
        pid: Its process there.
        queues: The queues, and patterns of queues, that it takes jobs from.
        since: When it began.
        silent: Seconds since its last sign of life.
        timeout: After how many such seconds other workers take its jobs over.
        held: How many jobs it holds.
        jobs: Some of these, those held longest first.
    """

    id: int
    host: str
    pid: int
    queues: tuple[str, ...]
    since: datetime
    silent: float
    timeout: float
    held: int
    jobs: tuple[HeldJob, ...]

    @property
    def alive(self) -> bool:
        """Whether it gave a sign of life in time; otherwise its jobs are about to be rescued."""
        return self.silent <= self.timeout
