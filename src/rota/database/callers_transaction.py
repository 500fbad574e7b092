"""The caller's transaction in which a handler's job is completed; `own` has those of Rota's own.

`adapters` run an operation in a caller's transaction and leave that alone. Here it is begun where
the driver wants that, tagged, committed and rolled back. What blocks has a twin that is awaited.

The store knows by its tag whether the transaction is still the one in which the block began. Of
SQLAlchemy's connections its own object of the transaction tells that, too, where SQLite cannot.
"""

import contextlib
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from rota.database.adapters import Awaiting, Blocking
from rota.database.atomic import Atomic
from rota.database.recognise import blocking_caller, caller, family
from rota.database.through_django import alias_of, in_transaction
from rota.database.through_django import connection_of as djangos
from rota.errors import ConfigError, TransactionEnded
from rota.store.operation import Operation

T = TypeVar("T")


class Joined(Protocol):
    """A transaction, as blocking code sees it."""

    @property
    def connection(self) -> Any:
        """The driver's connection, or what the caller has given."""
        ...

    def begin(self) -> None:
        """Begin it, or check that it is there."""
        ...

    def tag(self, operation: Operation[int | None]) -> int | None:
        """Tag it; what `Store.settle_tagged` needs to know it again."""
        ...

    def run(self, operation: Operation[T]) -> T:
        """Run an operation in it, after everything that the caller has not sent yet."""
        ...

    def commit(self) -> None:
        """Commit it."""
        ...

    def rollback(self) -> None:
        """Roll it back, whatever state it is in."""
        ...


class AwaitedJoined(Protocol):
    """The same for async code."""

    @property
    def connection(self) -> Any:
        """The driver's connection, or what the caller has given."""
        ...

    async def begin(self) -> None:
        """Begin it, or check that it is there."""
        ...

    async def tag(self, operation: Operation[int | None]) -> int | None:
        """Tag it; what `Store.settle_tagged` needs to know it again."""
        ...

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation in it, after everything that the caller has not sent yet."""
        ...

    async def commit(self) -> None:
        """Commit it."""
        ...

    async def rollback(self) -> None:
        """Roll it back, whatever state it is in."""
        ...


class CallersOwn:
    """A transaction on a caller's blocking connection or session, which Rota commits or not."""

    def __init__(self, connection: Any, *, commit: bool) -> None:
        self.connection = connection
        self._commit = commit
        self._tagged: object = None

    def begin(self) -> None:
        """Check that it will be there: these drivers begin one with the first statement.

        Raises:
            ConfigError: The connection is in autocommit mode.
        """
        _refuse_autocommit(driver(self.connection))

    def tag(self, operation: Operation[int | None]) -> int | None:
        """Tag it."""
        before = self.run(operation)
        self._tagged = _alchemys(self.connection)
        return before

    def run(self, operation: Operation[T]) -> T:
        """Run an operation in it; what a Session has not flushed goes first.

        Raises:
            TransactionEnded: It is not the one that was tagged.
        """
        _require(self.connection, self._tagged)
        if hasattr(self.connection, "flush"):
            self.connection.flush()
        return blocking_caller(self.connection).run(operation, notify=self._commit)

    def commit(self) -> None:
        """Commit it."""
        self.connection.commit()

    def rollback(self) -> None:
        """Roll it back. A connection that is gone has done so already."""
        with contextlib.suppress(Exception):
            self.connection.rollback()


class AwaitedCallersOwn:
    """A transaction on a caller's async connection or session, which Rota commits or not."""

    def __init__(self, connection: Any, *, commit: bool) -> None:
        self.connection = connection
        self._commit = commit
        self._tagged: object = None

    async def begin(self) -> None:
        """Check that it will be there: these drivers begin one with the first statement.

        Raises:
            ConfigError: The connection is in autocommit mode.
        """
        _refuse_autocommit(await adriver(self.connection))

    async def tag(self, operation: Operation[int | None]) -> int | None:
        """Tag it."""
        before = await self.run(operation)
        self._tagged = _alchemys(self.connection)
        return before

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation in it; what a Session has not flushed goes first.

        Raises:
            TransactionEnded: It is not the one that was tagged.
        """
        _require(self.connection, self._tagged)
        if hasattr(self.connection, "flush"):
            await self.connection.flush()
        return await _run_on(self.connection, operation, notify=self._commit)

    async def commit(self) -> None:
        """Commit it."""
        await self.connection.commit()

    async def rollback(self) -> None:
        """Roll it back. A connection that is gone has done so already."""
        with contextlib.suppress(Exception):
            await self.connection.rollback()


class Asyncpg:
    """A transaction on a connection of asyncpg, where transactions are objects."""

    def __init__(self, connection: Any, *, commit: bool) -> None:
        self.connection = connection
        self._commit = commit
        self._transaction: Any = None

    async def begin(self) -> None:
        """Begin it, unless the caller has begun it and will commit it.

        Raises:
            ConfigError: There is one already and should not, or there should be one.
        """
        if self.connection.is_in_transaction() and self._commit:
            message = (
                "conn is already in a transaction, which Rota cannot end; let "
                "ctx.transaction(conn=...) begin and end it, or pass commit=False and commit it yourself"
            )
            raise ConfigError(message)
        if self._commit:
            self._transaction = self.connection.transaction()
            await self._transaction.start()
        elif not self.connection.is_in_transaction():
            message = "commit=False: begin a transaction first, with conn.transaction()"
            raise ConfigError(message)

    async def tag(self, operation: Operation[int | None]) -> int | None:
        """Tag it."""
        return await self.run(operation)

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation in it."""
        return await _run_on(self.connection, operation, notify=self._commit)

    async def commit(self) -> None:
        """Commit it."""
        await self._transaction.commit()

    async def rollback(self) -> None:
        """Roll it back. A connection that is gone has done so already."""
        with contextlib.suppress(Exception):
            await self._transaction.rollback()


class Unthreaded:
    """A caller's blocking transaction for async code: it may belong to this very thread."""

    def __init__(self, joined: Joined) -> None:
        self._joined = joined
        self.connection = joined.connection

    async def begin(self) -> None:
        """Check that it will be there."""
        self._joined.begin()

    async def tag(self, operation: Operation[int | None]) -> int | None:
        """Tag it."""
        return self._joined.tag(operation)

    async def run(self, operation: Operation[T]) -> T:
        """Run an operation in it."""
        return self._joined.run(operation)

    async def commit(self) -> None:
        """Commit it."""
        self._joined.commit()

    async def rollback(self) -> None:
        """Roll it back."""
        self._joined.rollback()


def join(connection: Any, check: Callable[[Blocking | Awaiting], None], *, commit: bool) -> Joined:
    """The transaction of a caller's blocking connection; `check` may refuse what it is.

    Raises:
        ConfigError: It is an async one, or none that Rota knows how to use.
    """
    check(blocking_caller(connection))
    if alias_of(connection) is not None:
        return Atomic(connection, commit=commit)
    return CallersOwn(connection, commit=commit)


async def ajoin(
    connection: Any, check: Callable[[Blocking | Awaiting], None], *, commit: bool
) -> AwaitedJoined:
    """The transaction of a caller's connection, async or not; `commit`: Rota ends it.

    Raises:
        ConfigError: It is no connection that Rota knows how to use.
    """
    refuse_djangos(connection)
    found = await caller(connection)
    check(found)
    if isinstance(found, Blocking):
        return Unthreaded(CallersOwn(connection, commit=commit))
    if family(connection)[0] == "asyncpg":
        return Asyncpg(connection, commit=commit)
    return AwaitedCallersOwn(connection, commit=commit)


def refuse_djangos(connection: Any) -> None:
    """Refuse a connection of Django in async code.

    Raises:
        ConfigError: It is one.
    """
    if alias_of(connection) is not None:
        message = (
            "conn is a connection of Django, which has no transactions in async code; write a def, which "
            "runs in a thread"
        )
        raise ConfigError(message)


async def _run_on(connection: Any, operation: Operation[T], *, notify: bool) -> T:
    found = await caller(connection)
    if isinstance(found, Blocking):
        return found.run(operation, notify=notify)
    return await found.run(operation, notify=notify)


async def adriver(connection: Any) -> Any:
    """The driver's connection below SQLAlchemy's async ones, else the connection itself."""
    match family(connection):
        case ("sqlalchemy", "AsyncConnection"):
            return (await connection.get_raw_connection()).driver_connection
        case ("sqlalchemy", "AsyncSession" | "async_scoped_session"):
            return await adriver(await connection.connection())
        case _:
            return connection


def driver(connection: Any) -> Any:
    """The driver's connection below SQLAlchemy's, else the connection itself."""
    match family(connection):
        case ("sqlalchemy", "Connection"):
            return connection.connection.driver_connection
        case ("sqlalchemy", _):
            return driver(connection.connection())
        case _:
            return connection


def _alchemys(connection: Any) -> object:
    """SQLAlchemy's own object for the transaction of one of its connections, else `None`."""
    package, kind = family(connection)
    if package != "sqlalchemy":
        return None
    if kind in {"scoped_session", "async_scoped_session"}:
        connection = connection()
    for name in ("sync_connection", "sync_session"):
        connection = getattr(connection, name, connection)
    return connection.get_transaction()


def _require(connection: Any, tagged: object) -> None:
    """Refuse another transaction of SQLAlchemy's than the one that was tagged.

    Raises:
        TransactionEnded: It is another one.
    """
    if tagged is not None and _alchemys(connection) is not tagged:
        raise TransactionEnded


def alone(driver: Any) -> bool:
    """Whether each statement on a driver's connection is a transaction of its own."""
    match family(driver):
        case ("psycopg", _):
            return driver.autocommit and not driver.info.transaction_status
        case ("sqlite3" | "aiosqlite", _):
            return not driver.in_transaction and (
                driver.isolation_level is None or getattr(driver, "autocommit", None) is True
            )
        case _:
            return getattr(driver, "autocommit", None) is True


def require(connection: Any) -> None:
    """Refuse a caller's blocking connection on which each statement is a transaction of its own.

    Raises:
        ConfigError: It is one.
    """
    if alias_of(connection) is None:
        lonely = alone(driver(connection))
    else:
        lonely = not in_transaction(djangos(connection))
    _refuse_alone(lonely=lonely)


async def arequire(connection: Any) -> None:
    """`require` for async code, and for any connection."""
    if alias_of(connection) is not None:
        from asgiref.sync import sync_to_async

        await sync_to_async(require, thread_sensitive=True)(alias_of(connection))
    elif family(connection)[0] == "asyncpg":
        _refuse_alone(lonely=not connection.is_in_transaction())
    else:
        _refuse_alone(lonely=alone(await adriver(connection)))


def _refuse_alone(*, lonely: bool) -> None:
    if lonely:
        message = (
            "conn is in autocommit mode, where a part of the flow could be stored without the rest: begin a transaction "
            "on it first, or leave conn= out"
        )
        raise ConfigError(message)


def _refuse_autocommit(driver: Any) -> None:
    if alone(driver):
        message = (
            "conn is in autocommit mode, so there is no transaction to complete the job in; "
            "switch that off, or begin one"
        )
        raise ConfigError(message)
