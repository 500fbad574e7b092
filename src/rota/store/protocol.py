"""The seam: every operation a backend offers. The rest of Rota knows nothing else of databases.

A `Store` builds operations; a `Connection` runs them. All operations act on batches and say which
ids they changed; what they did not change is not in the answer. A backend may need one statement
or ten for an operation, and may keep jobs as a log (PostgreSQL) or as rows (SQLite): one
conformance suite, `tests/store`, holds for all of them.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rota.job import (
    ClaimedJob,
    JobFilter,
    JobId,
    JobRecord,
    JobSpec,
    Keys,
    LeaseId,
    Look,
    QueueRecord,
    Renewal,
    Rescue,
    SessionId,
    SessionInfo,
    Staging,
)
from rota.placed import Placed
from rota.settlement import Settlement
from rota.states import State
from rota.store.operation import Operation

if TYPE_CHECKING:
    from rota.store.facts import Facts, HorizonFacts, LaneFacts, SessionFacts

T = TypeVar("T")


class Connection(Protocol):
    """A blocking connection of Rota's own; one thread uses it at a time.

    It connects when it is first used, and again after it was lost. Driver errors surface as
    `StoreError`: `StoreUnavailable` where trying again later makes sense.
    """

    def run(self, operation: Operation[T]) -> T:
        """Run an operation in the kind of transaction it asks for.

        Raises:
            StoreUnavailable: The database cannot be reached. The outcome of an operation that was
                under way is not known.
        """
        ...

    def close(self) -> None:
        """End the connection; running another operation opens it again."""
        ...


class Transaction(Protocol):
    """An open transaction of Rota's own."""

    @property
    def connection(self) -> Any:
        """The driver's connection, for the user's own statements."""
        ...

    def commit(self) -> None:
        """Make everything done in it permanent, and end it."""
        ...

    def rollback(self) -> None:
        """Undo everything done in it, and end it."""
        ...


class Waker(Protocol):
    """Tells a worker that has nothing to do that there may be something now."""

    @property
    def connection(self) -> Connection:
        """The connection it sleeps on; between two sleeps it is free for operations."""
        ...

    def wait(self, timeout: float) -> bool:
        """Sleep until woken or for `timeout` seconds; whether something woke it."""
        ...

    def busy(self) -> None:
        """There is work in plenty: nobody needs to wake this worker until it waits again."""
        ...

    def wake(self) -> None:
        """Wake the sleeper from another thread of this process."""
        ...

    def close(self) -> None:
        """Stop listening, and close the connection."""
        ...


class Store(Protocol):
    """One database, as Rota sees it."""

    name: str
    """The backend's name: `postgres` or `sqlite`."""

    # Connections ---------------------------------------------------------------------------

    def connect(self) -> Connection:
        """A new connection of Rota's own; nothing is opened yet."""
        ...

    def transaction(self) -> Transaction:
        """Begin a transaction of Rota's own."""
        ...

    def waker(self, queues: Sequence[str]) -> Waker:
        """Something a worker of these queues can sleep on."""
        ...

    def close(self) -> None:
        """Close what the store itself keeps open."""
        ...

    # Asking for work -----------------------------------------------------------------------

    def enqueue(self, spec: JobSpec, args: Sequence[str], *, copy: bool) -> Operation[list[JobId]]:
        """Store one job per element of `args` (JSON text); their ids, in the same order.

        `copy` says that the connection can do what a `Copy` request asks.
        """
        ...

    def enqueue_keyed(
        self, spec: JobSpec, args: Sequence[str], keys: Keys
    ) -> Operation[list[Placed]]:
        """`enqueue` for jobs that have keys; what became of each, in the same order."""
        ...

    def get(self, jobs: Sequence[JobId]) -> Operation[list[JobRecord]]:
        """The jobs with these ids, in the order asked for; ids of no job are left out."""
        ...

    def list_jobs(self, wanted: JobFilter) -> Operation[list[JobRecord]]:
        """The newest jobs first, at most `wanted.limit` of them."""
        ...

    def cancel(self, jobs: Sequence[JobId]) -> Operation[dict[JobId, State]]:
        """Cancel jobs that have not started, ask running ones to stop.

        A cancelled job stays readable for a day. Returns the state of each job it found
        afterwards: `cancelled`, or `running` where the
        request now waits for the worker, or the finished state in which the job was anyway.
        """
        ...

    def retry(self, jobs: Sequence[JobId]) -> Operation[list[JobId]]:
        """Make jobs available now, with all their attempts: finished ones and waiting ones."""
        ...

    def retry_discarded(self, queue: str | None, task: str | None) -> Operation[list[JobId]]:
        """Make every discarded job (of a queue, of a task) available again."""
        ...

    def delete(self, jobs: Sequence[JobId]) -> Operation[list[JobId]]:
        """Remove jobs that are not running, and all that is known of them."""
        ...

    def queues(self) -> Operation[list[QueueRecord]]:
        """All queues that ever had a job or were paused, by name, with their counts.

        The counts are exact in one moment, and cost the same whatever the number of jobs.
        """
        ...

    def pause(self, queue: str) -> Operation[bool]:
        """Stop claims from a queue; false if it was paused already. Creates the queue."""
        ...

    def resume(self, queue: str) -> Operation[bool]:
        """Allow claims from a queue again; false if it was not paused."""
        ...

    # Working -------------------------------------------------------------------------------

    def open_session(self, info: SessionInfo) -> Operation[SessionId]:
        """Register a worker."""
        ...

    def renew(self, session: SessionId) -> Operation[Renewal]:
        """Keep a session alive, and learn which of its jobs shall be cancelled."""
        ...

    def close_session(self, session: SessionId) -> Operation[None]:
        """End a session in order; jobs it still holds go back at once, no attempt spent.

        Those that somebody wants cancelled are cancelled.
        """
        ...

    def release(self, session: SessionId, held: Sequence[LeaseId]) -> Operation[list[JobId]]:
        """Give back the leases of a session but those in `held`; no attempt is spent.

        For a worker that has lost the answer to a claim: it cannot know what it was given. Jobs
        that somebody wants cancelled are cancelled. Returns the jobs that went back.
        """
        ...

    def claim(
        self, session: SessionId, queues: Sequence[str], limit: int, *, woken: bool = False
    ) -> Operation[list[ClaimedJob]]:
        """Lease up to `limit` available jobs of queues that are not paused, in their order.

        `woken` is a hint: there probably is something, so it need not be looked for first.

        Raises:
            LeaseLost: The session is not alive any more. Where there is nothing to claim, the
                answer may be empty instead.
        """
        ...

    def settle(
        self, session: SessionId, settlements: Sequence[Settlement]
    ) -> Operation[list[JobId]]:
        """Write settlements of jobs that the session still holds under the lease they name.

        Returns the ids it refused: their lease is gone, nothing was written for them.
        """
        ...

    def look(self, queues: Sequence[str]) -> Operation[Look]:
        """What there is to do; changes nothing, and may say that there is more than there is."""
        ...

    def stage(self, limit: int) -> Operation[Staging]:
        """Make due jobs available, in the order of their time."""
        ...

    def rescue(self) -> Operation[list[Rescue]]:
        """Take the jobs of dead sessions back.

        An attempt is spent. Those without another one are discarded, those that somebody wanted
        cancelled are cancelled, the others are available again.
        """
        ...

    def squeeze(self) -> Operation[bool]:
        """Add what has changed the counts to their totals, so that `queues` has less to add up.

        Called about once a second while there is work; whether something was written. `queues` is
        exact without it.
        """
        ...

    def tidy(self) -> Operation[list[str]]:
        """One round of housekeeping: turn and truncate, prune what is past its retention.

        Returns what was done, one sentence each, for the log.
        """
        ...

    # Looking on ----------------------------------------------------------------------------

    def lanes(self) -> "Operation[list[LaneFacts]]":
        """Queues and priorities, with how long ago the next job to start was enqueued.

        One without available jobs may be missing.
        """
        ...

    def workers(self) -> "Operation[list[SessionFacts]]":
        """The workers that have not closed their sessions, dead ones too until they are rescued."""
        ...

    def horizon(self) -> "Operation[HorizonFacts]":
        """Who keeps old rows from being removed, as far as the backend knows of such a thing."""
        ...

    def product(self) -> Operation[str]:
        """The database's name and version, for people."""
        ...

    # Looking at the database itself --------------------------------------------------------

    def health(self, *, thorough: bool = False) -> "Operation[Facts]":
        """Facts about the database's health, at a cost that does not grow with the jobs.

        Works without tables, with those of another version, and with few rights; the facts say
        what could not be seen. `thorough` allows what takes as long as the file is large.
        """
        ...

    def hears(self, timeout: float) -> bool | None:
        """Whether a notification comes back through new connections within so many seconds.

        None where the backend does not rely on any.
        """
        ...

    # Schema --------------------------------------------------------------------------------

    def schema_version(self) -> Operation[int]:
        """The version of Rota's tables in the database; 0 where there are none."""
        ...

    def migrations(self) -> Mapping[int, str]:
        """The SQL that leads to each version, from 1 on."""
        ...

    def migrate(self, version: int, sql: str) -> Operation[None]:
        """Apply one migration and record its version, in one transaction."""
        ...
