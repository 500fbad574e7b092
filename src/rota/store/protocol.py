"""The seam: every operation a backend offers. The rest of Rota knows nothing else of databases.

A `Store` builds operations; a `Connection` runs them. All operations act on batches and say which
ids they changed; what they did not change is not in the answer. A backend may need one statement
or ten for an operation, and may keep jobs as a log (PostgreSQL) or as rows (SQLite): one
conformance suite, `tests/store`, holds for all of them.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rota.model.enqueued import Enqueued
from rota.model.job import (
    ClaimedJob,
    Cleared,
    JobFilter,
    JobId,
    JobRecord,
    LeaseId,
    Look,
    Order,
    QueueRecord,
    Reach,
    Renewal,
    Rescue,
    SessionId,
    SessionInfo,
    Staging,
)
from rota.model.notes import Note, ToldNote
from rota.model.queue_settings import QueueSettings
from rota.model.settlement import Completions, Settled, Settlement
from rota.model.states import State
from rota.store.connections import Connections
from rota.store.operation import Operation
from rota.store.versions import Versions

if TYPE_CHECKING:
    from rota.model.limit_record import LimitRecord
    from rota.store.audit import Audit
    from rota.store.cron import Cron
    from rota.store.following import Follow
    from rota.store.health import Facts, HeldFacts, HorizonFacts, LaneFacts, SessionFacts
    from rota.store.history import History
    from rota.store.relaying import Hand, Relaying
    from rota.store.standing import Standing
    from rota.store.supervision import Supervision
    from rota.store.testing import Testing


class Store(Connections, Versions, Protocol):
    """One database, as Rota sees it."""

    name: str
    """The backend's name: `postgres` or `sqlite`."""

    url: str
    """Which database it is; it may hold a password."""

    # Parts that not every database has -----------------------------------------------------

    @property
    def cron(self) -> "Cron":
        """The operations on cron entries."""
        ...

    @property
    def audit(self) -> "Audit":
        """The operations on the audit."""
        ...

    @property
    def supervision(self) -> "Supervision | None":
        """The operations on other programs' transactions; None where there are no sessions."""
        ...

    @property
    def history(self) -> "History":
        """The operations on the history: what happened in each of the last minutes."""
        ...

    @property
    def testing(self) -> "Testing":
        """The operations on the jobs of one open transaction, for the test kit."""
        ...

    def missing_file(self) -> Path | None:
        """The file that the first use would create; None where nothing is created."""
        ...

    def elsewhere(self) -> Operation[str | None]:
        """The other database to which a caller's connection leads; None: it is this one, or nothing tells."""
        ...

    def identity(self) -> Operation[str]:
        """Which database this is: one text for all URLs that lead to it, and another one for each other."""
        ...

    # Asking for work -----------------------------------------------------------------------

    def enqueue(self, order: Order) -> Operation[Enqueued]:
        """Store the jobs of an order; the id of each, in the same order, and what became of it.

        Raises:
            JobExists: A unique key is taken, and its rule says that this is an error.
        """
        ...

    def get(self, jobs: Sequence[JobId]) -> Operation[list[JobRecord]]:
        """The jobs with these ids, in the order asked for; ids of no job are left out.

        Without what their handlers told: `notes` has that.
        """
        ...

    def notes(self, jobs: Sequence[JobId]) -> Operation[dict[JobId, list[ToldNote]]]:
        """What handlers told of their runs, by job: progress and lines, in no order.

        Of each job at least the newest progress and the newest lines, as many as are kept.
        """
        ...

    def list_jobs(self, wanted: JobFilter) -> Operation[list[JobRecord]]:
        """The newest jobs first, at most `wanted.limit` of them.

        Fewer: there are no more.
        """
        ...

    def reach(self, wanted: JobFilter, most: int) -> Operation[Reach]:
        """Where to look for such jobs, so that no listing reads more than about `most` of them.

        Its `until` is that of `wanted` or lower, where there are none above.
        """
        ...

    def count_jobs(self, wanted: JobFilter) -> Operation[int]:
        """How many such jobs there are; reads them, where `queues` only adds up. No limit counts."""
        ...

    def count_listed(self, wanted: JobFilter) -> Operation[int]:
        """How many jobs `list_jobs` would give, without their being read; a limit counts."""
        ...

    def cancel(
        self,
        jobs: Sequence[JobId],
        keep: Mapping[str, float] | None = None,
        *,
        only: State | None = None,
    ) -> Operation[dict[JobId, State]]:
        """Cancel jobs that have not started, ask running ones to stop.

        A cancelled job stays readable as long as is set for its queue, else as `keep` says for
        single queues (in seconds), else a day; for a minute at the least. Returns the state of each
        job it found afterwards: `cancelled`, or `running` where the request now waits for the
        worker, or the finished state in which the job was anyway.

        `only`: those alone that are in this state just then, and no others are in the answer.
        """
        ...

    def retry(self, jobs: Sequence[JobId], *, only: State | None = None) -> Operation[list[JobId]]:
        """Make jobs available now, with all their attempts: finished ones and waiting ones.

        `only`: those alone that are in this state just then.
        """
        ...

    def delete(self, jobs: Sequence[JobId], *, only: State | None = None) -> Operation[list[JobId]]:
        """Remove jobs that are not running, and all that is known of them; `only` as in `retry`."""
        ...

    def queues(self) -> Operation[list[QueueRecord]]:
        """All queues that ever had a job, a setting or a pause, by name, with their counts.

        The counts are exact in one moment, and cost the same whatever the number of jobs.
        """
        ...

    def queue_names(self) -> Operation[list[str]]:
        """All queues that ever had a job, a setting or a pause, in no order; cheaper than `queues`."""
        ...

    def pause(self, queue: str) -> Operation[bool]:
        """Stop claims from a queue; false if it was paused already. Creates the queue."""
        ...

    def resume(self, queue: str) -> Operation[bool]:
        """Allow claims from a queue again; false if it was not paused."""
        ...

    def set_queue(
        self, queue: str, changes: Mapping[str, float | None]
    ) -> Operation[QueueSettings]:
        """Set some of a queue's settings, by their names; `None` takes one away.

        Creates the queue. Returns what is set for it afterwards.
        """
        ...

    def queue_settings(self) -> Operation[dict[str, QueueSettings]]:
        """What is set for single queues; those of which nothing is set are left out."""
        ...

    def last_job(self) -> Operation[JobId]:
        """The highest id that was given to a job; 0 where there was none."""
        ...

    def clear(
        self, queue: str, state: State, *, after: JobId, until: JobId, limit: int
    ) -> Operation[Cleared]:
        """Delete up to `limit` jobs of a queue that are in a state, those with small ids first.

        It begins behind `after` and ends with `until`. Running jobs are never deleted. What moves
        on meanwhile is left alone.
        """
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

        Those that have a request to cancel are cancelled.
        """
        ...

    def release(self, session: SessionId, held: Sequence[LeaseId]) -> Operation[list[JobId]]:
        """Give back the leases of a session but those in `held`; no attempt is spent.

        For a worker that has lost the answer to a claim: it cannot know what it was given. Jobs
        with a request to cancel are cancelled. Returns the jobs that went back.
        """
        ...

    def claim(
        self,
        session: SessionId,
        queues: Sequence[str],
        limit: int,
        *,
        woken: bool = False,
        most: Mapping[str, int] | None = None,
        tasks: Collection[str] | None = None,
    ) -> Operation[list[ClaimedJob]]:
        """Lease up to `limit` available jobs of queues that are not paused, in their order.

        Of the queues, some may be named by patterns (`rota.model.patterns`), here as in `look` and `waker`.
        `woken` is a hint: there probably is something, so it need not be looked for first. `most`
        says for single queues how many of their jobs it may be. `tasks` are those that the worker
        knows; jobs of others may be among those it gets, until they are settled as `unknown`.

        Raises:
            LeaseLost: The session is not alive any more. Where there is nothing to claim, the
                answer may be empty instead.
        """
        ...

    def hand_over(self, session: SessionId, relaying: "Relaying", hand: "Hand") -> Operation[int]:
        """Hand over the next jobs of a relay and settle them; how many.

        In log order, and one relay of a queue at a time: 0 also where another one is at it. If it comes to
        nothing, the jobs have their places again, once a dead relay's session is rescued at the latest.

        Raises:
            LeaseLost: The session is not alive any more.
            Exception: What `hand` raises.
        """
        ...

    def begin_lot(self, session: SessionId, jobs: Sequence[JobId]) -> Operation[None]:
        """Write down that a session begins these suspects, and holds nothing else that has begun.

        Raises:
            LeaseLost: The session is not alive any more.
        """
        ...

    def settle(
        self,
        session: SessionId,
        settlements: Sequence[Settlement],
        completions: Sequence[Completions] = (),
    ) -> Operation[Settled]:
        """Write settlements of jobs that the session still holds under the lease they name.

        `completions` say of more jobs that they have completed. The successors of those that it held are
        enqueued in the same transaction. Returns the ids it refused: their lease is gone, and nothing was
        written for them.
        """
        ...

    def note(self, told: Sequence[Note]) -> Operation[None]:
        """Keep what handlers told of their runs. Writing a note a second time changes nothing."""
        ...

    def look(
        self,
        queues: Sequence[str],
        *,
        tasks: Collection[str] | None = None,
        cron: bool = False,
        untidy: bool = True,
    ) -> Operation[Look]:
        """What there is to do; changes nothing, and may say that there is more than there is.

        `cron`: also when the next cron entry is due, which takes the longer, the more there are.
        `untidy`: also whether there is housekeeping that cannot wait.
        """

    def single_out(
        self, session: SessionId, job: JobId, lease: LeaseId
    ) -> Operation[LeaseId | None]:
        """Give one job of a lease a lease of its own, which it has from now on.

        A transaction of the caller's that settles it then keeps no other job waiting. Returns the
        lease, which may be the same; `None` where the session does not hold the job any more.
        """
        ...

    def tag(self) -> Operation[int | None]:
        """Tag the caller's transaction, which is to complete a job, or will begin with a change.

        Gives what `settle_tagged` needs, to tell this transaction from a later one on the same
        connection.
        """
        ...

    def settle_tagged(
        self, session: SessionId, settlement: Settlement, before: int | None
    ) -> Operation[Settled]:
        """`settle` for one job, in the caller's transaction that was tagged.

        `before` is what `tag` gave; `None` for a transaction of Rota's own.

        Raises:
            TransactionEnded: It was committed or rolled back in the meantime. Nothing was written.
        """
        ...

    def settle_free(self, session: SessionId, settlement: Settlement) -> Operation[Settled | None]:
        """`settle` for a job that was singled out, unless another transaction has its lease locked: `None`."""
        ...

    def due(self) -> Operation[float | None]:
        """In how many seconds jobs are to be staged; `None` if none waits for its time."""
        ...

    def stage(self, limit: int) -> Operation[Staging]:
        """Make due jobs available, in the order of their time."""
        ...

    def rescue(
        self, keep: Mapping[str, float] | None = None, follow: "Follow | None" = None
    ) -> Operation[list[Rescue]]:
        """Take the jobs of dead sessions back.

        The attempt of a job that was alone is spent, and it is discarded if that was its last one.
        Several jobs come back unspent, as suspects (`rota.model.suspects`). Those with a request to
        cancel are cancelled. `keep` says for single queues how many seconds discarded jobs stay. The
        successors that `follow` gives for discarded ones are enqueued in the same transaction.
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

    def limits(self, size: int, after: str = "") -> "Operation[list[LimitRecord]]":
        """The limits whose jobs wait, are held, or have started within the window; up to `size`, by key.

        Those only whose keys come after this one.
        """
        ...

    def held(
        self, limit: int, sessions: Sequence[SessionId] | None = None
    ) -> "Operation[list[HeldFacts]]":
        """The jobs that workers hold, up to `limit` of each, those first that it has had the longest.

        They run, or are about to. `sessions`: of these workers alone.
        """
        ...

    def standing(self, job: JobId) -> "Operation[Standing | None]":
        """Where a job stands that waits for a worker or for its time; `None` for any other."""
        ...

    def horizon(self) -> "Operation[HorizonFacts]":
        """Who keeps old rows from being removed, as far as the backend knows of such a thing."""
        ...

    def product(self) -> Operation[str]:
        """The database's name and version, for people."""
        ...

    def read_only(self) -> Operation[bool]:
        """Whether this role or process can only read here, as on a standby, or in a file that it may not write."""
        ...

    # Looking at the database itself --------------------------------------------------------

    def health(self) -> "Operation[Facts]":
        """Facts about the database's health, at a cost that does not grow with the jobs.

        Works without tables, with those of another version, and with few rights; the facts say
        what could not be seen.
        """
        ...

    def integrity(self) -> Operation[tuple[str, ...] | None]:
        """Read everything; the faults that were found. `None` where the backend has no such check."""
        ...

    def hears(self, timeout: float) -> bool | None:
        """Whether a notification comes back through new connections within so many seconds.

        None where the backend does not rely on any.
        """
        ...
