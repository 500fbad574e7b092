"""Callers' connections: one adapter for each driver.

An adapter runs one request of an operation on a connection that the caller owns, in whatever
transaction that connection is in; it begins, commits and closes nothing.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from rota.errors import ConfigError, RotaError, SchemaMissing, StoreError
from rota.store.execute import adrive, drive
from rota.store.operation import Apart, Copy, Operation, Query, Request, Rows, Surroundings, Where

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Blocking:
    """A caller's blocking connection. `backend` says to which kind of database it leads."""

    backend: str
    execute: Callable[[Request], Rows]
    copy: bool = False
    begun: Callable[[], bool] = lambda: True

    def run(
        self,
        operation: Operation[T],
        *,
        apart: Callable[[Operation[Any]], Any] | None = None,
        notify: bool = True,
    ) -> T:
        """Run an operation in the caller's transaction.

        Args:
            operation: What to run.
            apart: Runs what has to be done outside of the caller's transaction.
            notify: Whether the transaction may notify other processes.
        """

        def execute(request: Request) -> Rows:
            if isinstance(request, Apart) and apart is not None:
                return [(apart(request.operation),)]
            if isinstance(request, Where):
                return [
                    Surroundings(inside=True, copy=self.copy, notify=notify, begun=self.begun())
                ]
            return self.execute(request)

        return drive(operation.steps, execute)


@dataclass(frozen=True, slots=True)
class Awaiting:
    """A caller's async connection."""

    backend: str
    execute: Callable[[Request], Awaitable[Rows]]
    copy: bool = False
    begun: Callable[[], bool] = lambda: True

    async def run(
        self,
        operation: Operation[T],
        *,
        apart: Callable[[Operation[Any]], Awaitable[Any]] | None = None,
        notify: bool = True,
    ) -> T:
        """`Blocking.run` for async code."""

        async def execute(request: Request) -> Rows:
            if isinstance(request, Apart) and apart is not None:
                return [(await apart(request.operation),)]
            if isinstance(request, Where):
                return [
                    Surroundings(inside=True, copy=self.copy, notify=notify, begun=self.begun())
                ]
            return await self.execute(request)

        return await adrive(operation.steps, execute)


# psycopg. The caller's connection may make dicts of its rows or have cursors with another style of
# parameters, hence cursors of our own. In a pipeline there is no COPY, and a cursor knows only by
# fetching what came back, hence no question whether there are rows.


def psycopg(connection: Any) -> Blocking:
    """A connection of psycopg."""
    from psycopg import Cursor, ProgrammingError
    from psycopg.rows import tuple_row

    def execute(request: Request) -> Rows:
        try:
            match request:
                case Query(statement, params):
                    cursor = Cursor(connection, row_factory=tuple_row)
                    cursor.execute(statement.text, params)
                    try:
                        return cursor.fetchall()
                    except ProgrammingError:
                        return _none(cursor)
                case Copy(statement, blocks):
                    with Cursor(connection).copy(statement.text) as copy:
                        for block in blocks:
                            copy.write(block)
                    return ()
                case _:
                    raise _unknown(request)  # noqa: TRY301
        except Exception as error:
            raise translated(error) from error

    return Blocking("postgres", execute, copy=not connection.pgconn.pipeline_status)


def psycopg_async(connection: Any) -> Awaiting:
    """An async connection of psycopg."""
    from psycopg import AsyncCursor, ProgrammingError
    from psycopg.rows import tuple_row

    async def execute(request: Request) -> Rows:
        try:
            match request:
                case Query(statement, params):
                    cursor = AsyncCursor(connection, row_factory=tuple_row)
                    await cursor.execute(statement.text, params)
                    try:
                        return await cursor.fetchall()
                    except ProgrammingError:
                        return _none(cursor)
                case Copy(statement, blocks):
                    async with AsyncCursor(connection).copy(statement.text) as copy:
                        for block in blocks:
                            await copy.write(block)
                    return ()
                case _:
                    raise _unknown(request)  # noqa: TRY301
        except Exception as error:
            raise translated(error) from error

    return Awaiting("postgres", execute, copy=not connection.pgconn.pipeline_status)


def _none(cursor: Any) -> Rows:
    """No rows, if that is why they could not be fetched; else the error that is being handled."""
    if cursor.pgresult is None or cursor.pgresult.nfields:
        raise  # noqa: PLE0704 - called in its handler alone
    return ()


def asyncpg(connection: Any) -> Awaiting:
    """A connection of asyncpg."""

    async def execute(request: Request) -> Rows:
        if not isinstance(request, Query):
            raise _unknown(request)
        try:
            values = [request.params[name] for name in request.statement.order]
            return [
                tuple(row) for row in await connection.fetch(request.statement.numbered, *values)
            ]
        except Exception as error:
            raise translated(error) from error

    return Awaiting("postgres", execute)


def sqlite3(connection: Any) -> Blocking:
    """A connection of sqlite3."""

    def execute(request: Request) -> Rows:
        if not isinstance(request, Query):
            raise _unknown(request)
        try:
            cursor = connection.cursor()
            cursor.row_factory = None
            return list(cursor.execute(request.statement.text, request.params).fetchall())
        except Exception as error:
            raise translated(error) from error

    return Blocking("sqlite", execute, begun=lambda: bool(connection.in_transaction))


def aiosqlite(connection: Any) -> Awaiting:
    """A connection of aiosqlite."""

    async def execute(request: Request) -> Rows:
        if not isinstance(request, Query):
            raise _unknown(request)
        try:
            async with connection.cursor() as cursor:
                cursor.row_factory = None
                await cursor.execute(request.statement.text, request.params)
                return list(await cursor.fetchall())
        except Exception as error:
            raise translated(error) from error

    return Awaiting("sqlite", execute, begun=lambda: bool(connection.in_transaction))


def sqlalchemy(connection: Any) -> Blocking:
    """A connection of SQLAlchemy."""
    backend, arrange = _dialect(connection.dialect)

    def execute(request: Request) -> Rows:
        if not isinstance(request, Query):
            raise _unknown(request)
        try:
            # Through SQLAlchemy and not around it: it begins the driver's transaction only with
            # the first statement that it sees.
            result = connection.exec_driver_sql(*arrange(request))
            return [tuple(row) for row in result] if result.returns_rows else ()
        except Exception as error:
            raise translated(error) from error

    return Blocking(backend, execute, begun=lambda: _begun(backend, connection))


def sqlalchemy_async(connection: Any) -> Awaiting:
    """An async connection of SQLAlchemy."""
    backend, arrange = _dialect(connection.dialect)

    async def execute(request: Request) -> Rows:
        if not isinstance(request, Query):
            raise _unknown(request)
        try:
            result = await connection.exec_driver_sql(*arrange(request))
            return [tuple(row) for row in result] if result.returns_rows else ()
        except Exception as error:
            raise translated(error) from error

    return Awaiting(backend, execute, begun=lambda: _begun(backend, connection.sync_connection))


def _begun(backend: str, connection: Any) -> bool:
    """Whether the driver below SQLAlchemy has begun the transaction; on PostgreSQL it has."""
    return backend != "sqlite" or bool(connection.connection.driver_connection.in_transaction)


Arranged = tuple[str, "Mapping[str, object] | tuple[object, ...]"]


def _dialect(dialect: Any) -> tuple[str, Callable[[Query], Arranged]]:
    match dialect.name, dialect.driver:
        case ("postgresql", "asyncpg"):
            return "postgres", _numbered
        case ("postgresql", "psycopg" | "psycopg_async" | "psycopg2"):
            return "postgres", _named
        case ("sqlite", _):
            return "sqlite", _named
        case _:
            message = (
                f"conn is a SQLAlchemy connection through {dialect.name}+{dialect.driver}, which "
                "Rota cannot use; it takes postgresql+psycopg, +psycopg2, +asyncpg, and sqlite"
            )
            raise ConfigError(message)


def _named(query: Query) -> Arranged:
    return query.statement.text, dict(query.params)


def _numbered(query: Query) -> Arranged:
    return query.statement.numbered, tuple(query.params[name] for name in query.statement.order)


CLOSED = ("is closed", "permanently closed", "closed database", "been released back to the pool")
"""Of what drivers and SQLAlchemy say of a connection or session that was closed here."""


def translated(error: Exception) -> RotaError:
    """The error of Rota's own tree that a driver's error means."""
    if isinstance(error, RotaError):
        return error
    original = getattr(error, "orig", error)
    code = getattr(original, "sqlstate", None) or getattr(original, "pgcode", None)
    said = (str(original).strip().splitlines() or [type(original).__name__])[0]
    if code in {"42P01", "3F000", "42703"} or "no such table" in said:
        return SchemaMissing(
            f"the database of this connection has no Rota tables, or not the version that this Rota needs "
            f"({said}); connect to the database of Rota's own URL, run `rota migrate`, or upgrade Rota here "
            "if a newer one has migrated it"
        )
    if (misused := _misused(error, said)) is not None:
        return misused
    if code == "40001":
        return StoreError(
            f"the caller's connection refuses: {said}. Another transaction has taken or changed "
            "a unique key since this transaction's snapshot; run the transaction again, or use READ "
            "COMMITTED"
        )
    return StoreError(f"the caller's connection refuses: {said}")


def _misused(error: Exception, said: str) -> RotaError | None:
    """The error about a connection or session that is not open, or leads nowhere."""
    kind = type(error).__name__
    if any(words in said for words in CLOSED):
        return StoreError(
            f"the caller's connection refuses: {said.rstrip('.')}. Its transaction is over: enqueue before "
            "it ends, inside its block"
        )
    if kind == "AsyncContextNotStarted":
        return ConfigError("conn is not open yet: use `async with … as conn:`, and pass conn")
    if kind == "UnboundExecutionError":
        return ConfigError(
            "conn is a session without an engine; bind it to one, or, if it has several, pass the connection of "
            "the right one: session.connection(bind_arguments={'mapper': …})"
        )
    return None


def _unknown(request: Request) -> StoreError:
    return StoreError(f"this connection cannot run a {type(request).__name__}")
