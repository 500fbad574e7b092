"""Savepoints in the place of transactions, on every kind of connection that `conn=` takes.

Code under test that begins and ends a transaction gets a savepoint of the test's transaction
instead. An attempt of a job is one, too: what a failing handler did is undone, and the connection
goes on.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from rota.database.adapters import Awaiting, Blocking
from rota.database.callers_transaction import Joined, adriver, alone, driver
from rota.database.own_transaction import Threaded
from rota.database.recognise import blocking_caller, caller, family
from rota.database.through_django import alias_of, connection_of
from rota.errors import ConfigError, RotaError, StoreError
from rota.store.operation import Operation, Query, Statement
from rota.testing.frames import hidden

__tracebackhide__ = hidden

T = TypeVar("T")

ENDED = (
    "the code under test has ended the test's transaction: it called commit() or rollback() on the test's "
    "connection. Give it a Session with join_transaction_mode='create_savepoint', let it use "
    "rota.transaction() or ctx.transaction(), or test it with rota_test.committed()"
)

BROKEN = (
    "a statement of the handler has failed, and Django will not go on after that in a test's transaction: catch the "
    "error around a block, `with transaction.atomic(): ...`, or test the handler with rota_test.committed()"
)


def _statement(text: str) -> Query:
    return Query(Statement("savepoint", text), {})


class Savepoint:
    """A savepoint on a blocking connection; see `rota.database.callers_transaction.Joined`."""

    def __init__(self, connection: Any, *, own: bool) -> None:
        self._given = connection
        self._own = own

    @property
    def connection(self) -> Any:
        """What was given; the driver's connection, where Rota's own would be used."""
        return driver(self._given) if self._own else self._given

    def begin(self) -> None:
        """Set it."""
        self._run("SAVEPOINT rota_test")

    def tag(self, operation: Operation[int | None]) -> int | None:
        """Tag the transaction that it stands for."""
        return self.run(operation)

    def run(self, operation: Operation[T]) -> T:
        """Run an operation in it; what a Session has not flushed goes first."""
        if hasattr(self._given, "flush"):
            self._given.flush()
        return blocking_caller(self._given).run(operation, notify=False)

    def commit(self) -> None:
        """Keep what came after it.

        Raises:
            ConfigError: The test's transaction has ended.
        """
        self._end("RELEASE SAVEPOINT rota_test")

    def rollback(self) -> None:
        """Undo what came after it.

        Raises:
            ConfigError: The test's transaction has ended.
        """
        self._end("ROLLBACK TO SAVEPOINT rota_test")
        self._end("RELEASE SAVEPOINT rota_test")

    def _end(self, text: str) -> None:
        try:
            self._run(text)
        except StoreError as error:
            raise _told(error) from error

    def _run(self, text: str) -> None:
        self._blocking().execute(_statement(text))

    def _blocking(self) -> Blocking:
        return blocking_caller(self._given)


class DjangosSavepoint(Savepoint):
    """On a Django connection: an `atomic` block, which also knows errors and callbacks to undo."""

    _connection: Any = None
    _block: Any = None

    def __init__(self, connection: Any, *, own: bool, outer: bool) -> None:
        super().__init__(connection, own=own)
        self._outer = outer

    @property
    def connection(self) -> Any:
        """What was given; the driver's connection, where Rota's own would be used."""
        return self._connection.connection if self._own else self._given

    def begin(self) -> None:
        """Begin it."""
        from django.db import transaction

        self._connection = connection_of(self._given)
        block = transaction.atomic(self._connection.alias)
        # Handlers may be durable, as code is in the blocks of a TestCase.
        block._from_testcase = self._outer  # noqa: SLF001
        block.__enter__()
        self._block = block

    def commit(self) -> None:
        """Keep what came after it.

        Raises:
            ConfigError: Django rolls it back, since a statement in it has failed.
        """
        if self._connection.needs_rollback:
            self.rollback()
            raise ConfigError(BROKEN)
        self._end_block()

    def rollback(self) -> None:
        """Undo what came after it, if it has begun."""
        if self._block is not None:
            self._connection.set_rollback(True)
            self._end_block()

    def _end_block(self) -> None:
        block, self._block = self._block, None
        block.__exit__(None, None, None)


class AsideJoined(Threaded):
    """A blocking savepoint for async code, in the thread that has its connection."""

    def __init__(
        self, joined: Joined, aside: Callable[[Callable[[], Any]], Awaitable[Any]]
    ) -> None:
        super().__init__(joined)
        self._aside = aside

    async def call(self, function: Callable[[], T]) -> T:
        """Call in the thread."""
        return await self._aside(function)  # type: ignore[no-any-return]

    async def tag(self, operation: Operation[int | None]) -> int | None:
        """Tag the transaction that it stands for."""
        return await self.call(partial(self._own.tag, operation))


class SessionSavepoint(Savepoint):
    """On a Session: what it holds in memory belongs to the transaction as well."""

    _nested: Any = None

    def begin(self) -> None:
        """Set it."""
        self._nested = self._given.begin_nested()

    def commit(self) -> None:
        """Keep what came after it."""
        self._finish("commit")

    def rollback(self) -> None:
        """Undo what came after it."""
        self._finish("rollback")

    def _finish(self, how: str) -> None:
        try:
            getattr(self._nested, how)()
        except Exception as error:
            raise ConfigError(ENDED) from error


class OuterSavepoint(Savepoint):
    """Beneath a Session whose commit and rollback are savepoints: they must not end this one."""

    def begin(self) -> None:
        """Set it."""
        self._given.commit()
        super().begin()

    def commit(self) -> None:
        """Keep what came after it."""
        self._given.commit()
        super().commit()

    def rollback(self) -> None:
        """Undo what came after it."""
        self._given.rollback()
        super().rollback()

    def _blocking(self) -> Blocking:
        return blocking_caller(_bind(self._given))


class AwaitedSavepoint:
    """A savepoint on an async connection; see `rota.database.callers_transaction.AwaitedJoined`."""

    def __init__(self, connection: Any, *, own: bool) -> None:
        self._given = connection
        self._own = own
        self.connection = connection

    async def begin(self) -> None:
        """Set it."""
        await self._show(self._given)
        await self._run("SAVEPOINT rota_test")

    async def tag(self, operation: Operation[int | None]) -> int | None:
        """Tag the transaction that it stands for."""
        return await self.run(operation)

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation in it; what a Session has not flushed goes first."""
        if hasattr(self._given, "flush"):
            await self._given.flush()
        found: Any = await caller(self._given)
        result: T = await found.run(operation, notify=False)
        return result

    async def commit(self) -> None:
        """Keep what came after it.

        Raises:
            ConfigError: The test's transaction has ended.
        """
        await self._end("RELEASE SAVEPOINT rota_test")

    async def rollback(self) -> None:
        """Undo what came after it.

        Raises:
            ConfigError: The test's transaction has ended.
        """
        await self._end("ROLLBACK TO SAVEPOINT rota_test")
        await self._end("RELEASE SAVEPOINT rota_test")

    async def _end(self, text: str) -> None:
        try:
            await self._run(text)
        except StoreError as error:
            raise _told(error) from error

    async def _show(self, connection: Any) -> None:
        if self._own:
            self.connection = await adriver(connection)

    async def _run(self, text: str) -> None:
        await (await self._awaiting()).execute(_statement(text))

    async def _awaiting(self) -> Awaiting:
        found: Any = await caller(self._given)
        return found  # type: ignore[no-any-return]


class AwaitedSessionSavepoint(AwaitedSavepoint):
    """`SessionSavepoint` for an AsyncSession."""

    _nested: Any = None

    async def begin(self) -> None:
        """Set it."""
        await self._show(self._given)
        self._nested = await self._given.begin_nested()

    async def commit(self) -> None:
        """Keep what came after it."""
        await self._finish("commit")

    async def rollback(self) -> None:
        """Undo what came after it."""
        await self._finish("rollback")

    async def _finish(self, how: str) -> None:
        try:
            await getattr(self._nested, how)()
        except Exception as error:
            raise ConfigError(ENDED) from error


class AwaitedOuterSavepoint(AwaitedSavepoint):
    """`OuterSavepoint` for an AsyncSession."""

    async def begin(self) -> None:
        """Set it."""
        await self._given.commit()
        # Not by the session, which would begin a savepoint of its own before this one.
        await self._show(_bind(self._given))
        await self._run("SAVEPOINT rota_test")

    async def commit(self) -> None:
        """Keep what came after it."""
        await self._given.commit()
        await super().commit()

    async def rollback(self) -> None:
        """Undo what came after it."""
        await self._given.rollback()
        await super().rollback()

    async def _awaiting(self) -> Awaiting:
        found: Any = await caller(_bind(self._given))
        return found  # type: ignore[no-any-return]


def savepoint(connection: Any, *, own: bool, outer: bool) -> Savepoint:
    """A savepoint on a blocking connection.

    One name does for all: the newest savepoint hides the others. `own`: it stands for a transaction
    on a connection of Rota's own; `outer`: the code after it may end a Session's transaction.
    """
    package, kind = family(connection)
    if package == "sqlalchemy" and kind != "Connection":
        if outer and _joined(connection):
            return OuterSavepoint(connection, own=own)
        return SessionSavepoint(connection, own=own)
    if alias_of(connection) is not None:
        return DjangosSavepoint(connection, own=own, outer=outer)
    return Savepoint(connection, own=own)


def awaited_savepoint(connection: Any, *, own: bool, outer: bool) -> AwaitedSavepoint:
    """`savepoint` on an async connection."""
    package, kind = family(connection)
    if package == "sqlalchemy" and kind != "AsyncConnection":
        if outer and _joined(connection):
            return AwaitedOuterSavepoint(connection, own=own)
        return AwaitedSessionSavepoint(connection, own=own)
    return AwaitedSavepoint(connection, own=own)


def begin_before_savepoints(connection: Any) -> None:
    """Begin the transaction of a SQLite connection of SQLAlchemy, if its driver waits for a write.

    A savepoint before that would be the transaction, and its release, as at a session's commit,
    would commit it.
    """
    package, kind = family(connection)
    if package != "sqlalchemy" or (kind != "Connection" and not _joined(connection)):
        return
    bound = connection if kind == "Connection" else _bind(connection)
    below = driver(bound)
    if family(below)[0] == "sqlite3" and not below.in_transaction and not alone(below):
        bound.exec_driver_sql("BEGIN")


def _joined(session: Any) -> bool:
    """Whether a session works in savepoints of a transaction that its connection is in."""
    session = _unscoped(session)
    session = getattr(session, "sync_session", session)
    bound = family(session.bind)[1] == "Connection" or family(session.bind)[1] == "AsyncConnection"
    return bound and session.join_transaction_mode == "create_savepoint"


def _bind(session: Any) -> Any:
    return _unscoped(session).bind


def _unscoped(session: Any) -> Any:
    return (
        session() if family(session)[1] in {"scoped_session", "async_scoped_session"} else session
    )


def _told(error: StoreError) -> RotaError:
    """The error, or that the transaction has ended, if that is why a savepoint is not there."""
    said = str(error).lower()
    if "savepoint" in said or "transaction block" in said:
        return ConfigError(ENDED)
    return error
