"""What only rows can do: the order of claims over queues, pruning in batches, and constraints."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rota.model.states import Move, State
from rota.store.migrate import migrate
from rota.store.sqlite.connection import SqliteConnection
from rota.store.sqlite.statements import CHUNK_CHARACTERS, CHUNK_JOBS, chunks
from rota.store.sqlite.store import SqliteStore
from tests.store.factories import (
    claim,
    enqueue,
    in_state,
    open_session,
    running,
    settle,
    settlement,
    until,
)


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    """A store that is up to date."""
    store = SqliteStore(tmp_path / "rota.db")
    with closing(store.connect()) as connection:
        migrate(store, connection)
    return store


@pytest.fixture
def connection(store: SqliteStore) -> Iterator[SqliteConnection]:
    """A connection of the store."""
    with closing(store.connect()) as connection:
        yield connection


def test_queues_are_merged_by_priority_then_id(
    store: SqliteStore, connection: SqliteConnection
) -> None:
    """A worker of several queues gets their jobs in one common order."""
    expected = []
    for queue, priority in [("a", 5), ("b", 0), ("a", 0), ("c", -5), ("b", 0), ("c", 5)]:
        jobs = enqueue(store, connection, 2, queue=queue, priority=priority)
        expected += [(priority, job) for job in jobs]
    expected.sort()
    session = open_session(store, connection)
    got = []
    while batch := claim(store, connection, session, 5, ("c", "b", "a")):
        got += [(job.priority, job.id) for job in batch]
    assert got == expected


def test_pruned_jobs_leave_no_row(store: SqliteStore, connection: SqliteConnection) -> None:
    """Housekeeping removes rows in several transactions, and says how many."""
    session = open_session(store, connection)
    enqueue(store, connection, 2500)
    jobs = claim(store, connection, session, 2500)
    settle(store, connection, session, *[settlement(job, Move.COMPLETE, keep=1e-6) for job in jobs])
    kept = in_state(store, connection, State.DISCARDED).id
    said: list[str] = []

    def rows() -> list[tuple[int]]:
        return connection.database().execute("SELECT id FROM rota_job").fetchall()

    def look() -> bool | None:
        done = connection.run(store.tidy())
        said.extend(done)
        return True if rows() == [(kept,)] else None

    until(look)
    assert said == ["removed 2500 jobs past their retention"]


def test_sessions_are_forgotten(store: SqliteStore, connection: SqliteConnection) -> None:
    """Housekeeping removes sessions that ended long ago, and no others."""
    old, ended, alive = (open_session(store, connection) for _ in range(3))
    connection.run(store.close_session(old))
    connection.run(store.close_session(ended))
    database = connection.database()
    database.execute("UPDATE rota_session SET ended_at = ended_at - 90000 WHERE id = ?", (old,))
    assert connection.run(store.tidy()) == ["removed 1 sessions that ended long ago"]
    found = database.execute("SELECT id FROM rota_session ORDER BY id").fetchall()
    assert found == [(ended,), (alive,)]


@pytest.mark.parametrize(
    "change",
    [
        "state = 'running'",
        "state = 'unheard of'",
        "state = 'completed'",
        "state = 'scheduled'",
        "lease = 1",
        "session = 1",
        "scheduled_at = 1.0",
        "finished_at = 1.0",
        "keep_until = 1.0",
        "cancel_requested = 1",
        "attempt = -1",
        "priority = 'high'",
        "task = NULL",
    ],
)
def test_the_table_knows_the_rules(
    store: SqliteStore, connection: SqliteConnection, change: str
) -> None:
    """A row that cannot be a job is refused by the table itself."""
    enqueue(store, connection)
    with pytest.raises(sqlite3.IntegrityError):
        connection.database().execute(f"UPDATE rota_job SET {change}")


def test_chunks_keep_all_args_in_order() -> None:
    """Long batches are cut by their number and by their length; a giant stands alone."""
    small = ["1"] * (2 * CHUNK_JOBS + 1)
    assert [len(chunk) for chunk in chunks(small)] == [CHUNK_JOBS, CHUNK_JOBS, 1]
    giant = "x" * (CHUNK_CHARACTERS + 1)
    cut = [list(chunk) for chunk in chunks(["a", giant, "b", "c"])]
    assert cut == [["a"], [giant], ["b", "c"]]
    assert [list(chunk) for chunk in chunks([giant])] == [[giant]]


def test_totals_of_pruned_jobs_are_forgotten(
    store: SqliteStore, connection: SqliteConnection
) -> None:
    """Pruned jobs leave no totals by moment of expiry behind, only how many jobs ever ended."""
    session, jobs = running(store, connection, 3)
    batch = [
        settlement(job, Move.COMPLETE, keep=keep)
        for job, keep in zip(jobs, (0.01, 0.02, 600.0), strict=True)
    ]
    settle(store, connection, session, *batch)
    kinds = "SELECT count(*) FROM rota_count WHERE state = 'completed' AND expires > -9e999"
    [(before,)] = connection.database().execute(kinds)
    assert before == 3

    def pruned() -> bool | None:
        connection.run(store.tidy())
        [(left,)] = connection.database().execute(kinds)
        return left == 1 or None

    until(pruned)
    ended = "SELECT jobs FROM rota_count WHERE state = 'completed' AND expires = -9e999"
    assert connection.database().execute(ended).fetchall() == [(3,)]


@pytest.mark.parametrize("keep", [0.0005, 1.0, 3600.0, 86_400.0, 1e9])
def test_jobs_are_kept_a_little_longer(
    store: SqliteStore, connection: SqliteConnection, keep: float
) -> None:
    """At least their retention, and at most 1/32 longer (or a millisecond)."""
    session, [job] = running(store, connection)
    settle(store, connection, session, settlement(job, Move.COMPLETE, keep=keep))
    asked = "SELECT keep_until - finished_at FROM rota_job"
    [(kept,)] = connection.database().execute(asked)
    assert keep <= kept + 1e-5
    assert kept <= keep + max(keep / 32, 0.001) + 1e-5


def test_many_expire_together(store: SqliteStore, connection: SqliteConnection) -> None:
    """Jobs that complete one after the other, with a day's retention, share one total."""
    session, jobs = running(store, connection, 30)
    for job in jobs:
        settle(store, connection, session, settlement(job, Move.COMPLETE, keep=86_400.0))
    kinds = "SELECT count(DISTINCT keep_until) FROM rota_job"
    [(kept,)] = connection.database().execute(kinds)
    assert kept <= 2
