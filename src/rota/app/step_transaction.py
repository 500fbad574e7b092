"""A step as a transaction: what the handler writes, and that it did, commit together or not at all.

    async with ctx.step_transaction("book") as tx:
        await tx.aexecute("INSERT INTO bookings …")

The sibling of `JobTransaction`, with the same fence; the job goes on after it. Where the step is
remembered, the block ends with its first use of the transaction, so nothing is written a second
time.
"""

from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rota.app.job_steps import ANYTHING, Flow, JobSteps, decoded, encoded, later, now
from rota.database.transaction_block import TransactionBlock
from rota.model.memory import Holder, Kind, Remembered
from rota.store.execute import adrive, drive
from rota.store.operation import Operation

if TYPE_CHECKING:
    from rota.database.callers_transaction import AwaitedJoined, Joined


class Done(BaseException):
    """Leaves the block of a step that is remembered. No `Exception`, which the block may catch."""


class StepTransaction(TransactionBlock):
    """Commits the handler's writes and the memory of a step together, or neither; for one block.

    Made by `Context.step_transaction`. Where the step is remembered, the block ends at the first
    use of its connection.
    """

    def __init__(self, steps: JobSteps, name: str, conn: object) -> None:
        self._steps = steps
        self._name = name
        self._conn = conn
        self._key = ""
        self._found: Remembered | None = None
        self._text = "null"
        self._before: int | None = None

    @property
    def own(self) -> bool:
        """Whether the connection is Rota's."""
        return self._conn is None

    @property
    def done(self) -> bool:
        """Whether the step is remembered: an earlier run has committed it."""
        return self._found is not None

    @property
    def value(self) -> Any:
        """What `result` was given, in this run or in an earlier one."""
        return decoded(self._name, ANYTHING, self._found) if self._found else None

    @property
    def _open(self) -> "Joined | AwaitedJoined":
        if self._found is not None and self._key:
            raise Done(self)
        return super()._open

    def result(self, value: Any) -> None:
        """Remember this with the step, as JSON; `value` has it, in later runs, too.

        Where the step is remembered, the block ends here.

        Raises:
            ArgsError: It cannot be stored, or is too large.
        """
        _ = self._open
        self._text = encoded(self._name, ANYTHING, value)

    # The block -------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._joined = drive(self._entering(self._steps.database.joined), now)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        joined, self._joined = self._joined, None
        return drive(self._leaving(joined, error), now)

    async def __aenter__(self) -> Self:
        self._awaited = await adrive(self._entering(self._steps.database.ajoined), later)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        joined, self._awaited = self._awaited, None
        return await adrive(self._leaving(joined, error), later)

    def _entering(self, join: Callable[..., Any]) -> Flow[Any]:
        steps, key = self._steps, self._steps.begin(Kind.STEP, self._name)
        try:
            self._found = yield from steps.find(Kind.STEP, key)
            self._key = key
            if self._found is not None:
                return None
            yield from steps.single_out()
            joined = yield partial(join, self._conn, tagged=True)
            yield joined.begin
            try:
                self._before = yield partial(joined.tag, steps.database.store.tag())
            except BaseException:
                yield joined.rollback
                raise
        except BaseException:
            steps.end(Kind.STEP, self._name, ended=False)
            raise
        return joined

    def _leaving(self, joined: Any, error: BaseException | None) -> Flow[bool | None]:
        steps, ended = self._steps, False
        try:
            if joined is None:
                left = isinstance(error, Done) and error.args[0] is self
                ended = left or error is None
                return left
            if error is not None:
                yield joined.rollback
                return None
            try:
                yield from steps.append(self._remembering, run=joined.run)
                yield joined.commit
            except BaseException:
                yield joined.rollback
                raise
            self._found = steps.keep(Kind.STEP, self._key, self._text)
            ended = True
            return None
        finally:
            self._key = ""
            steps.end(Kind.STEP, self._name, ended=ended)

    def _remembering(self, holder: Holder) -> Operation[bool]:
        memory = self._steps.database.store.memory
        return memory.remember_tagged(holder, self._key, self._text, self._before)
