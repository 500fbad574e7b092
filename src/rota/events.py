"""What happens inside Rota, told to whoever listens: the one instrumentation seam.

Logging (`rota.log`), metrics and tests subscribe to these. A subscriber that raises is reported once and never
stops the work. Events are not sent anywhere; they live in the process that caused them. Where
nobody listens to a kind of event, none is made.
"""

import inspect
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from rota.errors import ConfigError
from rota.model.job import ClaimedJob, JobId, Rescue, SessionId
from rota.model.settlement import Settlement
from rota.model.states import Move

logger = logging.getLogger("rota")


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened."""


@dataclass(frozen=True, slots=True)
class JobsEnqueued(Event):
    """Jobs were stored, by this process; a transaction of the caller's may still be rolled back."""

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
    """A worker claims no more; what runs has `grace` seconds left."""

    grace: float


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
class JobsStaged(Event):
    """So many jobs, whose time has come, are available now."""

    count: int


@dataclass(frozen=True, slots=True)
class JobsClaimed(Event):
    """A claim was answered: with how many jobs (perhaps none), after how many seconds."""

    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class LimitsReached(Event):
    """A claim has taken the last places of these limits; more jobs of theirs would wait."""

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
class JobSettled(Event):
    """A job leaves the worker, and its settlement is on its way to the database.

    Each one is of a finer kind; all of these follow.
    """

    job: ClaimedJob
    settlement: Settlement


@dataclass(frozen=True, slots=True)
class JobCompleted(JobSettled):
    """The handler returned."""


@dataclass(frozen=True, slots=True)
class JobFailed(JobSettled):
    """The attempt failed: an exception, a timeout, or the handler said `Retry` or `Discard`.

    Each one is a `JobRetried` or a `JobDiscarded`.
    """

    @property
    def exception(self) -> str:
        """The dotted name of the exception's class; the job's record has all of it."""
        return msgspec.json.decode(self.settlement.error or "{}", type=_Error).exception


@dataclass(frozen=True, slots=True)
class JobRetried(JobFailed):
    """The attempt failed, and another one follows."""


@dataclass(frozen=True, slots=True)
class JobDiscarded(JobFailed):
    """The attempt failed, and it was the last one."""


@dataclass(frozen=True, slots=True)
class JobSnoozed(JobSettled):
    """The handler wants to run again later; no attempt is spent."""


@dataclass(frozen=True, slots=True)
class JobComesRound(JobSettled):
    """The handler has ended this round of the job, which comes again at its time."""


@dataclass(frozen=True, slots=True)
class JobCancelled(JobSettled):
    """Somebody wanted the job to be cancelled, and it does not run, or not any more."""


@dataclass(frozen=True, slots=True)
class JobReleased(JobSettled):
    """The job goes back unspent: the worker stops, or does not know the task."""


@dataclass(frozen=True, slots=True)
class SettlementsWritten(Event):
    """A batch of settlements is in the database: how many, and how many seconds it took."""

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
    """Another worker's session has ended without a word; its jobs were taken back."""

    rescue: Rescue


@dataclass(frozen=True, slots=True)
class StoreLost(Event):
    """The database cannot be reached, or refuses; said again every minute while that lasts.

    `part` of the worker keeps trying: its claimer, settler, session or upkeep.
    """

    error: Exception
    part: str


@dataclass(frozen=True, slots=True)
class StoreRecovered(Event):
    """The database answers `part` of the worker again."""

    part: str


@dataclass(frozen=True, slots=True)
class Tidied(Event):
    """Upkeep has turned rings, emptied segments, or the like; one line for each."""

    done: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TaskUnknown(Event):
    """A job of a task that this worker does not have was given back for others."""

    job: ClaimedJob


@dataclass(frozen=True, slots=True)
class CronJobsMade(Event):
    """This worker has made the jobs of these due times of a cron entry, in the same order.

    A due time at which there was a unique job of the entry's key is not among them.
    """

    entry: str
    due: tuple[datetime, ...]
    jobs: tuple[JobId, ...]


@dataclass(frozen=True, slots=True)
class CronRunsMissed(Event):
    """Due times of a cron entry came to nothing, since no worker was there: from this one on."""

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

E = TypeVar("E", bound=Event)


class Events:
    """Delivers events to their subscribers, in the thread in which they happen.

    Who subscribes to a kind hears all kinds that derive from it: `Event` is everything.
    """

    def __init__(self) -> None:
        self._subscribers: dict[type[Event], list[Callable[[Event], None]]] = defaultdict(list)
        # Of each kind: who subscribed to it, to one that it derives from, or to a finer one.
        self._listeners: dict[type[Event], list[object]] = defaultdict(list)

    def subscribe(self, kind: type[E], handler: Callable[[E], None]) -> Callable[[], None]:
        """Call `handler` with every event of `kind`; returns the function that ends it.

        Raises:
            ConfigError: The handler is a coroutine function, which nobody would await.
        """
        if inspect.iscoroutinefunction(handler):
            message = (
                f"{handler.__qualname__} is async, but events are told to plain functions; "
                "let one put the event where your event loop finds it (call_soon_threadsafe)"
            )
            raise ConfigError(message)
        lists: list[list[Any]] = [self._subscribers[kind]]
        lists += [self._listeners[one] for one in (*_below(kind), *_above(kind))]
        for each in lists:
            each.append(handler)

        def end() -> None:
            while lists:
                lists.pop().remove(handler)

        return end

    def wanted(self, kind: type[Event]) -> bool:
        """Whether anybody listens to `kind`; hot paths ask before they make an event."""
        return bool(self._listeners.get(kind))

    def listeners(self, kind: type[Event]) -> Sequence[object]:
        """Those who listen to `kind`, now and later: for who asks once per job."""
        return self._listeners[kind]

    def emit(self, event: Event) -> None:
        """Tell the subscribers of the event's kind, and of those that it derives from."""
        for kind in type(event).__mro__[:-1]:
            for handler in tuple(self._subscribers.get(kind, ())):
                try:
                    handler(event)
                except Exception:
                    logger.exception("a subscriber to %s failed", type(event).__name__)

    def settled(self, job: ClaimedJob, settlement: Settlement) -> None:
        """Emit the kind of `JobSettled` that this settlement is, if anybody wants it."""
        kind = ENDINGS[settlement.move]
        if self.wanted(kind):
            self.emit(kind(job, settlement))

    @contextmanager
    def collect(self, kind: type[E]) -> Iterator[list[E]]:
        """Collect the events of a kind while the block runs: for tests.

        Example:
            `with rota.events.collect(JobFailed) as failures: …`
        """
        seen: list[E] = []
        end = self.subscribe(kind, seen.append)
        try:
            yield seen
        finally:
            end()


def _below(kind: type[Event]) -> Iterator[type[Event]]:
    """The kind itself, and all that derive from it."""
    yield kind
    for finer in kind.__subclasses__():
        yield from _below(finer)


def _above(kind: type[Event]) -> Iterator[type[Event]]:
    """The kinds from which it derives."""
    return (one for one in kind.__mro__[1:] if issubclass(one, Event))
