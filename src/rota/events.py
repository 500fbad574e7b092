"""What happens inside Rota, told to whoever listens: the one instrumentation seam.

Logging, metrics and tests subscribe to these. A subscriber that raises is reported once and never
stops the work. Events are not sent anywhere; they live in the process that caused them. Where
nobody listens to a kind of event, none is made.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from rota.job import ClaimedJob, JobId, Rescue, SessionId
from rota.settlement import Settlement

logger = logging.getLogger("rota")


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened."""


@dataclass(frozen=True, slots=True)
class WorkerStarted(Event):
    """A worker has a session and begins to claim."""

    session: SessionId
    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WorkerStopped(Event):
    """A worker has ended; `released` jobs went back unharmed."""

    session: SessionId
    released: int


@dataclass(frozen=True, slots=True)
class JobsClaimed(Event):
    """A claim was answered: with how many jobs (perhaps none), after how many seconds."""

    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class JobStarted(Event):
    """A handler is about to be called."""

    job: ClaimedJob


@dataclass(frozen=True, slots=True)
class JobSettled(Event):
    """A run has ended and its settlement is on its way to the database."""

    job: ClaimedJob
    settlement: Settlement


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
    """The database cannot be reached; the worker keeps trying."""

    error: Exception


@dataclass(frozen=True, slots=True)
class StoreRecovered(Event):
    """The database answers again."""


@dataclass(frozen=True, slots=True)
class TaskUnknown(Event):
    """A job of a task that this worker does not have was given back for others."""

    job: ClaimedJob


@dataclass(frozen=True, slots=True)
class CronJobsMade(Event):
    """This worker has made the jobs of these due times of a cron entry, in the same order."""

    entry: str
    due: tuple[datetime, ...]
    jobs: tuple[JobId, ...]


@dataclass(frozen=True, slots=True)
class CronRunsMissed(Event):
    """Due times of a cron entry came to nothing, since no worker was there: from this one on."""

    entry: str
    first: datetime


E = TypeVar("E", bound=Event)


class Events:
    """Delivers events to their subscribers, in the thread in which they happen."""

    def __init__(self) -> None:
        self._subscribers: dict[type[Event], list[Callable[[Event], None]]] = defaultdict(list)

    def subscribe(self, kind: type[E], handler: Callable[[E], None]) -> Callable[[], None]:
        """Call `handler` with every event of `kind`; returns the function that ends it."""
        handlers = self._subscribers[kind]
        handlers.append(handler)  # type: ignore[arg-type]  # called with events of its kind only
        return lambda: handlers.remove(handler)  # type: ignore[arg-type]

    def wanted(self, kind: type[Event]) -> bool:
        """Whether anybody listens to `kind`; hot paths ask before they make an event."""
        return bool(self._subscribers.get(kind))

    def listeners(self, kind: type[Event]) -> Sequence[object]:
        """Those who listen to `kind`, now and later: for who asks once per job."""
        return self._subscribers[kind]

    def emit(self, event: Event) -> None:
        """Tell the subscribers of the event's kind."""
        for handler in tuple(self._subscribers.get(type(event), ())):
            try:
                handler(event)
            except Exception:
                logger.exception("a subscriber to %s failed", type(event).__name__)
