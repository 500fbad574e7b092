"""What happens inside Rota, told to subscribers: the one instrumentation seam.

Logging (`rota.log`), metrics and tests subscribe to events. A subscriber that raises is logged and
never stops the work. Events are not sent anywhere; they live in the process that caused them. An
event of a kind without subscribers is not even made.
"""

import logging
from datetime import datetime

import msgspec

from rota.model.job import ClaimedJob, JobId, Rescue, SessionId
from rota.model.settlement import Settlement
from rota.model.states import Move

logger = logging.getLogger("rota")


class Event(msgspec.Struct, frozen=True):
    """Something happened."""


class JobsEnqueued(Event, frozen=True):
    """This process has stored jobs; the caller's transaction may still be rolled back."""

    task: str
    queue: str
    jobs: tuple[JobId, ...]


class WorkerStarted(Event, frozen=True):
    """A worker has a session and begins to claim; it runs up to `concurrency` jobs at once."""

    session: SessionId
    queues: tuple[str, ...]
    concurrency: int = 0


class WorkerStopping(Event, frozen=True):
    """A worker claims no more; its `running` jobs have `grace` seconds left."""

    grace: float
    running: int = 0


class QueueStrange(Event, frozen=True):
    """A worker starts on a queue that none of its tasks names, and that has never had a job.

    `queue` may be a pattern; `nearest` is the most similar name, if there is one.
    """

    queue: str
    nearest: str | None


class PausedLeft(Event, frozen=True):
    """A worker that drains stops, and leaves `count` jobs in a queue that is paused."""

    queue: str
    count: int


class UnknownLeft(Event, frozen=True):
    """A draining worker stops and leaves `count` jobs whose task no worker of their queue knows."""

    queue: str
    task: str
    count: int


class WorkerStopped(Event, frozen=True):
    """A worker has ended; `released` jobs went back unharmed."""

    session: SessionId
    released: int


class ChildReplaced(Event, frozen=True):
    """A child process has run as many jobs as it may, or needs too much memory; another one follows.

    `memory` is in bytes, and known where the worker has a `max_memory`.
    """

    pid: int
    jobs: int
    memory: int | None


class LifespanOverdue(Event, frozen=True):
    """A lifespan took longer to end than its `timeout` in seconds, and was abandoned."""

    lifespan: str
    timeout: float


class LifespanRaised(Event, frozen=True):
    """A lifespan raised an exception as it ended."""

    lifespan: str
    error: BaseException


class JobsStaged(Event, frozen=True):
    """The time of `count` jobs has come: they are available now."""

    count: int


class JobsClaimed(Event, frozen=True):
    """A claim has got `count` jobs (perhaps none), after so many `seconds`."""

    count: int
    seconds: float


class LimitsReached(Event, frozen=True):
    """A claim has taken the last places of these limits; further jobs of them would wait."""

    limits: tuple[str, ...]


class JobStarted(Event, frozen=True):
    """A handler is about to be called."""

    job: ClaimedJob


class JobOverdue(Event, frozen=True):
    """A job's time is up, and its thread cannot be stopped; its context says cancelled."""

    job: ClaimedJob


class JobExpired(Event, frozen=True):
    """A job came too late to begin, as its `expires` says; it is cancelled."""

    job: ClaimedJob


class JobSettled(Event, frozen=True):
    """A job leaves the worker, and its settlement is on its way to the database.

    Each is of one of the finer kinds that follow.
    """

    job: ClaimedJob
    settlement: Settlement


class JobCompleted(JobSettled, frozen=True):
    """The handler returned."""


class JobFailed(JobSettled, frozen=True):
    """The attempt failed: an exception, a timeout, or the handler said `Retry` or `Discard`.

    Each is a `JobRetried` or a `JobDiscarded`.
    """

    @property
    def exception(self) -> str:
        """The dotted name of the exception's class; the job's record has message and traceback."""
        return msgspec.json.decode(self.settlement.error or "{}", type=_Error).exception


class JobRetried(JobFailed, frozen=True):
    """The attempt failed, and another attempt follows."""


class JobDiscarded(JobFailed, frozen=True):
    """The attempt failed, and was the last."""


class JobSnoozed(JobSettled, frozen=True):
    """The handler wants to run again later; no attempt is spent."""


class JobComesRound(JobSettled, frozen=True):
    """The handler has ended this round of the job, which comes round again at its time."""


class JobCancelled(JobSettled, frozen=True):
    """The job was cancelled on request, before it ran or while it ran."""


class JobReleased(JobSettled, frozen=True):
    """The job goes back, no attempt spent: the worker stops, or does not know the task."""


class SettlementsWritten(Event, frozen=True):
    """`count` settlements were written to the database together, which took `seconds`."""

    count: int
    seconds: float


class LeasesLost(Event, frozen=True):
    """Settlements that were refused, because other workers have taken these jobs over."""

    jobs: tuple[JobId, ...]


class RelayInterrupted(Event, frozen=True):
    """A relay could not send: its jobs stay there, and are tried again after `wait` seconds."""

    relay: str
    error: Exception
    wait: float


class SessionLost(Event, frozen=True):
    """The worker was declared dead, or could not renew in time; it goes on with a new session."""

    session: SessionId


class SessionRescued(Event, frozen=True):
    """The session of another worker, which died, has ended; its jobs were taken back."""

    rescue: Rescue


class StoreLost(Event, frozen=True):
    """The database cannot be reached, or refuses; repeated every minute while that lasts.

    `part` is the part of the worker that keeps trying: its claimer, settler, session or upkeep.
    """

    error: Exception
    part: str


class StoreRecovered(Event, frozen=True):
    """The database answers this `part` of the worker again."""

    part: str


class Tidied(Event, frozen=True):
    """Upkeep has given space back, or the like; `done` has a line for each thing."""

    done: tuple[str, ...]


class TaskUnknown(Event, frozen=True):
    """A job of a task that this worker does not have was given back for others."""

    job: ClaimedJob


class ClusterChanged(Event, frozen=True):
    """A cluster that this worker uses runs so many bundles of jobs at once from now on.

    `lacking` are the tasks whose resources none of its nodes has; their jobs wait.
    """

    engine: str
    slots: int
    lacking: tuple[str, ...]


class CronJobsMade(Event, frozen=True):
    """This worker has made the jobs of these due times of a cron entry, in the same order.

    A due time at which the entry's unique key was taken is not among them.
    """

    entry: str
    due: tuple[datetime, ...]
    jobs: tuple[JobId, ...]


class CronRunsMissed(Event, frozen=True):
    """Due times of a cron entry, from `first` on, were missed, since no worker was running."""

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
