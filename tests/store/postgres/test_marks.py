"""The ring of the marks: the newest one is never lost, and old ones go whatever snapshot is held."""

import psycopg
import pytest

from rota.store.operation import Statement
from rota.store.postgres import counters, rings
from tests.store.factories import until
from tests.store.postgres.counting import right, squeeze, tidy
from tests.store.postgres.database import Database, Later, Raw


@pytest.fixture(autouse=True)
def small_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables so small that every tidying turns their ring, and a mark whenever one is asked for."""
    for ring in ("MARK_SIZE", "TALLY_SIZE"):
        monkeypatch.setattr(rings, ring, 0)
    monkeypatch.setattr(counters, "MARK_AGE", 0.0)


def mark(db: Database, count: int = 1) -> None:
    """Write totals down, so many times."""
    for _ in range(count):
        db.enqueue(1)
        assert squeeze(db)


def aged(db: Database) -> None:
    """Let a minute pass for all marks."""
    db.sql("UPDATE rota.tally_mark SET at = at - interval '61 seconds'")


def sizes(db: Database) -> list[int]:
    """The bytes of the two tables of marks."""
    return [db.one(f"SELECT pg_relation_size('rota.tally_mark_{slot}')") for slot in (0, 1)]


def turned(db: Database) -> None:
    """Marks in the one table, and the other one current."""
    mark(db, 3)
    db.own.run(rings.turn_slots())
    assert sizes(db)[0] > 0
    assert db.one("SELECT last_value FROM rota.tally_mark_turn") == 1


def test_old_marks_go_under_a_held_snapshot(db: Database, held: Raw) -> None:
    """No mark is deleted or updated, and no vacuum is needed: whole tables are emptied."""
    del held
    for _ in range(12):
        mark(db, 20)
        aged(db)
        tidy(db)
    # `aged` itself leaves dead rows; a day of marks would be 240 of them and more.
    assert db.one("SELECT count(*) FROM rota.tally_mark") <= 60
    assert max(sizes(db)) <= 10 * 8192
    assert right(db)


def test_the_newest_mark_stays_where_nothing_happens(db: Database) -> None:
    """Without work there is no newer mark, and the table that was left is kept."""
    turned(db)
    aged(db)
    tidy(db)
    assert sizes(db)[0] > 0
    assert right(db)
    mark(db)
    # The mark of an older Rota, or of a squeeze that had not noticed the turn.
    aged(db)
    db.sql("INSERT INTO rota.tally_mark_0 SELECT seq + 1, at, snapshot, claimed, lanes, states, expires,"
           " jobs FROM ONLY rota.tally_mark_1 ORDER BY seq DESC LIMIT 1")  # fmt: skip
    assert db.own.run(rings.empty_slot("tally_mark", 0)) == []
    assert right(db)


def test_a_snapshot_of_before_sees_a_mark(db: Database) -> None:
    """A dump that has begun, and not locked its tables yet, finds the totals."""
    turned(db)
    dump = db.bare()
    dump.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    dump.execute("SELECT FROM rota.origin")
    mark(db)
    tidy(db, 2)
    assert dump.execute("SELECT count(*) FROM rota.tally_mark").fetchall() > [(0,)]
    dump.rollback()
    aged(db)
    assert db.own.run(rings.empty_slot("tally_mark", 0)) == ["tally_mark: table 0 is empty again"]
    assert right(db)


def test_a_mark_that_comes_during_the_wait(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a squeeze writes to the table that is about to be truncated is looked at once more."""
    waiting = Statement("lock_wait", "SELECT set_config('lock_timeout', '20s', true)")
    monkeypatch.setattr(rings, "LOCK_WAIT", waiting)
    turned(db)
    mark(db)
    aged(db)
    late = db.bare()
    late.execute("INSERT INTO rota.tally_mark_0 SELECT seq + 1, at, snapshot, claimed, lanes, states,"
                 " expires, jobs FROM rota.tally_mark ORDER BY seq DESC LIMIT 1")  # fmt: skip
    emptying = Later(db, rings.empty_slot("tally_mark", 0))
    until(lambda: db.waits_for(emptying.pid, late.info.backend_pid) or None)
    late.commit()
    assert emptying.result() == []
    assert right(db)
