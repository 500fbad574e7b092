"""Opening a database to look at it, or to change what is there.

Nothing is created: a mistyped path must not leave an empty database behind.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from rota import Rota
from rota.errors import SchemaMissing
from rota.store.connections import Connection
from rota.store.opening import default_url, open_store
from rota.store.protocol import Store


@contextmanager
def database(url: str | None) -> Iterator[Rota]:
    """An app without tasks on the database that `--url` names.

    Raises:
        ConfigError: The URL cannot be used.
        DatabaseRefused: The database refuses.
        StoreUnavailable: The database cannot be reached.
        SchemaMissing: There is no such file, or it has no tables; likewise the other schema errors.
    """
    with Rota(url or default_url()) as rota:
        must_exist(rota.database.store)
        rota.database.ready(make=False)
        yield rota


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
    if (path := store.missing_file()) is not None:
        message = (
            f"there is no database file {path}; check the path (--url or ROTA_DATABASE_URL), "
            "or make it with `rota migrate`"
        )
        raise SchemaMissing(message)
