"""Migrations beside readers and producers."""

import time
from collections.abc import Mapping
from contextlib import closing
from threading import Event, Thread

import psycopg
import pytest

from rota.errors import StoreUnavailable
from rota.store.migrate import migrate, scripts
from rota.store.postgres.store import PostgresStore
from tests.cli.calling import finished, read_until, started
from tests.store.factories import until
from tests.store.postgres.database import Database
from tests.store.schema import make_old

LONG = 100.0
"""Seconds that nothing takes unless it hangs."""

LOCK_TIMEOUT = 0.5
"""Seconds that a migration waits for a table."""

LOADED = 3.0
"""Seconds by which a loaded machine may be late."""

FREE = "CREATE TABLE rota.free (number integer);"
IN_USE = "CREATE TABLE rota.later (number integer); ALTER TABLE rota.log ADD later integer;"


@pytest.fixture
def newest(db: Database, monkeypatch: pytest.MonkeyPatch) -> int:
    """The version; there are two further migrations, of which the second changes the log."""
    version = max(db.store.migrations())
    more = {version + 1: FREE, version + 2: IN_USE}

    def migrations(version: int = 0) -> Mapping[int, str]:
        return {number: sql for number, sql in more.items() if number > version}

    monkeypatch.setattr(db.store, "migrations", migrations, raising=False)
    return version


def made(db: Database) -> tuple[bool, bool, bool]:
    """Whether there is the first migration's table, the second one's, and its column."""
    column = (
        "SELECT count(*) = 1 FROM pg_attribute"
        " WHERE attrelid = 'rota.log'::regclass AND attname = 'later'"
    )
    tables = [f"SELECT to_regclass('rota.{name}') IS NOT NULL" for name in ("free", "later")]
    first, second, third = (db.one(query) for query in [*tables, column])
    return first, second, third


def test_producers_go_on(db: Database, newest: int) -> None:
    """While a migration waits for a reader, a producer waits for no longer than its lock_timeout."""
    db.enqueue(1)
    reader = db.bare()
    reader.execute("SELECT count(*) FROM rota.log")
    said: list[str] = []
    tried = Event()

    def waiting() -> None:
        said.append("waiting")
        tried.set()

    applied: list[int] = []
    thread = Thread(
        target=lambda: applied.extend(
            migrate(db.store, db.connect(), patience=LONG, waiting=waiting)
        ),
        daemon=True,
    )
    thread.start()
    asks = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'rota.log'::regclass"
    db.own.raw().execute("SET statement_timeout = '20s'")
    for _ in range(3):
        until(lambda: db.one(asks) or None)
        began = time.monotonic()
        db.enqueue(1)
        assert time.monotonic() - began < LOCK_TIMEOUT + LOADED
    assert tried.wait(LONG)
    assert applied == []
    reader.commit()
    thread.join(LONG)
    assert applied == [newest + 1, newest + 2]
    assert made(db) == (True, True, True)
    assert said == ["waiting"]
    assert len(db.claim_all(db.session())) == 4


def test_tables_that_stay_in_use(db: Database, newest: int) -> None:
    """After the stated time it is an error; steps before are done, and nothing is half done."""
    reader = db.bare()
    reader.execute("SELECT count(*) FROM rota.log")
    with pytest.raises(StoreUnavailable, match=f"still have version {newest + 1}:.*for 0 seconds"):
        migrate(db.store, db.own, patience=0)
    assert db.own.run(db.store.schema_version()) == newest + 1
    assert made(db) == (True, False, False)
    reader.rollback()
    assert migrate(db.store, db.own, patience=0) == [newest + 2]
    assert made(db) == (True, True, True)


def test_another_migrator(db: Database, newest: int) -> None:
    """It is waited for as well, and what it did is not done again."""
    steps = scripts(db.store, newest)
    other = db.bare()
    other.execute(steps[newest + 1].encode())
    with pytest.raises(StoreUnavailable, match="rota migrate"):
        migrate(db.store, db.own, patience=0)
    other.commit()
    assert migrate(db.store, db.own, patience=0) == [newest + 2]


def test_by_hand(db: Database, newest: int) -> None:
    """The printed SQL gives up as well, changes nothing then, and can be applied again."""
    text = "".join(scripts(db.store, newest).values())
    reader = db.bare()
    reader.execute("SELECT count(*) FROM rota.log")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        db.sql(text)
    assert made(db) == (False, False, False)
    reader.rollback()
    db.sql(text)
    assert made(db) == (True, True, True)


def test_a_callers_lock_timeout(db: Database, newest: int) -> None:
    """The transaction around a step keeps its own one, also where the step has nothing to do."""
    steps = scripts(db.store, newest)
    raw = db.bare()
    raw.execute("SET LOCAL lock_timeout = '7s'")
    for _ in range(2):
        raw.execute(steps[newest + 1].encode())
        assert raw.execute("SHOW lock_timeout").fetchall() == [("7s",)]


def test_the_command(postgres_url: str) -> None:
    """`rota migrate` says once that it waits, and goes on when the tables are free."""
    store = PostgresStore(postgres_url)
    with closing(store.connect()) as connection, psycopg.connect(postgres_url) as reader:
        make_old(store, connection, 8)
        reader.execute("SELECT count(*) FROM rota.lane")
        with started("migrate", url=postgres_url) as process:
            read_until(process.stderr, "trying again for up to 60 seconds")
            reader.rollback()
            stdout, stderr = process.communicate(timeout=LONG)
        assert (process.returncode, stderr) == (0, "")
        assert "went from version 8 to" in stdout
    assert "is up to date" in finished("migrate", url=postgres_url).stdout
