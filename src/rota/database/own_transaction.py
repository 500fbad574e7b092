"""Transactions of Rota's own, as blocking code and as async code see them.

Rota's own connections block, so async code uses them in threads.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from rota.database.recognise import blocking_caller
from rota.errors import ConfigError
from rota.store.connections import Transaction
from rota.store.operation import Operation

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from rota.database.callers_transaction import Joined

T = TypeVar("T")


class Own:
    """A transaction of Rota's own."""

    def __init__(self, begin: Callable[[], Transaction]) -> None:
        self._begin = begin
        self._transaction: Transaction | None = None

    @property
    def connection(self) -> Any:
        """The driver's connection.

        Raises:
            ConfigError: The transaction is not open.
        """
        return self._open.connection

    @property
    def _open(self) -> Transaction:
        if self._transaction is None:
            message = "this transaction is not open; use it in its `with` block"
            raise ConfigError(message)
        return self._transaction

    def begin(self) -> None:
        """Open it."""
        self._transaction = self._begin()

    def tag(self, _: Operation[T]) -> None:
        """Nothing: `begin` has tagged it."""

    def run(self, operation: Operation[T]) -> T:
        """Run an operation in it; nothing but the commit comes after that."""
        self._open.tune()
        # With a cursor of Rota's own: users may have set how their rows look.
        return blocking_caller(self.connection).run(operation)

    def commit(self) -> None:
        """Commit it."""
        ending, self._transaction = self._open, None
        ending.commit()

    def rollback(self) -> None:
        """Roll it back, if it has not ended."""
        ending, self._transaction = self._transaction, None
        if ending is not None:
            ending.rollback()


class Threaded:
    """A transaction of Rota's own for async code: in a thread of its own.

    In a common pool, transactions that wait for a lock could occupy all the threads, and the one
    that holds the lock would find none to go on in.
    """

    def __init__(self, own: "Joined") -> None:
        self._own = own
        self._thread: ThreadPoolExecutor | None = None

    @property
    def connection(self) -> Any:
        """The driver's connection."""
        return self._own.connection

    async def call(self, function: Callable[[], T]) -> T:
        """Call in the thread, to the call's end."""
        from concurrent.futures import ThreadPoolExecutor  # here, as in `in_thread`

        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="rota-transaction")
        return await to_its_end(function, self._thread)

    async def begin(self) -> None:
        """Open it."""
        try:
            await self.call(self._own.begin)
        except BaseException:
            await self.rollback()
            raise

    async def tag(self, operation: Operation[int | None]) -> int | None:
        """Nothing: `begin` has tagged it."""
        return self._own.tag(operation)

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation in it."""
        return await self.call(lambda: self._own.run(operation))

    async def commit(self) -> None:
        """Commit it."""
        try:
            await self.call(self._own.commit)
        finally:
            self._end()

    async def rollback(self) -> None:
        """Roll it back, if it has not ended."""
        try:
            await self.call(self._own.rollback)
        finally:
            self._end()

    def _end(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=False)
            self._thread = None


async def to_its_end(function: Callable[[], T], executor: "ThreadPoolExecutor | None" = None) -> T:
    """Call in a thread. A cancelled caller still waits for the end: the call cannot be stopped."""
    import asyncio  # here, as in `in_thread`

    under_way = asyncio.get_running_loop().run_in_executor(executor, function)
    try:
        return await asyncio.shield(under_way)
    except asyncio.CancelledError:
        # How the call ends is of no interest any more, also where it fails.
        under_way.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        await asyncio.wait({under_way})
        raise
