"""What the test kit needs of a store beside its operations: a claim of one open transaction's jobs.

A test's jobs are not committed, so no worker sees them, and a claim as workers make it would lock
what other tests wait for. These operations see the rows of the transaction they run in, and of no
other, lock nothing that another transaction waits for, and are undone by its rollback. Everything
else the kit does by the store's own operations.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from rota.model.job import ClaimedJob, JobId, SessionId
from rota.store.operation import Operation

T = TypeVar("T")

NONE = JobId(0)
"""Before all jobs."""


class Here(NamedTuple):
    """Where a connection leads: which database, and which transaction is open ("": none)."""

    database: str
    transaction: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which of the transaction's jobs are meant; `None` means any.

    Attributes:
        after: No job up to this id is the transaction's. A store that knows the rows of its
            transactions does without.
        jobs: Only these.
        but: None of these.
        queues: Only jobs of these queues.
        task: Only jobs of this task.
        limits: Whether jobs wait for the places of their limits.
    """

    after: JobId = NONE
    jobs: Collection[JobId] | None = None
    but: Collection[JobId] = ()
    queues: Collection[str] | None = None
    task: str | None = None
    limits: bool = True


class Testing(Protocol):
    """The operations on the jobs of one open transaction."""

    home: str
    """The database of the store's own connections; "" where they have to be asked."""

    def here(self) -> Operation[Here]:
        """Where the connection leads."""
        ...

    def transaction(self) -> Operation[str]:
        """Which transaction is open, where that can be told."""
        ...

    def enter(self) -> Operation[None]:
        """Begin the transaction, where the driver would do so only with the first change."""
        ...

    def shared(self) -> Operation[bool]:
        """Whether another connection can read while this transaction goes on."""
        ...

    def prepare(self, lanes: Sequence[tuple[str, int]]) -> Operation[None]:
        """Make the lanes of these queues and priorities: apart from any test, and committed.

        Else two tests that are the first to use a queue would wait for each other.
        """
        ...

    def clean(self) -> Operation[None]:
        """Give back the space that rolled back tests have left behind; apart from any test."""
        ...

    def begin(self) -> Operation[SessionId]:
        """Begin a session that only this transaction sees."""
        ...

    def unlocked(self, operation: Operation[T]) -> Operation[T]:
        """The same operation on this transaction's jobs, without locks that keep claims off."""
        ...

    def own(self, after: JobId) -> Operation[list[JobId]]:
        """The jobs that this transaction has enqueued, in their order; those deleted are missing."""
        ...

    def waiting(self, wanted: Wanted, *, due: bool) -> Operation[bool]:
        """Whether there may be jobs to claim or stage; a quick look, which may say yes in vain."""
        ...

    def stage(self, wanted: Wanted, *, due: bool) -> Operation[list[JobId]]:
        """Make waiting jobs of this transaction available; `due`: only those whose time has come."""
        ...

    def claim(
        self, session: SessionId, wanted: Wanted, limit: int = 1
    ) -> Operation[list[ClaimedJob]]:
        """Lease available jobs of this transaction, by priority, then in their order.

        Those of paused queues stay where they are.
        """
        ...

    def decide(self) -> Operation[bool]:
        """Decide what follows of jobs of flows that were cancelled, deleted or replaced.

        Returns whether others may run because of it.
        """
        ...

    def deliver(self, job: JobId) -> Operation[None]:
        """Let a job become due that waits for a signal which is there."""
        ...

    def travel(self, jobs: Sequence[JobId], seconds: float) -> Operation[None]:
        """Let everything that is known of these jobs have happened so much earlier."""
        ...
