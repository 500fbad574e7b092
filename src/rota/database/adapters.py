"""Callers' connections: one adapter for each driver runs a request in the caller's transaction."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rota.errors import ConfigError, RotaError, SchemaMissing, StoreError
from rota.store.operation import Copy, Query, Request, Rows


@dataclass(frozen=True, slots=True)
class Blocking:
    """A caller's blocking connection. `backend` says to which kind of database it leads."""

    backend: str
    execute: Callable[[Request], Rows]
    copy: bool = False


@dataclass(frozen=True, slots=True)
class Awaiting:
    """A caller's async connection."""

    backend: str
    execute: Callable[[Request], Awaitable[Rows]]
    copy: bool = False


def _psycopg(connection: Any) -> Blocking:
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
                case Copy(statement, block):
                    with Cursor(connection).copy(statement.text) as copy:
                        copy.write(block)
                    return ()
                case _:
                    raise _unknown(request)  # noqa: TRY301
        except Exception as error:
            raise _translated(error) from error

    return Blocking("postgres", execute, copy=not connection.pgconn.pipeline_status)


def _psycopg_async(connection: Any) -> Awaiting:
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
                case Copy(statement, block):
                    async with AsyncCursor(connection).copy(statement.text) as copy:
                        await copy.write(block)
                    return ()
                case _:
                    raise _unknown(request)  # noqa: TRY301
        except Exception as error:
            raise _translated(error) from error

    return Awaiting("postgres", execute, copy=not connection.pgconn.pipeline_status)


def _none(cursor: Any) -> Rows:
    """No rows, if that is why they could not be fetched; else the error that is being handled."""
    if cursor.pgresult is None or cursor.pgresult.nfields:
        raise  # noqa: PLE0704 - called in its handler alone
    return ()


def _asyncpg(connection: Any) -> Awaiting:
    async def execute(request: Request) -> Rows:
        if not isinstance(request, Query):
            raise _unknown(request)
        try:
            values = [request.params[name] for name in request.statement.order]
            return [
                tuple(row) for row in await connection.fetch(request.statement.numbered, *values)
            ]
        except Exception as error:
            raise _translated(error) from error

    return Awaiting("postgres", execute)


def _sqlite3(connection: Any) -> Blocking:
    def execute(request: Request) -> Rows:
        if not isinstance(request, Query):
            raise _unknown(request)
        try:
            cursor = connection.cursor()
            cursor.row_factory = None
            return list(cursor.execute(request.statement.text, request.params).fetchall())
        except Exception as error:
            raise _translated(error) from error

    return Blocking("sqlite", execute)


def _aiosqlite(connection: Any) -> Awaiting:
    async def execute(request: Request) -> Rows:
        if not isinstance(request, Query):
            raise _unknown(request)
        try:
            async with connection.cursor() as cursor:
                cursor.row_factory = None
                await cursor.execute(request.statement.text, request.params)
                return list(await cursor.fetchall())
        except Exception as error:
            raise _translated(error) from error

    return Awaiting("sqlite", execute)


def _sqlalchemy(connection: Any) -> Blocking:
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
            raise _translated(error) from error

    return Blocking(backend, execute)


def _sqlalchemy_async(connection: Any) -> Awaiting:
    backend, arrange = _dialect(connection.dialect)

    async def execute(request: Request) -> Rows:
        if not isinstance(request, Query):
            raise _unknown(request)
        try:
            result = await connection.exec_driver_sql(*arrange(request))
            return [tuple(row) for row in result] if result.returns_rows else ()
        except Exception as error:
            raise _translated(error) from error

    return Awaiting(backend, execute)


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


def _translated(error: Exception) -> RotaError:
    if isinstance(error, RotaError):
        return error
    original = getattr(error, "orig", error)
    code = getattr(original, "sqlstate", None) or getattr(original, "pgcode", None)
    said = (str(original).strip().splitlines() or [type(original).__name__])[0]
    if code in {"42P01", "3F000", "42703"} or "no such table" in said:
        return SchemaMissing(
            f"the database of this connection has no Rota tables, or not those this Rota needs "
            f"({said}); run `rota migrate`"
        )
    if code == "40001":
        return StoreError(
            f"the caller's connection refuses: {said}. Somebody else has taken or changed "
            "a unique key since this transaction's snapshot; run the transaction again, or use READ "
            "COMMITTED"
        )
    return StoreError(f"the caller's connection refuses: {said}")


def _unknown(request: Request) -> StoreError:
    return StoreError(f"this connection cannot run a {type(request).__name__}")
