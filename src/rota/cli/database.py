"""Opening a database for somebody who wants to look at it or change what is there.

Nothing is created: a mistyped path must not leave an empty database behind.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from rota.errors import SchemaMissing
from rota.store import migrate
from rota.store.connections import Connection
from rota.store.opening import default_url, open_store
from rota.store.operation import Operation
from rota.store.protocol import Store

T = TypeVar("T")


class Database:
    """A store whose tables are as this Rota needs them, and a connection to it."""

    def __init__(self, store: Store, connection: Connection) -> None:
        self.store = store
        self._connection = connection

    def run(self, operation: Operation[T]) -> T:
        """Run an operation of the store."""
        return self._connection.run(operation)


@contextmanager
def database(url: str | None) -> Iterator[Database]:
    """Open the database that `--url` names.

    Raises:
        ConfigError: The URL cannot be used.
        DatabaseRefused: The database refuses.
        StoreUnavailable: The database cannot be reached.
        SchemaMissing: There is no such file, or no tables in it; likewise the other schema errors.
    """
    with connected(url) as (store, connection):
        must_exist(store)
        migrate.check(store, connection)
        yield Database(store, connection)


@contextmanager
def connected(url: str | None) -> Iterator[tuple[Store, Connection]]:
    """The store that `--url` names, and a connection that opens with its first use."""
    store = open_store(url or default_url())
    with closing(store), closing(store.connect()) as connection:
        yield store, connection


def must_exist(store: Store) -> None:
    """Refuse a SQLite file that is not there.

    Raises:
        SchemaMissing: There is no such file.
    """
    if (path := missing_file(store)) is not None:
        message = (
            f"there is no database file {path}; check the path (--url or ROTA_DATABASE_URL), "
            "or make it with `rota migrate`"
        )
        raise SchemaMissing(message)


def missing_file(store: Store) -> Path | None:
    """The file that a SQLite store would create, were it used now."""
    path = getattr(store, "path", None)
    if store.name != "sqlite" or path is None or Path(path).exists():
        return None
    return Path(path)
