"""Working: the part of the seam that workers use, with their upkeep."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from rota.model.job import ClaimedJob, JobId, LeaseId, Renewal, Rescue, SessionId, SessionInfo
from rota.model.look import Look, Staging
from rota.model.notes import Note
from rota.model.settlement import Completions, Settled, Settlement
from rota.store.operation import Operation

if TYPE_CHECKING:
    from rota.store.following import Follow
    from rota.store.relaying import Hand, Relaying


class Working(Protocol):
    """What a store does for workers."""

    def open_session(self, info: SessionInfo) -> Operation[SessionId]:
        """Register a worker."""
        ...

    def renew(self, session: SessionId) -> Operation[Renewal]:
        """Keep a session alive, and learn which of its jobs shall be cancelled."""
        ...

    def know(self, session: SessionId, tasks: Sequence[str]) -> Operation[None]:
        """From now on a session knows these tasks, and no others."""
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

        Of the queues, some may be named by patterns (`rota.model.patterns`), here as in `look` and
        `waker`. `woken` is a hint: there probably is something, so it need not be looked for first.
        `most` says for single queues how many of their jobs it may be. `tasks` are those that the
        worker knows; jobs of others may be among those it gets, until they are settled as
        `unknown`.

        Raises:
            LeaseLost: The session is not alive any more. Where there is nothing to claim, the
                answer may be empty instead.
        """
        ...

    def hand_over(self, session: SessionId, relaying: "Relaying", hand: "Hand") -> Operation[int]:
        """Hand over the next jobs of a relay and settle them; how many.

        In log order, and one relay of a queue at a time: 0 also where another one is at it. If it
        comes to nothing, the jobs have their places again, once a dead relay's session is rescued
        at the latest.

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

        `completions` say of more jobs that they have completed. The successors of those that it
        held are enqueued in the same transaction. Returns the ids it refused: their lease is gone,
        and nothing was written for them.
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

    def lease_of(self, session: SessionId, job: JobId) -> Operation[LeaseId | None]:
        """Under which lease a session holds a job at this moment; `None` where it does not.

        For a worker that has lost sight of the process that ran it, and may have singled it out.
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
        """`settle` for a job singled out; `None` if another transaction has its lease locked."""
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
        cancel are cancelled. `keep` says for single queues how many seconds discarded jobs stay.
        The successors that `follow` gives for discarded ones are enqueued in the same transaction.
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
