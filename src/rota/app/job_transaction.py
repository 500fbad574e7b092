"""The transaction of a handler: what it writes and its job's completion commit together.

    @rota.task
    async def ship(ctx: Context, order: int) -> None:
        async with ctx.transaction() as tx:
            await tx.aexecute("UPDATE orders SET shipped = true WHERE id = %s", [order])

The completion is the store's own settlement, with its fence: where the worker's session was lost
the lease is not there any more, and everything is rolled back. It is written last, so that what it
locks is locked for a moment only. The transaction is tagged at the block's begin: where the handler
has ended it, the completion is not written into the next one.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from msgspec.structs import replace

from rota.app.member import as_member
from rota.app.successor import successor, wants_result
from rota.app.task import Task
from rota.database.callers_transaction import AwaitedJoined, Joined
from rota.database.database import Database
from rota.database.transaction_block import TransactionBlock
from rota.errors import ConfigError, LeaseLost, StoreUnavailable, TransactionEnded
from rota.model.flow import wanted
from rota.model.job import ClaimedJob, Following, LeaseId, SessionId
from rota.model.settlement import Settled, Settlement, completed
from rota.store.execute import adrive, drive
from rota.store.operation import Operation, with_apart

if TYPE_CHECKING:
    from rota.app.enqueuing import Enqueuing
    from rota.model.flow import Graft

T = TypeVar("T")

Transact = Callable[[ClaimedJob, object, bool], "JobTransaction"]
"""Makes the transaction of a job: on this connection, committed by Rota or not."""

Flow = Generator[Callable[[], Any], Any, None]
"""What is to be done: calls, of which each is given its answer. Async code awaits these."""


class Stage(Enum):
    """How far a run has come with its transaction."""

    NONE = "there is none, or it was rolled back"
    OPEN = "the handler is in its block"
    SETTLED = "the completion is written, and in doubt: it may not be committed yet"
    COMPLETED = "the completion is committed"
    UNSEEN = "nobody knows: the process that ran the handler was lost sight of"


class Completion:
    """How the job of one run is completed by a transaction; made by the worker.

    Attributes:
        job: The job, with the lease that it has now.
        task: Its task.
        stage: How far the run has come.
        settlement: What was written, once that is known.
        following: The successors that were enqueued with it.
        failed_late: Whether the handler failed after that, which is logged.
    """

    def __init__(
        self,
        job: ClaimedJob,
        session: SessionId,
        task: Task[..., Any, Any],
        *,
        moving: Callable[[], AbstractContextManager[Callable[[LeaseId, LeaseId], None]]],
        doubtful: Callable[[], None],
    ) -> None:
        self.job = job
        self.session = session
        self.task = task
        self.stage = Stage.NONE
        self.settlement: Settlement | None = None
        self.following: Sequence[Following] = ()
        self.failed_late = False
        self._moving = moving
        self._doubtful = doubtful

    @property
    def over(self) -> bool:
        """Whether nothing that the handler says changes anything any more, or may not."""
        return self.stage in {Stage.SETTLED, Stage.COMPLETED, Stage.UNSEEN}

    def open(self) -> None:
        """Begin.

        Raises:
            ConfigError: The run has had its transaction, or is in one.
        """
        if self.stage is not Stage.NONE:
            message = (
                f"job {self.job.id} already has a transaction, and a job completes only once; put "
                "everything into one block"
            )
            raise ConfigError(message)
        self.stage = Stage.OPEN

    def single_out(self, database: Database) -> None:
        """Give the job a lease of its own, and note which.

        Raises:
            LeaseLost: The job is not held by this worker any more.
            StoreUnavailable: It is not known; the worker looks for leases that it has not noted.
        """
        job = self.job
        with self._moving() as moved:
            try:
                lease = database.run(database.store.single_out(self.session, job.id, job.lease))
            except StoreUnavailable:
                self._doubtful()
                raise
            if lease is not None and lease != job.lease:
                moved(job.lease, lease)
                self.job = replace(job, lease=lease)
        self.require(held=lease is not None)

    def settle(self, result: str | None, value: object, graft: "Graft | None" = None) -> Settlement:
        """The settlement that completes the job: JSON result, successor, and additions to its flow.

        Raises:
            RotaError: The successor cannot be enqueued.
        """
        job, task = self.job, self.task
        settlement = completed(job, task.keeps[job.queue].completed, result)
        if job.headers is not None:
            settlement = as_member(settlement, job, task, value, graft)
        if task.chained or job.headers is not None:
            follower = successor(settlement, job, task, value)
            settlement = settlement._replace(successor=follower)
        self.settlement = settlement
        self.stage = Stage.SETTLED
        return settlement

    def settled(self, answer: Settled) -> None:
        """Take the store's answer.

        Raises:
            LeaseLost: The job is not held by this worker any more.
        """
        self.require(held=not answer)
        self.following = answer.following

    def require(self, *, held: bool) -> None:
        """Refuse to go on where the fence has refused.

        Raises:
            LeaseLost: The job is not held by this worker any more.
        """
        if not held:
            self.stage = Stage.NONE
            message = (
                f"job {self.job.id} was taken over by another worker; nothing in this transaction "
                "was stored"
            )
            raise LeaseLost(message)


class JobTransaction(TransactionBlock):
    """Commits the handler's writes and the job's completion together, or neither; for one block.

    Made by `Context.transaction`. In a direct call of the task it is just a transaction.
    """

    def __init__(
        self, database: Database, completion: Completion | None, conn: object, *, commit: bool
    ) -> None:
        if conn is None and not commit:
            message = "commit=False needs conn=...: only Rota can commit a connection of its own"
            raise ConfigError(message)
        self._database = database
        self._completion = completion
        self._conn = conn
        self._commit = commit
        self._before: int | None = None
        self._result: str | None = None
        self._value: object = None
        self.added: Callable[[], Graft | None] = lambda: None

    @property
    def own(self) -> bool:
        """Whether the connection is Rota's."""
        return self._conn is None

    def result(self, value: Any) -> None:
        """Store this as the job's result, with the completion.

        What the handler returns later is not stored.

        Raises:
            ConfigError: The task was not declared with `store_result=True`, and nothing else takes
                its result.
            ArgsError: It cannot be stored, or does not fit the task's annotation.
        """
        if self._completion is None:
            return
        job, task = self._completion.job, self._completion.task
        if task.store_result:
            self._result = task.result_codec.encode(value)
        elif not wants_result(job, task) and not wanted(job.headers):
            message = f"task {task.name!r} stores no results; declare it with store_result=True"
            raise ConfigError(message)
        self._value = value

    # The block -------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        joined = self._database.joined(self._conn, **self._how)
        drive(self._entering(_now, joined), _now)
        self._joined = joined
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        joined, self._joined = self._joined, None
        if joined is not None:
            drive(self._leaving(joined, error), _now)

    async def __aenter__(self) -> Self:
        joined = await self._database.ajoined(self._conn, **self._how)
        await adrive(self._entering(self._database.aside, joined), _now)
        self._awaited = joined
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        joined, self._awaited = self._awaited, None
        if joined is not None:
            await adrive(self._leaving(joined, error), _now)

    @property
    def _how(self) -> dict[str, bool]:
        return {"tagged": self._completion is not None, "commit": self._commit}

    def _entering(self, run: Callable[..., Any], joined: Joined | AwaitedJoined) -> Flow:
        completion = self._completion
        if completion is None:
            yield joined.begin
            return
        completion.open()
        try:
            yield partial(run, partial(completion.single_out, self._database))
            yield joined.begin
            try:
                self._before = yield partial(joined.tag, self._database.store.tag())
            except BaseException:
                if self._commit:
                    yield joined.rollback
                raise
        except BaseException:
            completion.stage = Stage.NONE
            raise

    def _leaving(self, joined: Joined | AwaitedJoined, error: BaseException | None) -> Flow:
        completion = self._completion
        if error is not None:
            if completion is not None:
                completion.stage = Stage.NONE
            if self._commit:
                yield joined.rollback
            return
        try:
            if completion is not None:
                settle = self._settling(completion)
                completion.settled((yield partial(joined.run, settle)))
            if self._commit:
                yield joined.commit
        except BaseException as failure:
            if completion is not None and isinstance(failure, TransactionEnded):
                completion.stage = Stage.NONE
            if self._commit:
                yield joined.rollback
            raise
        if completion is not None and self._commit:
            completion.stage = Stage.COMPLETED

    def _settling(self, completion: Completion) -> Operation[Settled]:
        settlement = completion.settle(self._result, self._value, self.added())
        store = self._database.store
        settle = store.settle_tagged(completion.session, settlement, self._before)
        if settlement.successor is None:
            return settle
        # A lane is made for the first job of a queue, which is over in a moment.
        return with_apart(settle, self._database.apart)


def without_job(enqueuing: "Enqueuing") -> Transact:
    """For direct calls of a task: transactions that complete nothing."""

    def transact(_: ClaimedJob, conn: object, commit: bool) -> JobTransaction:  # noqa: FBT001
        return JobTransaction(enqueuing.database, None, conn, commit=commit)

    return transact


def _now(call: Callable[[], T]) -> T:
    return call()
