"""Everything that an app does with its database, in the one transaction of a test.

With `conn=` a call goes where it says, which must be the test's own connection. Without, where Rota
would take a connection of its own and commit, it goes to the test's connection as well: nothing is
committed behind the test's back. What has to be done outside of any caller's transaction, such as
making a lane, still is.

A connection of Django is a thread's own. In async code the ORM works in the thread to which
`sync_to_async` leads: under `async_to_sync`, which Django puts around an async test, the one that
waits for it. So does this here.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, TypeVar, cast

from rota.database.adapters import Blocking
from rota.database.callers_transaction import (
    AwaitedJoined,
    Joined,
    Unthreaded,
    adriver,
    alone,
    driver,
    refuse_djangos,
)
from rota.database.database import Database
from rota.database.own_transaction import to_its_end
from rota.database.recognise import blocking_caller, caller, family
from rota.database.through_django import alias_of, connection_of, in_transaction
from rota.database.transaction_block import TransactionBlock
from rota.database.waiting import Wait, Waiting
from rota.errors import ConfigError
from rota.model.job import JobId
from rota.store.opening import open_store
from rota.store.operation import Begin, Operation
from rota.store.protocol import Store
from rota.testing.frames import hidden
from rota.testing.isolated import IsolatedStore
from rota.testing.savepoints import (
    AsideJoined,
    awaited_savepoint,
    begin_before_savepoints,
    savepoint,
)

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
        alias: Django's alias of it, if it is Django's. It is that of the thread to which
            `sync_to_async` leads from async code, where the ORM has it, too.
        store: The app's store, with keys of the test's own.
    """

    waiting: Waiting
    store: Store
    _start: "Start | None" = None

    def __init__(self, database: Database, connection: Any, test: str) -> None:
        package, kind = family(connection)
        self.awaits = kind in ASYNC or package in {"asyncpg", "aiosqlite"}
        self.alias = alias_of(connection)
        # In async code the connection of this thread is not the one that is meant.
        self.connection = self.alias if self.alias is not None and in_loop() else connection
        if not self.awaits:
            begin_before_savepoints(self.connection)
            # Refuses what is no connection.
            database.check(blocking_caller(self.connection))
        # A store of its own: what it remembers of queues is not to be taken for true by the next
        # test.
        self.isolated = IsolatedStore(open_store(database.url), test)
        self.store = cast("Store", self.isolated)
        self.waiting = NoWaiting(self.store)
        self._database = database
        self._outside = database.store
        self._djangos: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.get_ident()

    # Operations --------------------------------------------------------------------------------

    def run(self, operation: Operation[T], conn: object = None) -> T:
        """Run an operation in the test's transaction."""
        if self.awaits:
            return self.from_thread(lambda: self.arun(operation, conn))
        if (start := self._start) is not None:
            with self._once():
                start.now()
        return blocking_caller(self._meant(conn)).run(operation, apart=self._apart, notify=False)

    async def arun(self, operation: Operation[T], conn: object = None) -> T:
        """`run` for async code."""
        if not self.awaits:
            meant = conn if (alias := alias_of(conn)) is None else alias
            return await self.aside(partial(self.run, operation, meant))
        self._loop = asyncio.get_running_loop()
        await self.started()
        found = await caller(await self._ameant(conn))
        if isinstance(found, Blocking):
            _refuse()
        self._database.check(found)
        return await found.run(operation, apart=self._aapart, notify=False)

    def start(self, now: Callable[[], object], later: Callable[[], Awaitable[object]]) -> None:
        """Do, before the first use of the connection, what comes before that: now, if that can be.

        Raises:
            ConfigError: The connection cannot be used.
        """
        if self.awaits or (self.alias is not None and in_loop()):
            self._start = Start(now, later)
        else:
            now()

    async def started(self) -> None:
        """Do what `start` had to leave.

        Raises:
            ConfigError: The connection cannot be used.
        """
        if (start := self._start) is not None:
            with self._once():
                await start.later()

    @contextmanager
    def _once(self) -> Iterator[None]:
        start, self._start = self._start, None  # what it does comes here again
        try:
            yield
        except BaseException:
            self._start = start
            raise

    def alone(self) -> bool:
        """Whether each statement on the connection is a transaction of its own."""
        if self.alias is not None:
            return not in_transaction(connection_of(self.connection))
        return alone(driver(self.connection))

    async def aalone(self) -> bool:
        """`alone` for async code."""
        if self.awaits:
            return alone(await adriver(self.connection))
        return await self.aside(self.alone)

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
        """Make a blocking call that may use the connection or, if that is async, its event loop."""
        if self.awaits:
            return await to_its_end(call)
        if self.alias is None:
            with _no_loop():
                return call()
        from asgiref.sync import sync_to_async

        return await sync_to_async(call, thread_sensitive=True)()

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

    def require_thread(self) -> None:
        """Refuse a blocking call of the kit in async code, where Django has another connection, or none.

        Raises:
            ConfigError: This is one.
        """
        if self.alias is not None and in_loop() and not os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE"):
            message = (
                "this is a blocking call in async code, where Django's connection cannot be used: use the async "
                "twin (await rota_test.adrain(), await rota_test.aassert_enqueued(...))"
            )
            raise ConfigError(message)

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
            refuse_djangos(conn)
            joined = await self.aside(partial(self.joined, conn, commit=commit, outer=outer))
            return Unthreaded(joined) if self.alias is None else AsideJoined(joined, self.aside)
        self._loop = asyncio.get_running_loop()
        await self.started()
        return awaited_savepoint(await self._ameant(conn), own=conn is None, outer=outer)

    # The connection ------------------------------------------------------------------------------

    def _meant(self, conn: object) -> Any:
        """The connection of a call.

        Raises:
            ConfigError: It is not the test's.
        """
        if self.alias is not None:
            self._require_own()
        conn = conn.connection if isinstance(conn, TransactionBlock) else conn
        if conn is None or conn is self.connection:
            return self.connection
        database = blocking_caller(conn)
        self._database.check(database)
        if _below(conn) is not _below(self.connection):
            _refuse()
        return conn

    def _require_own(self) -> None:
        """Refuse a thread in which the alias means another connection than the test's.

        Raises:
            ConfigError: It does.
        """
        here = connection_of(self.connection)
        self._djangos = self._djangos or here
        if here is not self._djangos:
            message = (
                "this runs in another thread than the test, where Django has another connection, so its changes would "
                "be committed. Async code returns to the test's thread only in an `async def` test of Django's "
                "TestCase; test code that starts threads in a TransactionTestCase, with a worker"
            )
            raise ConfigError(message)

    async def _ameant(self, conn: object) -> Any:
        conn = conn.connection if isinstance(conn, TransactionBlock) else conn
        if conn is None or conn is self.connection:
            return self.connection
        if await adriver(conn) is not await adriver(self.connection):
            _refuse()
        return conn


@dataclass(frozen=True)
class Start:
    """What comes before the first use of a connection."""

    now: Callable[[], object]
    later: Callable[[], Awaitable[object]]


def in_loop() -> bool:
    """Whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@contextmanager
def _no_loop() -> Iterator[None]:
    """Let blocking code find no running event loop, as in a worker's thread: some refuses to run in one.

    `asyncio.run` does. The loop stands still meanwhile.
    """
    loop = asyncio.get_running_loop()
    asyncio._set_running_loop(None)  # noqa: SLF001 - there is no other way in the same thread
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)  # noqa: SLF001


def _below(connection: Any) -> Any:
    """The driver's connection below Django's, too."""
    if alias_of(connection) is None:
        return driver(connection)
    own = connection_of(connection)
    own.ensure_connection()
    return own.connection


def _refuse() -> NoReturn:
    message = (
        "conn= is not the test's connection: changes there would be committed, and the test would not see "
        "them. Let the code under test use the connection or session of rota_test.use(...), or "
        "test it with rota_test.committed()"
    )
    raise ConfigError(message)
