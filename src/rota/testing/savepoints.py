"""Savepoints in the place of transactions, on every kind of connection that `conn=` takes.

Code under test that begins and ends a transaction gets a savepoint of the test's transaction instead. An
attempt of a job is one, too: what a failing handler did is undone, and the connection goes on.
"""

from typing import Any, TypeVar

from rota.database.adapters import Awaiting, Blocking
from rota.database.callers_transaction import adriver, driver
from rota.database.recognise import blocking_caller, caller, family
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
    """Beneath a Session whose own commit and rollback are savepoints: what they end must not be this one."""

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

    One name does for all: the newest savepoint hides the others. `own`: it stands for a transaction on a connection of
    Rota's own; `outer`: the code after it may end a Session's transaction.
    """
    package, kind = family(connection)
    if package == "sqlalchemy" and kind != "Connection":
        if outer and _joined(connection):
            return OuterSavepoint(connection, own=own)
        return SessionSavepoint(connection, own=own)
    return Savepoint(connection, own=own)


def awaited_savepoint(connection: Any, *, own: bool, outer: bool) -> AwaitedSavepoint:
    """`savepoint` on an async connection."""
    package, kind = family(connection)
    if package == "sqlalchemy" and kind != "AsyncConnection":
        if outer and _joined(connection):
            return AwaitedOuterSavepoint(connection, own=own)
        return AwaitedSessionSavepoint(connection, own=own)
    return AwaitedSavepoint(connection, own=own)


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
