"""Notes in SQLite: no more rows than count, and none of jobs that are gone."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rota.model.job import ClaimedJob
from rota.model.notes import LINES, Note
from rota.model.states import Move
from rota.store.migrate import migrate
from rota.store.sqlite import tidy
from rota.store.sqlite.connection import SqliteConnection
from rota.store.sqlite.store import SqliteStore
from tests.store.factories import running, settle, settlement, until


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


def said(job: ClaimedJob, number: int, *, size: int = 1, lines: int = 1) -> list[Note]:
    """A progress, and lines, of a run."""
    now = time.monotonic()
    first = lines * (number - 1) + 1
    return [
        Note(job.id, job.lease, 1, False, number, now, 0.5, None, ""),
        *(
            Note(job.id, job.lease, 1, True, first + more, now, None, "info", "x" * size)
            for more in range(lines)
        ),
    ]


def rows(connection: SqliteConnection) -> int:
    query = "SELECT count(*) FROM rota_note"
    return int(connection.database().execute(query).fetchone()[0])


@pytest.mark.parametrize(("size", "kept"), [(1, LINES), (1000, 16)])
def test_rows_are_bounded(
    store: SqliteStore, connection: SqliteConnection, size: int, kept: int
) -> None:
    """Of each job one row is its progress, and so many are its lines, whatever it tells."""
    _, jobs = running(store, connection, 2)
    for number in range(1, 8):
        for job in jobs:
            connection.run(store.note(said(job, number, size=size, lines=40)))
    assert rows(connection) == 2 * (1 + kept)


def test_what_is_left_of_jobs_that_vanished(
    store: SqliteStore, connection: SqliteConnection
) -> None:
    """A job whose retention is 0 leaves its notes behind; they are swept up, those of others stay."""
    session, jobs = running(store, connection, 40)
    for job in jobs:
        connection.run(store.note(said(job, 1)))
    gone = [settlement(job, Move.COMPLETE, keep=0.0) for job in jobs[::2]]
    settle(store, connection, session, *gone)
    assert rows(connection) == 80

    def swept() -> bool | None:
        connection.run(store.tidy())
        return rows(connection) == 40 or None

    until(swept)
    assert set(connection.run(store.notes([job.id for job in jobs]))) == {
        job.id for job in jobs[1::2]
    }
    assert connection.run(tidy.prune(tidy.NOTE_SWEEP)) == 0


def test_sweeping_an_empty_table(connection: SqliteConnection) -> None:
    """Where nothing is told there is nothing to sweep."""
    assert connection.run(tidy.prune(tidy.NOTE_SWEEP)) == 0
