"""Which kind of connection a caller has given, and the adapter for it.

Connections are told apart by the module of their class, so that no driver is imported that the
caller has not imported.
"""

from typing import Any

from rota.database import adapters
from rota.database.adapters import Awaiting, Blocking
from rota.database.through_django import alias_of, django
from rota.errors import ConfigError


async def caller(connection: Any) -> Blocking | Awaiting:
    """Recognise a caller's connection, async or not.

    Raises:
        ConfigError: It is no connection that Rota knows how to use.
    """
    match family(connection):
        case ("psycopg", "AsyncConnection"):
            return adapters.psycopg_async(connection)
        case ("asyncpg", _):
            return adapters.asyncpg(connection)
        case ("aiosqlite", _):
            return adapters.aiosqlite(connection)
        case ("sqlalchemy", "AsyncConnection"):
            try:
                return adapters.sqlalchemy_async(connection)
            except ConfigError:
                raise
            except Exception as error:
                raise adapters.translated(error) from error
        case ("sqlalchemy", "AsyncSession" | "async_scoped_session"):
            try:
                own = await connection.connection()
            except Exception as error:
                raise adapters.translated(error) from error
            return adapters.sqlalchemy_async(own)
        case _:
            return blocking_caller(connection)


def blocking_caller(connection: Any) -> Blocking:
    """Recognise a caller's blocking connection.

    Raises:
        ConfigError: It is an async one, or none that Rota knows how to use.
    """
    match family(connection):
        case ("psycopg", "Connection"):
            return adapters.psycopg(connection)
        case ("sqlite3", _):
            return adapters.sqlite3(connection)
        case ("sqlalchemy", "Connection"):
            return adapters.sqlalchemy(connection)
        case ("sqlalchemy", "Session" | "scoped_session"):
            try:
                own = connection.connection()
            except Exception as error:
                raise adapters.translated(error) from error
            return adapters.sqlalchemy(own)
        case ("", "") if alias_of(connection) is not None:
            return django(connection)
        case (("psycopg" | "asyncpg" | "aiosqlite" | "sqlalchemy"), kind):
            message = (
                f"conn is an async {kind}, which only async code can use: write "
                "`await task.aenqueue(...)`, or `async with`"
            )
            raise ConfigError(message)
        case _:
            kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
            kind = kind.removeprefix("builtins.")
            if (instead := _instead(connection)) is not None:
                message = f"conn is of type {kind}, {instead}"
                raise ConfigError(message)
            message = (
                f"conn is of type {kind}, which Rota cannot use; it takes connections of psycopg, "
                "asyncpg, sqlite3 and aiosqlite, SQLAlchemy's Connection, Session and their "
                "async twins, and Django's connections and their aliases"
            )
            raise ConfigError(message)


def _instead(given: object) -> str | None:
    """What to pass instead of something that makes a connection, and is none."""
    match type(given).__name__:
        case "Engine" | "AsyncEngine" | "Pool" | "ConnectionPool" | "AsyncConnectionPool":
            return "which makes connections; pass the one with your transaction, that of your `with` block"
        case "sessionmaker" | "async_sessionmaker":
            return "which makes sessions; pass the one with your transaction, that of your `with` block"
        case "_GeneratorContextManager" | "_AsyncGeneratorContextManager":
            return "which was not entered; pass conn of `with … as conn:`, or `async with`"
        case "function" | "method" | "type" | "generator" | "async_generator" | "coroutine":
            return "which Rota cannot use; pass the connection or session that it gives"
        case _:
            return None


_KINDS = {
    "psycopg": {"Connection", "AsyncConnection"},
    "asyncpg": {"Connection", "PoolConnectionProxy"},
    "sqlite3": {"Connection"},
    "aiosqlite": {"Connection"},
    "sqlalchemy": {
        "Connection", "Session", "scoped_session",
        "AsyncConnection", "AsyncSession", "async_scoped_session",
    },
}  # fmt: skip


def family(connection: object) -> tuple[str, str]:
    """A connection's driver and kind, two empty texts for what is no connection.

    Subclasses count as what they derive from; the first class of a known family decides.
    """
    for kind in type(connection).__mro__:
        package = kind.__module__.partition(".")[0]
        if kind.__name__ in _KINDS.get(package, ()):
            return package, kind.__name__
    return "", ""
