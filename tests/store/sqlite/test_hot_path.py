"""The statements of every job: many jobs in few rows, and connections that check no constraints."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rota.model.job import Order
from rota.model.states import Move, State
from rota.store.execute import drive
from rota.store.migrate import migrate
from rota.store.operation import Query, Surroundings
from rota.store.sqlite.claim import CHUNK, LONG
from rota.store.sqlite.connection import SqliteConnection
from rota.store.sqlite.store import HOT, SqliteStore
from tests.store.factories import (
    claim,
    enqueue,
    open_session,
    record,
    rescued,
    running,
    settle,
    settlement,
    spec_of,
    states,
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
    """A connection that checks."""
    with closing(store.connect()) as connection:
        yield connection


def test_jobs_come_as_they_were_stored(store: SqliteStore, connection: SqliteConnection) -> None:
    """Long args and short ones, in several rows, arrive in their order and unchanged."""
    args = [
        json.dumps({"text": 'Zoë "Z" \U0001f40d\\ \x01 ' + "ü" * (0 if n % 50 else LONG), "n": n})
        for n in range(CHUNK + 1)
    ]
    jobs = connection.run(store.enqueue(Order(spec_of(), args)))
    claimed = claim(store, connection, open_session(store, connection), len(args))
    assert [(job.id, job.args) for job in claimed] == list(zip(jobs, args, strict=True))
    found = record(store, connection, jobs[0]).enqueued_at.timestamp()
    assert claimed[0].enqueued_at == pytest.approx(found, abs=1e-4)


def test_what_is_not_checked_is_right(store: SqliteStore, connection: SqliteConnection) -> None:
    """Connections that check no constraints leave rows behind that keep them all."""
    moves = [
        Move.COMPLETE,
        Move.CANCEL,
        Move.DISCARD,
        Move.RETRY,
        Move.SNOOZE,
        Move.RELEASE,
        Move.AGAIN,
    ]
    session = open_session(store, connection)
    with closing(store.connect("claimer")) as claimer, closing(store.connect("settler")) as settler:
        enqueue(store, connection, 3 * len(moves))
        jobs = claim(store, claimer, session, 2 * len(moves))
        ends = [
            settlement(job, move, delay=60.0, keep=keep)
            for job, (move, keep) in zip(
                jobs, [(m, k) for m in moves for k in (60.0, None)], strict=True
            )
        ]
        assert settle(store, settler, session, *ends) == []
        claim(store, claimer, session, 3)
    database = connection.database()
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    database.execute("PRAGMA ignore_check_constraints = ON")
    database.execute("UPDATE rota_job SET cancel_requested = 1")
    database.execute("PRAGMA ignore_check_constraints = OFF")
    assert database.execute("PRAGMA integrity_check").fetchall() != [("ok",)]


def test_who_checks_nothing(store: SqliteStore) -> None:
    """Only the connections that every job uses lack constraints; users' transactions have them."""
    for purpose in ("", "upkeep", *HOT):
        with closing(store.connect(purpose)) as connection:
            enqueue(store, connection)
            assert checks(connection.database()) is (purpose not in HOT)
    with store.lent() as lent:
        assert not checks(lent.database())
    transaction = store.transaction()
    assert checks(transaction.connection)
    transaction.rollback()


def checks(database: sqlite3.Connection) -> bool:
    """Whether a connection refuses a row that cannot be a job."""
    try:
        database.execute("UPDATE rota_job SET lease = 1")
    except sqlite3.IntegrityError:
        return True
    database.execute("UPDATE rota_job SET lease = NULL")
    return False


@pytest.mark.parametrize("keep", [0.0, 60.0])
@pytest.mark.parametrize("result", [None, "1"])
def test_a_rescue_between_look_and_end(
    store: SqliteStore, connection: SqliteConnection, keep: float, result: str | None
) -> None:
    """Without a transaction around the two, a job that was taken over in between is left alone."""
    session = open_session(store, connection, timeout=0.02)
    enqueue(store, connection)
    [job] = claim(store, connection, session)
    steps = store.settle(session, [settlement(job, Move.COMPLETE, keep=keep, result=result)]).steps
    with closing(store.connect()) as other:
        looked = False

        def execute(request: object) -> list[tuple[object, ...]]:
            nonlocal looked
            assert isinstance(request, Query)
            if looked and request.statement.name.startswith("settle"):
                rescued(store, other, session)
                claim(store, other, open_session(store, other))
            looked = request.statement.name == "settle_held"
            return connection.database().execute(request.statement.text, request.params).fetchall()

        drive(steps, execute)
    assert states(store, connection, [job.id]) == [State.RUNNING]


def test_a_callers_connection_that_has_begun_nothing(
    store: SqliteStore, connection: SqliteConnection
) -> None:
    """It has the file from before the look at the lease to the end, so no rescue comes between."""
    session, [job] = running(store, connection)
    refused: list[str] = []
    with closing(sqlite3.connect(store.path)) as driver:

        def execute(request: object) -> list[tuple[object, ...]]:
            if not isinstance(request, Query):
                return [Surroundings(begun=driver.in_transaction)]
            if request.statement.name == "settle_held":
                with closing(sqlite3.connect(store.path, timeout=0)) as other:
                    try:
                        other.execute("BEGIN IMMEDIATE")
                    except sqlite3.OperationalError as error:
                        refused.append(str(error))
            return driver.execute(request.statement.text, request.params).fetchall()

        before = drive(store.tag().steps, execute)
        settle = store.settle_tagged(session, settlement(job, Move.COMPLETE), before)
        assert drive(settle.steps, execute) == []
        driver.commit()
    assert refused == ["database is locked"]
    assert states(store, connection, [job.id]) == [State.COMPLETED]
