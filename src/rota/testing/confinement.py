"""Everything that an app does with its database, in the one transaction of a test.

With `conn=` a call goes where it says, which must be the test's own connection. Without, where Rota would
take a connection of its own and commit, it goes to the test's connection as well: nothing is committed
behind the test's back. What has to be done outside of any caller's transaction, such as making a lane, still is.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NoReturn, TypeVar, cast

from rota.database.adapters import Blocking
from rota.database.callers_transaction import AwaitedJoined, Joined, Unthreaded, adriver, driver
from rota.database.database import Database
from rota.database.own_transaction import to_its_end
from rota.database.recognise import blocking_caller, caller, family
from rota.database.through_django import alias_of, connection_of
from rota.database.transaction_block import TransactionBlock
from rota.database.waiting import Wait, Waiting
from rota.errors import ConfigError
from rota.model.job import JobId
from rota.store.opening import open_store
from rota.store.operation import Begin, Operation
from rota.store.protocol import Store
from rota.testing.frames import hidden
from rota.testing.isolated import IsolatedStore
from rota.testing.savepoints import Savepoint, awaited_savepoint, savepoint

__tracebackhide__ = hidden

T = TypeVar("T")

ASYNC = {"AsyncConnection", "AsyncSession", "async_scoped_session"}


class NoWaiting(Waiting):
    """There is nothing to wait for: no worker sees the test's jobs."""

    def begin(self, job: JobId) -> Wait:
        """Refuse.

        Raises:
            ConfigError: Always.
        """
        message = (
            f"job {job} has not ended, and no worker sees it in the test's transaction: call "
            "rota_test.drain() first, or test the waiting itself with rota_test.committed()"
        )
        raise ConfigError(message)


class Confinement:
    """The connection of one test, in the place of an app's; see `rota.database.confined.Confined`.

    Attributes:
        connection: The test's connection or session.
        awaits: Whether it is async.
        begin: What is still to be done before its first use, where that has to be awaited.
        store: The app's store, with keys of the test's own.
    """

    waiting: Waiting
    store: Store
    begin: Callable[[], Awaitable[object]] | None = None

    def __init__(self, database: Database, connection: Any, test: str) -> None:
        package, kind = family(connection)
        self.awaits = kind in ASYNC or package in {"asyncpg", "aiosqlite"}
        if not self.awaits:
            # Refuses what is no connection.
            database.check(blocking_caller(connection))
        self.connection = connection
        # A store of its own: what it remembers of queues is not to be taken for true by the next test.
        self.isolated = IsolatedStore(open_store(database.url), test)
        self.store = cast("Store", self.isolated)
        self.waiting = NoWaiting(self.store)
        self._database = database
        self._outside = database.store
        self._driver: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.get_ident()

    # Operations --------------------------------------------------------------------------------

    def run(self, operation: Operation[T], conn: object = None) -> T:
        """Run an operation in the test's transaction."""
        if self.awaits:
            return self.from_thread(lambda: self.arun(operation, conn))
        return blocking_caller(self._meant(conn)).run(operation, apart=self._apart, notify=False)

    async def arun(self, operation: Operation[T], conn: object = None) -> T:
        """`run` for async code."""
        if not self.awaits:
            return self.run(operation, conn)
        self._loop = asyncio.get_running_loop()
        await self.begun()
        found = await caller(await self._ameant(conn))
        if isinstance(found, Blocking):
            _refuse()
        self._database.check(found)
        return await found.run(operation, apart=self._aapart, notify=False)

    async def begun(self) -> None:
        """Do once what comes before the first use of an async connection.

        Raises:
            ConfigError: The connection cannot be used.
        """
        begin, self.begin = self.begin, None  # what it does comes here again
        if begin is None:
            return
        try:
            await begin()
        except BaseException:
            self.begin = begin
            raise

    def apart(self, operation: Operation[T]) -> T:
        """Run an operation on a connection of Rota's own, which commits."""
        return self._outside.run(operation)

    def _apart(self, operation: Operation[T]) -> T:
        # What only reads shall see what the test has done.
        return self.run(operation) if operation.begin is Begin.READING else self.apart(operation)

    async def _aapart(self, operation: Operation[T]) -> T:
        if operation.begin is Begin.READING:
            return await self.arun(operation)
        return await asyncio.to_thread(self.apart, operation)

    async def aside(self, call: Callable[[], T]) -> T:
        """Make a blocking call that uses the database."""
        return await to_its_end(call) if self.awaits else call()

    def from_thread(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Let the test's event loop do something, while a handler in a thread waits.

        Raises:
            ConfigError: This is no such thread.
        """
        if self._loop is None or threading.get_ident() == self._thread:
            message = (
                "the test's connection is async, and this is a blocking call: use the async twin "
                "(await task.aenqueue(...), await rota_test.adrain()), or give rota_test.use() a blocking "
                "connection"
            )
            raise ConfigError(message)
        return asyncio.run_coroutine_threadsafe(make(), self._loop).result()

    # Transactions --------------------------------------------------------------------------------

    def joined(self, conn: object = None, *, commit: bool = True, outer: bool = False) -> Joined:
        """A savepoint in the place of a transaction."""
        del commit  # the caller's own is the test's
        if self.awaits:
            message = (
                "the test's connection is async, so a transaction of a blocking handler cannot join it; "
                "use `async with`, or a blocking connection"
            )
            raise ConfigError(message)
        return savepoint(self._meant(conn), own=conn is None, outer=outer)

    async def ajoined(
        self, conn: object = None, *, commit: bool = True, outer: bool = False
    ) -> AwaitedJoined:
        """`joined` for async code."""
        if not self.awaits:
            return Unthreaded(cast("Savepoint", self.joined(conn, commit=commit, outer=outer)))
        self._loop = asyncio.get_running_loop()
        await self.begun()
        return awaited_savepoint(await self._ameant(conn), own=conn is None, outer=outer)

    # The connection ------------------------------------------------------------------------------

    def _meant(self, conn: object) -> Any:
        """The connection of a call.

        Raises:
            ConfigError: It is not the test's.
        """
        conn = conn.connection if isinstance(conn, TransactionBlock) else conn
        if conn is None or conn is self.connection:
            return self.connection
        database = blocking_caller(conn)
        self._database.check(database)
        if driver(_djangos(conn)) is not driver(_djangos(self.connection)):
            _refuse()
        return conn

    async def _ameant(self, conn: object) -> Any:
        conn = conn.connection if isinstance(conn, TransactionBlock) else conn
        if conn is None or conn is self.connection:
            return self.connection
        if await adriver(conn) is not await adriver(self.connection):
            _refuse()
        return conn


def _djangos(connection: Any) -> Any:
    """The connection that an alias of Django's or a proxy means, else the connection itself."""
    return connection if alias_of(connection) is None else connection_of(connection)


def _refuse() -> NoReturn:
    message = (
        "conn= is another connection than the test's: what happens there would be committed, and the test "
        "would not see it. Let the code under test use the connection or session of rota_test.use(...), or "
        "test it with rota_test.committed()"
    )
    raise ConfigError(message)
