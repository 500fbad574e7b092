"""Databases for one benchmark: made at the start, removed at the end."""

import contextlib
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString

from rota.errors import ConfigError, StoreUnavailable
from rota.measure.servers.addresses import of_database
from rota.store import migrate
from rota.store.opening import open_store
from rota.store.url import shown

if TYPE_CHECKING:
    import psycopg
    from psycopg.sql import Composed


class Scratch:
    """Makes databases on a server, or files in a folder.

    Attributes:
        server: The URL of another database of the server, for observers that must not show in
            the figures of the measured database; `None` on SQLite.
    """

    def __init__(self, *, server: str | None, folder: Path | None) -> None:
        self.server = server
        self._folder = folder

    @property
    def postgres(self) -> bool:
        """Whether this is PostgreSQL."""
        return self.server is not None

    @contextlib.contextmanager
    def fresh(self) -> Iterator[str]:
        """The URL of a new database with Rota's tables, all empty.

        Raises:
            ConfigError: The server refuses to make it.
        """
        made = _sqlite(self._folder) if self.server is None else _postgres(self.server)
        with made as url:
            store = open_store(url)
            connection = store.connect()
            migrate.migrate(store, connection)
            connection.close()
            store.close()
            yield url


@contextlib.contextmanager
def scratch(url: str | None, *, private: bool) -> Iterator[Scratch]:
    """Where to make databases.

    Args:
        url: A PostgreSQL URL: databases are made on that server. A SQLite URL: files are made in
            that file's folder. Without one, SQLite files in a temporary folder.
        private: Start a PostgreSQL of Rota's own.

    Raises:
        ConfigError: The URL cannot be used, or there is no PostgreSQL to start.
    """
    if private:
        from rota.measure.servers.postgres import PostgresServer

        with PostgresServer.start() as server:
            yield Scratch(server=server.url, folder=None)
    elif url is None:
        yield Scratch(server=None, folder=None)
    else:
        open_store(url).close()  # refuses a wrong URL
        if url.startswith("sqlite"):
            folder = Path(url.partition("///")[2]).parent
            if not folder.is_dir():
                message = f"there is no folder {folder} to make a SQLite file in; see --url"
                raise ConfigError(message)
            yield Scratch(server=None, folder=folder)
        else:
            yield Scratch(server=url, folder=None)


LEFT: LiteralString = """
    SELECT datname FROM pg_database AS made
    WHERE datname ~ '^rota_bench_[0-9a-f]{8}$'
      AND NOT EXISTS (SELECT FROM pg_stat_activity AS used
                      WHERE made.datname IN (used.datname, used.application_name))
    ORDER BY datname
"""


def left_behind(server: str) -> list[str]:
    """The databases that killed benchmarks have not removed.

    A running benchmark has a session in its database, or one of its name that makes or drops it, so
    none of these is in use.
    """
    import psycopg

    with _connected(server) as connection:
        try:
            return [name for (name,) in connection.execute(LEFT)]
        except psycopg.Error:
            # A role that may not look can measure all the same.
            return []


@contextlib.contextmanager
def _postgres(server: str) -> Iterator[str]:
    import psycopg

    name = f"rota_bench_{secrets.token_hex(4)}"
    url = of_database(server, name)
    with contextlib.ExitStack() as sessions:
        connection = sessions.enter_context(_connected(server, name))
        # A Ctrl-C may come while the database is being made.
        try:
            try:
                connection.execute(_statement("CREATE DATABASE {}", name))
            except psycopg.Error as error:
                message = (
                    f"a benchmark makes a database of its own, which {shown(server)} refuses: "
                    f"{str(error).strip()}; use a role that may, or --private"
                )
                raise ConfigError(message) from error
            # This session shows other benchmarks that the database is in use: see `left_behind`.
            sessions.enter_context(_connected(url)).execute("SET idle_session_timeout = 0")
            connection.close()
            yield url
        finally:
            _drop(server, name)


def _drop(server: str, name: str) -> None:
    # A new connection: the first may be dead after hours.
    with _connected(server, name) as connection:
        connection.execute(_statement("DROP DATABASE IF EXISTS {} WITH (FORCE)", name))


def _statement(text: LiteralString, name: str) -> "Composed":
    from psycopg import sql

    return sql.SQL(text).format(sql.Identifier(name))


@contextlib.contextmanager
def _connected(server: str, name: str = "") -> "Iterator[psycopg.Connection[Any]]":
    """A session; by its application's name others see which database it makes or drops."""
    import psycopg

    try:
        connection = psycopg.connect(server, autocommit=True, application_name=name)
    except psycopg.OperationalError as error:
        message = f"{shown(server)} cannot be reached: {str(error).strip()}"
        raise StoreUnavailable(message) from error
    with contextlib.closing(connection):
        yield connection


@contextlib.contextmanager
def _sqlite(folder: Path | None) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="rota-bench-", dir=folder) as made:
        yield f"sqlite:///{Path(made).absolute()}/bench.db"
