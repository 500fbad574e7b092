"""A database for one benchmark: made at the start, removed at the end."""

import contextlib
import secrets
import tempfile
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

from rota.errors import ConfigError, StoreUnavailable
from rota.store import migrate
from rota.store.opening import open_store, shown


@contextlib.contextmanager
def scratch(url: str | None, *, private: bool) -> Iterator[str]:
    """The URL of a fresh, migrated database.

    Args:
        url: A PostgreSQL URL: the database is made on that server. A SQLite URL: the file is made
            in that file's folder. Without one, a SQLite file in a temporary folder.
        private: Start a PostgreSQL of Rota's own.

    Raises:
        ConfigError: The database cannot be made.
    """
    with contextlib.ExitStack() as stack:
        if private:
            from rota.servers.postgres import PostgresServer

            server = stack.enter_context(PostgresServer.start())
            fresh = server.create_database("bench")
        elif url is not None and url.startswith(("postgres://", "postgresql://")):
            fresh = stack.enter_context(_postgres(url))
        else:
            fresh = stack.enter_context(_sqlite(url))
        store = open_store(fresh)
        connection = store.connect()
        migrate.migrate(store, connection)
        connection.close()
        store.close()
        yield fresh


@contextlib.contextmanager
def _postgres(url: str) -> Iterator[str]:
    import psycopg
    from psycopg import sql

    name = f"rota_bench_{secrets.token_hex(4)}"
    try:
        server = psycopg.connect(url, autocommit=True)
    except psycopg.Error as error:
        message = f"{shown(url)} is not to be reached: {str(error).strip()}"
        raise StoreUnavailable(message) from error
    with server:
        try:
            server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        except psycopg.Error as error:
            message = (
                f"a benchmark makes a database of its own, which {shown(url)} refuses: "
                f"{str(error).strip()}; use a role that may, or --private"
            )
            raise ConfigError(message) from error
        try:
            yield urllib.parse.urlsplit(url)._replace(path=f"/{name}").geturl()
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextlib.contextmanager
def _sqlite(url: str | None) -> Iterator[str]:
    folder = None
    if url is not None:
        folder = Path(url.partition("///")[2] or ".").parent
    with tempfile.TemporaryDirectory(prefix="rota-bench-", dir=folder) as made:
        yield f"sqlite:///{made}/bench.db"
