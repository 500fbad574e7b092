"""What happens inside Rota, told to subscribers: the one instrumentation seam.

Logging (`rota.log`), metrics and tests subscribe to events. A subscriber that raises is logged and
never stops the work. Events are not sent anywhere; they live in the process that caused them. An
event of a kind without subscribers is not even made.
"""

import logging
from dataclasses import dataclass
from datetime import datetime

import msgspec

from rota.model.job import ClaimedJob, JobId, Rescue, SessionId
from rota.model.settlement import Settlement
from rota.model.states import Move

logger = logging.getLogger("rota")


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened."""


@dataclass(frozen=True, slots=True)
class JobsEnqueued(Event):
    """This process has stored jobs; the caller's transaction may still be rolled back."""

    task: str
    queue: str
    jobs: tuple[JobId, ...]


@dataclass(frozen=True, slots=True)
class WorkerStarted(Event):
    """A worker has a session and begins to claim."""

    session: SessionId
    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorkerStopping(Event):
    """A worker claims no more; its `running` jobs have `grace` seconds left."""

    grace: float
    running: int = 0


@dataclass(frozen=True, slots=True)
class QueueStrange(Event):
    """A worker starts on a queue that none of its tasks names, and that has never had a job.

    `queue` may be a pattern; `nearest` is the most similar name, if there is one.
    """

    queue: str
    nearest: str | None


@dataclass(frozen=True, slots=True)
class PausedLeft(Event):
    """A worker that drains stops, and leaves `count` jobs in a queue that is paused."""

    queue: str
    count: int


@dataclass(frozen=True, slots=True)
class WorkerStopped(Event):
    """A worker has ended; `released` jobs went back unharmed."""

    session: SessionId
    released: int


@dataclass(frozen=True, slots=True)
class ChildReplaced(Event):
    """A child process has run as many jobs as it may, or needs too much memory; another one follows.

    `memory` is in bytes, and known where the worker has a `max_memory`.
    """

    pid: int
    jobs: int
    memory: int | None


@dataclass(frozen=True, slots=True)
class LifespanOverdue(Event):
    """A lifespan was to be left, took longer than its `timeout` in seconds, and is left behind."""

    lifespan: str
    timeout: float


@dataclass(frozen=True, slots=True)
class LifespanRaised(Event):
    """A lifespan has raised as it was left."""

    lifespan: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class JobsStaged(Event):
    """The time of `count` jobs has come: they are available now."""

    count: int


@dataclass(frozen=True, slots=True)
class JobsClaimed(Event):
    """A claim has got `count` jobs (perhaps none), after so many `seconds`."""

    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class LimitsReached(Event):
    """A claim has taken the last places of these limits; further jobs of them would wait."""

    limits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JobStarted(Event):
    """A handler is about to be called."""

    job: ClaimedJob


@dataclass(frozen=True, slots=True)
class JobOverdue(Event):
    """A job's time is up, and its thread cannot be stopped; its context says cancelled."""

    job: ClaimedJob


@dataclass(frozen=True, slots=True)
class JobExpired(Event):
    """A job came too late to begin, as its `expires` says; it is cancelled."""

    job: ClaimedJob


@dataclass(frozen=True, slots=True)
class JobSettled(Event):
    """A job leaves the worker, and its settlement is on its way to the database.

    Each is of one of the finer kinds that follow.
    """

    job: ClaimedJob
    settlement: Settlement


@dataclass(frozen=True, slots=True)
class JobCompleted(JobSettled):
    """The handler returned."""


@dataclass(frozen=True, slots=True)
class JobFailed(JobSettled):
    """The attempt failed: an exception, a timeout, or the handler said `Retry` or `Discard`.

    Each is a `JobRetried` or a `JobDiscarded`.
    """

    @property
    def exception(self) -> str:
        """The dotted name of the exception's class; the job's record has message and traceback."""
        return msgspec.json.decode(self.settlement.error or "{}", type=_Error).exception


@dataclass(frozen=True, slots=True)
class JobRetried(JobFailed):
    """The attempt failed, and another attempt follows."""


@dataclass(frozen=True, slots=True)
class JobDiscarded(JobFailed):
    """The attempt failed, and was the last."""


@dataclass(frozen=True, slots=True)
class JobSnoozed(JobSettled):
    """The handler wants to run again later; no attempt is spent."""


@dataclass(frozen=True, slots=True)
class JobComesRound(JobSettled):
    """The handler has ended this round of the job, which comes round again at its time."""


@dataclass(frozen=True, slots=True)
class JobCancelled(JobSettled):
    """The job was cancelled on request, before it ran or while it ran."""


@dataclass(frozen=True, slots=True)
class JobReleased(JobSettled):
    """The job goes back, no attempt spent: the worker stops, or does not know the task."""


@dataclass(frozen=True, slots=True)
class SettlementsWritten(Event):
    """`count` settlements were written to the database together, which took `seconds`."""

    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class LeasesLost(Event):
    """Settlements that were refused, because other workers have taken these jobs over."""

    jobs: tuple[JobId, ...]


@dataclass(frozen=True, slots=True)
class SessionLost(Event):
    """The worker was declared dead, or could not renew in time; it goes on with a new session."""

    session: SessionId


@dataclass(frozen=True, slots=True)
class SessionRescued(Event):
    """The session of another worker, which died, has ended; its jobs were taken back."""

    rescue: Rescue


@dataclass(frozen=True, slots=True)
class StoreLost(Event):
    """The database cannot be reached, or refuses; told again every minute while that lasts.

    `part` is the part of the worker that keeps trying: its claimer, settler, session or upkeep.
    """

    error: Exception
    part: str


@dataclass(frozen=True, slots=True)
class StoreRecovered(Event):
    """The database answers this `part` of the worker again."""

    part: str


@dataclass(frozen=True, slots=True)
class Tidied(Event):
    """Upkeep has given space back, or the like; `done` has a line for each thing."""

    done: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TaskUnknown(Event):
    """A job of a task that this worker does not have was given back for others."""

    job: ClaimedJob


@dataclass(frozen=True, slots=True)
class CronJobsMade(Event):
    """This worker has made the jobs of these due times of a cron entry, in the same order.

    A due time at which the entry's unique key was taken is not among them.
    """

    entry: str
    due: tuple[datetime, ...]
    jobs: tuple[JobId, ...]


@dataclass(frozen=True, slots=True)
class CronRunsMissed(Event):
    """Due times of a cron entry, from `first` on, came to nothing, since no worker was there."""

    entry: str
    first: datetime


class _Error(msgspec.Struct):
    exception: str = ""


ENDINGS: dict[Move, type[JobSettled]] = {
    Move.COMPLETE: JobCompleted,
    Move.RETRY: JobRetried,
    Move.DISCARD: JobDiscarded,
    Move.SNOOZE: JobSnoozed,
    Move.AGAIN: JobComesRound,
    Move.CANCEL: JobCancelled,
    Move.RELEASE: JobReleased,
}
"""The kind of `JobSettled` that each move of a settlement is."""
