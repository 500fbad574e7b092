"""What became of jobs that were enqueued: created, or found to be there by their key."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple, Self

from rota.model.job import JobId


class Placing(StrEnum):
    """What an enqueue did."""

    CREATED = "created"
    """There is a new job."""
    REPLACED = "replaced"
    """A job that had not started got the new args, priority and time."""
    SKIPPED = "skipped"
    """Nothing was stored: there is a job of that key."""


class Placed(NamedTuple):
    """Which job an enqueue led to, and how."""

    job: JobId
    placing: Placing


class Enqueued(list[JobId]):
    """The ids that `enqueue_many` returns, in the order of its jobs.

    If the key of a unique job was taken, the id is that of the job that has it. `created`,
    `replaced` and `skipped` are the ids of each kind; an id may be in several of them if its key
    was given more than once.
    """

    __slots__ = ("placings",)

    def __init__(
        self, jobs: Iterable[JobId] = (), placings: Sequence[Placing] | None = None
    ) -> None:
        super().__init__(jobs)
        self.placings = placings
        """What was done for each; `None`: all are new."""

    @classmethod
    def of(cls, placed: Sequence[Placed]) -> Self:
        """From what became of each job."""
        return cls([each.job for each in placed], [each.placing for each in placed])

    @classmethod
    def from_ids(cls, jobs: list[JobId]) -> "Enqueued":
        """From ids that came through middleware, which may have made a plain list of them."""
        return jobs if isinstance(jobs, Enqueued) else cls(jobs)

    @property
    def placed(self) -> list[Placed]:
        """What became of each job."""
        if self.placings is None:
            return [Placed(job, Placing.CREATED) for job in self]
        return list(map(Placed, self, self.placings))

    @property
    def created(self) -> list[JobId]:
        """The ids of new jobs."""
        return list(self) if self.placings is None else self._placed(Placing.CREATED)

    @property
    def replaced(self) -> list[JobId]:
        """The ids of jobs that got new args, priority and time."""
        return self._placed(Placing.REPLACED)

    @property
    def skipped(self) -> list[JobId]:
        """The ids of existing jobs that stayed as they were."""
        return self._placed(Placing.SKIPPED)

    def _placed(self, wanted: Placing) -> list[JobId]:
        pairs = zip(self, self.placings or (), strict=False)
        return [job for job, placing in pairs if placing is wanted]
