"""Opening a database to look at it, or to change what is there.

Nothing is created: a mistyped path must not leave an empty database behind.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from rota import Rota
from rota.app.shards import Shards
from rota.errors import SchemaMissing
from rota.store.connections import Connection
from rota.store.opening import default_url, open_store
from rota.store.protocol import Store
from rota.store.shard_urls import from_environment


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
def database_or_shards(url: str | None) -> Iterator[Rota | Shards]:
    """The same, or without `--url` and `--shard` an app of all databases that `ROTA_SHARDS` names.

    A shard whose server is away may come back; a file that is not there is a mistake.

    Raises:
        ConfigError: A URL cannot be used.
        SchemaMissing: There is no such file, or it has no tables; likewise the other errors of one
            database.
    """
    if url is not None or not from_environment():
        with database(url) as rota:
            yield rota
        return
    with Rota.shards() as rota:
        for shard in rota.values():
            if shard.database.store.name == "sqlite":
                must_exist(shard.database.store)
                shard.database.ready(make=False)
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
            "or create it with `rota migrate`"
        )
        raise SchemaMissing(message)
