"""How long SQLite keeps the history."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rota.model.history import KEPT
from rota.store.migrate import migrate
from rota.store.sqlite.connection import SqliteConnection
from rota.store.sqlite.store import SqliteStore
from tests.store.factories import enqueue, minutes_pass


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    """A store on a new file."""
    return SqliteStore(tmp_path / "rota.db")


@pytest.fixture
def connection(store: SqliteStore) -> Iterator[SqliteConnection]:
    """A connection to its tables."""
    with closing(store.connect()) as connection:
        migrate(store, connection)
        yield connection


def minutes(connection: SqliteConnection) -> list[tuple[str, int]]:
    """How many rows each queue has."""
    rows = connection.database().execute("SELECT queue, count(*) FROM rota_history GROUP BY queue")
    return [(queue, count) for queue, count in rows]


def test_the_oldest_minute_goes(store: SqliteStore, connection: SqliteConnection) -> None:
    """It goes when a new minute comes, a week later.

    The row of a queue in which nothing happens stays for the next difference.
    """
    enqueue(store, connection, 1, queue="quiet")
    connection.run(store.history.record())
    connection.database().execute("UPDATE rota_count SET jobs = 0")
    minutes_pass(store, connection, KEPT)
    connection.run(store.history.record())
    there = minutes(connection)
    assert there == [("", 2), ("quiet", 2)]
    minutes_pass(store, connection)
    connection.run(store.history.record())
    assert minutes(connection) == there
