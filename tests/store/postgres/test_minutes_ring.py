"""The history in PostgreSQL: its ring, who writes it, and where totals begin anew."""

from datetime import UTC, datetime
from functools import partial

import pytest

from rota.model.history import ALL, KEPT, HistoryPoint
from rota.model.states import Move
from rota.store.operation import Statement
from rota.store.postgres import counters, history, rings
from tests.store.factories import minutes_pass, settlement
from tests.store.postgres.counting import squeeze, tidy
from tests.store.postgres.database import KEEP, Database, explained
from tests.store.postgres.test_plans import rows_read
from tests.store.postgres.test_restored import restore

WEEK = KEPT + 5
OLDER = "expires > now() - interval '1 second'"
"""What a mark keeps where an older Rota writes it."""


def look(db: Database) -> bool:
    """Record the minute that is over."""
    return db.own.run(db.store.history.record())


def told(db: Database, queue: str = ALL) -> list[HistoryPoint]:
    """What is known of a queue, but for the first look."""
    since = int(datetime.now(UTC).timestamp()) // 60 - KEPT
    points = db.own.run(db.store.history.read(queue, since=since, step=1))
    return [point for point in points if point.seconds]


def begin(db: Database) -> None:
    """The first look."""
    assert look(db)
    minutes_pass(db.store, db.own)


def segments(db: Database) -> dict[int, int]:
    """How many rows each segment has that is not empty."""
    return dict(db.sql("SELECT segment, count(*) FROM rota.history GROUP BY segment"))


def test_the_ring_turns(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first minute in a segment has all queues, so that differences are taken in one."""
    monkeypatch.setattr(rings, "HISTORY_AGE", -10.0)
    db.enqueue(2, queue="idle")
    session = db.session()
    db.settle(session, db.claim(session, 2, queues=("idle",)))
    begin(db)
    tidy(db, rounds=1)
    look(db)
    assert segments(db) == {0: 2, 1: 2}
    minutes_pass(db.store, db.own)
    db.enqueue(3, queue="idle")
    look(db)
    assert segments(db) == {0: 2, 1: 4}
    assert [point.appended for point in told(db, "idle")] == [0, 3]


def test_a_segment_is_emptied_after_a_week(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not before; what is recorded meanwhile stays."""
    monkeypatch.setattr(rings, "HISTORY_AGE", -10.0)
    begin(db)
    tidy(db, rounds=1)
    monkeypatch.setattr(rings, "HISTORY_AGE", 1e9)
    minutes_pass(db.store, db.own, WEEK - 20)
    look(db)
    tidy(db)
    assert segments(db) == {0: 1, 1: 1}
    minutes_pass(db.store, db.own, 20)
    look(db)
    tidy(db)
    assert segments(db) == {1: 2}


def test_the_turn_waits_for_an_empty_segment(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none is empty, the current one goes on."""
    monkeypatch.setattr(rings, "HISTORY_AGE", -10.0)
    for _ in range(7):
        look(db)
        minutes_pass(db.store, db.own)
        tidy(db, rounds=1)
    assert segments(db) == {0: 1, 1: 1, 2: 1, 3: 1, 4: 3}


def test_one_writer_at_a_time(db: Database) -> None:
    """Whoever does not have the turn waits for nobody, and a later look finds the minute recorded."""
    begin(db)
    other = db.bare()
    assert other.execute("SELECT pg_try_advisory_xact_lock(7682002, 1)").fetchone() == (True,)
    assert not look(db)
    assert db.own.run(db.store.look(["default"])).unrecorded
    other.rollback()
    assert look(db)
    assert not look(db)


def test_a_restored_database_begins_anew(db: Database) -> None:
    """All totals were counted anew: no difference is taken from those of before."""
    session = db.session()
    db.enqueue(4)
    db.settle(session, db.claim(session, 2), keep=KEEP)
    begin(db)
    look(db)
    minutes_pass(db.store, db.own)
    restore(db)
    with db.store.lent() as connection:
        connection.close()
    db.session()
    assert look(db)
    minutes_pass(db.store, db.own)
    db.enqueue(1)
    assert look(db)
    assert [(point.appended, point.completed) for point in told(db)] == [(0, 0), (1, 0)]


@pytest.mark.parametrize("keep", [0.0, KEEP])
def test_marks_carry_how_many_ended(
    db: Database, monkeypatch: pytest.MonkeyPatch, keep: float
) -> None:
    """Each job counts once, whether a mark has counted it or is still to do so."""
    monkeypatch.setattr(counters, "MARK_AGE", 0.0)
    session = db.session()
    begin(db)
    for _ in range(3):
        db.enqueue(2)
        db.settle(session, db.claim(session, 2), keep=keep)
        assert squeeze(db)
    db.enqueue(1)
    db.settle(session, db.claim(session, 1), keep=keep)
    look(db)
    [point] = told(db)
    assert point.completed == 7


def test_marks_of_older_code(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """They forget how many jobs ended: what comes after is counted from there."""
    session = db.session()
    db.enqueue(10)
    db.settle(session, db.claim(session, 5))
    begin(db)
    older = counters.SQUEEZE.text
    start, end = (
        older.index("CASE WHEN expires = "),
        older.index(" END", older.index("ELSE expires >")) + 4,
    )
    with monkeypatch.context() as patch:
        patch.setattr(
            counters, "SQUEEZE", Statement("squeeze", older[:start] + OLDER + older[end:])
        )
        patch.setattr(counters, "MARK_AGE", 0.0)
        db.enqueue(1)
        assert squeeze(db)
    db.settle(session, db.claim(session, 2))
    look(db)
    [point] = told(db)
    assert (point.appended, point.completed) == (1, 2)


def test_idle_queues_that_leave_the_totals(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are many lanes their totals begin anew, and what comes then is counted."""
    for size in ("LOG_SIZE", "CURSOR_SIZE", "CURSOR_SIZE_OF_LANE", "TALLY_SIZE"):
        monkeypatch.setattr(rings, size, 0)
    monkeypatch.setattr(counters, "MARK_AGE", 0.0)
    session = db.session()
    ends = partial(settlement, move=Move.COMPLETE, keep=0.0)
    db.enqueue(20)
    db.own.run(db.store.settle(session, [ends(job) for job in db.claim(session, 20)]))
    db.sql("SELECT setval('rota.lane_id_seq', 5000)")
    begin(db)
    for _ in range(3):
        tidy(db)
        squeeze(db)
    assert db.sql("SELECT lanes FROM rota.tally_mark ORDER BY seq DESC LIMIT 1") == [([],)]
    db.enqueue(3)
    db.own.run(db.store.settle(session, [ends(job) for job in db.claim(session, 2)]))
    look(db)
    [point] = told(db)
    assert (point.appended, point.claimed, point.completed, point.available) == (3, 2, 2, 1)


def test_nothing_else_is_read(db: Database) -> None:
    """A week of one queue, and the totals of before, whatever there is of other queues."""
    db.sql("""
        INSERT INTO rota.history
        SELECT date_trunc('minute', now()) - make_interval(mins => minute), 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, NULL,
               minute % 5, queue
        FROM generate_series(1, 200) AS minute, unnest(ARRAY['', 'a', 'b', 'c', 'd', 'e']) AS queue
    """)
    raw = db.bare(autocommit=True)
    since = int(datetime.now(UTC).timestamp()) // 60 - 100
    plan = explained(raw, history.READ(queue="c", since=since, step=5))
    assert rows_read(plan, "history") <= 2 * 102
    plan = explained(raw, history.BEFORE(queues=["a", "b"], segment=1))
    assert rows_read(plan, "history") <= 2
