"""PostgreSQL, through psycopg 3."""

import contextlib
import importlib.metadata
import logging
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, LiteralString

import psycopg
from psycopg import errors, sql
from psycopg.rows import namedtuple_row

from rota.errors import ConfigError, StoreUnavailable
from rota.measure.reports.surroundings import postgres_settings
from rota.measure.servers.addresses import of_database
from rota_lab.databases import Connection, Deadlock, Kind, Look

# It warns of errors in ending what another error ended: that one is raised, and reported.
logging.getLogger("psycopg").setLevel(logging.ERROR)

LOOK: LiteralString = """
    select (select coalesce(sum(n_dead_tup), 0)::int8 from pg_stat_user_tables) as dead,
           (select extract(epoch from clock_timestamp() - min(xact_start))::float8
            from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid()
              and backend_type = 'client backend') as oldest
"""


class Postgres(Connection):
    """A connection in psycopg's autocommit mode."""

    def __init__(self, url: str) -> None:
        with _translated():
            self._connection = psycopg.connect(url, autocommit=True, row_factory=namedtuple_row)

    def execute(self, sql: LiteralString, *parameters: object) -> int:
        with _translated():
            return self._connection.execute(sql, parameters or None).rowcount

    def execute_many(self, sql: LiteralString, rows: Sequence[Sequence[object]]) -> None:
        with _translated(), self._connection.transaction():
            self._connection.cursor().executemany(sql, rows)

    def rows(self, sql: LiteralString, *parameters: object) -> list[Any]:
        with _translated():
            return self._connection.execute(sql, parameters or None).fetchall()

    def command(self, sql: LiteralString, *parameters: object) -> None:
        with _translated():
            psycopg.ClientCursor(self._connection).execute(sql, parameters or None)

    def rollback(self) -> None:
        with contextlib.suppress(psycopg.Error):
            self._connection.rollback()

    def close(self) -> None:
        self._connection.close()


class PostgresKind(Kind):
    """Databases on a PostgreSQL server."""

    def connect(self, url: str) -> Connection:
        return Postgres(url)

    @contextlib.contextmanager
    def fresh(self, server: str) -> Iterator[str]:
        name = f"rota_lab_{secrets.token_hex(4)}"
        with _admin(server) as admin:
            admin.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        url = of_database(server, name)
        try:
            yield url
        finally:
            # New connections: the first may be dead after hours.
            with contextlib.suppress(StoreUnavailable):
                _forget_prepared(url)
            with contextlib.suppress(StoreUnavailable), _admin(server) as admin:
                drop = sql.SQL("drop database if exists {} with (force)")
                admin.execute(drop.format(sql.Identifier(name)))

    @contextlib.contextmanager
    def long_transaction(self, url: str) -> Iterator[None]:
        with contextlib.closing(self.connect(url)) as connection:
            connection.execute("begin isolation level repeatable read")
            connection.execute("set local idle_in_transaction_session_timeout = 0")
            connection.execute("select txid_current()")
            yield

    def look(self, connection: Connection) -> Look:
        return Look(*connection.rows(LOOK)[0])

    def facts(self, url: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
        with _translated():
            settings = postgres_settings(url)
        versions = {
            "postgresql": settings.pop("server_version"),
            "psycopg": importlib.metadata.version("psycopg"),
        }
        return versions, settings


def _forget_prepared(url: str) -> None:
    """Roll back transactions that were left prepared: they keep a database from being dropped."""
    with contextlib.closing(Postgres(url)) as connection:
        for row in connection.rows(
            "select gid from pg_prepared_xacts where database = current_database()"
        ):
            connection.command("rollback prepared %s", row.gid)


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (errors.DeadlockDetected, errors.SerializationFailure) as error:
        raise Deadlock(str(error)) from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        # An error of the driver's own has no state: the connection is lost, or was never made.
        if error.sqlstate is None or error.sqlstate[:3] in {"08P", "080", "57P"}:
            raise StoreUnavailable(f"PostgreSQL: {str(error).strip()}") from error
        raise


@contextlib.contextmanager
def _admin(server: str) -> "Iterator[psycopg.Connection[Any]]":
    try:
        with contextlib.closing(psycopg.connect(server, autocommit=True)) as connection:
            yield connection
    except psycopg.OperationalError as error:
        message = f"PostgreSQL cannot be reached: {str(error).strip()}"
        raise StoreUnavailable(message) from error
    except psycopg.Error as error:
        message = (
            "the lab makes databases of its own, which PostgreSQL refuses: "
            f"{str(error).strip()}; use a role that may, or no --database"
        )
        raise ConfigError(message) from error


KIND = PostgresKind()
