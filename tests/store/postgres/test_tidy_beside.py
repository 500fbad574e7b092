"""Housekeeping beside transactions that stay open: it asks for no lock that it cannot have."""

import secrets

import pytest

from rota.store.operation import Statement
from rota.store.postgres import rings, tidy
from rota.store.postgres.store import PostgresStore
from tests.store.factories import until
from tests.store.postgres.database import Database, Later, Raw

PAUSED = 915


@pytest.fixture(autouse=True)
def small_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments so small that every round of housekeeping turns the rings."""
    for ring in ("LOG_SIZE", "CURSOR_SIZE", "LEASE_SIZE", "TALLY_SIZE", "FINISHED_SIZE"):
        monkeypatch.setattr(rings, ring, 0)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that is asked for in vain is waited for until the test fails."""
    waiting = Statement("lock_wait", "SELECT set_config('lock_timeout', '60s', true)")
    monkeypatch.setattr(rings, "LOCK_WAIT", waiting)


def left(db: Database) -> None:
    """A segment of each ring that has been left, and could be emptied."""
    session = db.session()
    db.enqueue(3)
    db.settle(session, db.claim(session), keep=0.001)
    db.own.run(rings.turn_log())
    db.own.run(rings.turn_finished())
    db.own.run(rings.turn_slots())


def dump(db: Database) -> Raw:
    """A transaction with the weak locks of pg_dump."""
    raw = db.bare(name="dump")
    for (name,) in db.sql(
        "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'p')"
        " AND relnamespace = 'rota'::regnamespace"
    ):
        raw.execute(f"LOCK TABLE {name} IN ACCESS SHARE MODE")
    return raw


@pytest.mark.parametrize("prepared", [False, True])
def test_no_lock_is_asked_for_beside_a_dump(db: Database, *, prepared: bool) -> None:
    """A round empties nothing, and waits for nothing; all claims would wait behind it."""
    left(db)
    holder = dump(db)
    if prepared:
        holder.execute("SELECT pg_current_xact_id()")
        holder.execute("PREPARE TRANSACTION 'rota dump'")
        holder.close()
    done = Later(db, db.store.tidy()).result()
    assert not any("empty again" in did for did in done)
    db.sql("ROLLBACK PREPARED 'rota dump'") if prepared else holder.rollback()
    # Cursors are copied in one round, and what they were copied from is emptied in the next.
    done = [did for _ in range(2) for did in Later(db, db.store.tidy()).result()]
    assert {did.partition(":")[0] for did in done if "empty again" in did} == {
        "log", "cursor", "lease", "tally", "finished",
    }  # fmt: skip


def test_a_role_that_sees_little(db: Database) -> None:
    """A role with no more than a worker's rights knows what other roles' transactions have locked."""
    left(db)
    role = f"app_{secrets.token_hex(4)}"
    db.sql(f"CREATE ROLE {role}")
    db.sql(f"GRANT USAGE ON SCHEMA rota TO {role}")
    db.sql(f"GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA rota TO {role}")
    db.sql(f"GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA rota TO {role}")
    holder = dump(db)
    separator = "&" if "?" in db.url else "?"
    own = PostgresStore(f"{db.url}{separator}options=-c%20role%3D{role}").connect()
    own.raw().execute("SET lock_timeout = 0")
    done = own.run(db.store.tidy())
    assert not any("empty again" in did for did in done)
    holder.rollback()
    assert any("empty again" in did for did in own.run(db.store.tidy()))
    own.close()
    db.sql(f"DROP OWNED BY {role}")
    db.sql(f"DROP ROLE {role}")


def test_only_the_tables_that_are_kept_wait(db: Database) -> None:
    """A reader of one segment keeps that one, and no other."""
    left(db)
    reader = db.bare()
    reader.execute("SELECT FROM rota.log_0")
    done = [did for _ in range(2) for did in Later(db, db.store.tidy()).result()]
    emptied = {did.partition(":")[0] for did in done if "empty again" in did}
    assert emptied == {"cursor", "lease", "tally", "finished"}
    reader.rollback()


@pytest.mark.parametrize("other", [False, True])
def test_who_comes_and_goes_keeps_nothing(
    db: Database, monkeypatch: pytest.MonkeyPatch, *, other: bool
) -> None:
    """Claims and enqueues lock segments all the time, for a moment each: a second look tells."""
    left(db)
    pause = Statement("pause", f"SELECT pg_advisory_lock({PAUSED})")
    monkeypatch.setattr(tidy, "PAUSE", pause)
    gate = db.bare()
    gate.execute("SELECT pg_advisory_lock(%s)", (PAUSED,))
    first, second = db.bare(), db.bare()
    first.execute("SELECT FROM rota.log")
    housekeeper = Later(db, db.store.tidy())
    until(lambda: db.waits_for(housekeeper.pid, gate.info.backend_pid) or None)
    first.rollback()
    if other:
        second.execute("SELECT FROM rota.log")
    gate.execute("SELECT pg_advisory_unlock(%s)", (PAUSED,))
    if other:
        # The second one was not there at the first look, so the lock is asked for.
        until(lambda: db.waits_for(housekeeper.pid, second.info.backend_pid) or None)
        second.rollback()
    assert any(did.startswith("log") and "empty" in did for did in housekeeper.result())
