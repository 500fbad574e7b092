"""Each way in which a count could go wrong, by itself; and squeezing."""

from typing import Any

import pytest

from rota.model.settlement import Settlement
from rota.model.states import Move, State
from rota.store.operation import Query, Rows, Statement, Stepped, Steps
from rota.store.postgres import clearing, counters, rings
from rota.store.postgres.claim import CLAIM, CLAIM_LOCK
from tests.store.factories import until
from tests.store.postgres.counting import marks, queue, right, squeeze, tidy
from tests.store.postgres.database import KEEP, Database, Later
from tests.store.postgres.test_restored import restore

NOTHING = Statement("nothing", "SELECT 0")
SQUEEZE = counters.SQUEEZE


@pytest.fixture(autouse=True)
def small_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables so small that every tidying turns the rings, and a mark whenever one is asked for."""
    for ring in ("LOG_SIZE", "CURSOR_SIZE", "LEASE_SIZE", "TALLY_SIZE", "FINISHED_SIZE"):
        monkeypatch.setattr(rings, ring, 0)
    monkeypatch.setattr(counters, "MARK_AGE", 0.0)


# Each hazard by itself ---------------------------------------------------------------------------


@pytest.mark.parametrize("squeezed", [True, False])
def test_rows_that_came_and_went_between_two_marks(
    db: Database, monkeypatch: pytest.MonkeyPatch, *, squeezed: bool
) -> None:
    """A segment is counted before it is truncated; else what went through it is not."""
    if not squeezed:
        for module in (clearing, rings):
            monkeypatch.setattr(module, "SQUEEZE", lambda **_: NOTHING())
    squeeze(db)
    session = db.session()
    db.enqueue(30)
    db.settle(session, db.claim(session, 20), keep=KEEP)
    db.settle(session, db.claim(session, 10))
    db.enqueue(3)
    tidy(db)
    db.settle(session, db.claim_all(session))
    tidy(db)
    assert sum(db.sizes()) == 0
    assert right(db) == squeezed
    if squeezed:
        assert (queue(db).appended, queue(db).claimed) == (33, 33)
        assert queue(db).counts == {State.COMPLETED: 20}


def test_rows_that_came_and_went_since_a_table_was_clear(db: Database) -> None:
    """They are counted under the lock of the truncation."""
    squeeze(db)
    session = db.session()
    db.enqueue(30)
    db.settle(session, db.claim(session), keep=KEEP)
    db.own.run(rings.turn_log())
    db.own.run(rings.turn_slots())
    assert db.own.run(rings.empty_log(0)) == ["log: segment 0 is empty again"]
    assert db.own.run(rings.empty_slot("tally", 0)) == ["tally: table 0 is empty again"]
    assert right(db)
    assert queue(db).counts == {State.COMPLETED: 30}


ENDINGS: dict[str, tuple[str, ...]] = {
    "committed": ("COMMIT",),
    "prepared": ("PREPARE TRANSACTION 'late'", "COMMIT PREPARED 'late'"),
    "undone": ("ROLLBACK",),
    "partly": ("ROLLBACK TO SAVEPOINT part", "COMMIT"),
}
COUNTED = {"committed": 7, "prepared": 7, "undone": 0, "partly": 3}


@pytest.mark.parametrize("ending", list(ENDINGS))
def test_a_transaction_that_was_running_at_several_marks(db: Database, ending: str) -> None:
    """What it brings counts when it has ended, once, and a part that was undone never."""
    late = db.bare(autocommit=True)
    late.execute("BEGIN")
    db.enqueue(2, conn=late, wake=False)
    db.enqueue(1, conn=late, wake=False, delay=600.0)
    late.execute("SAVEPOINT part")
    db.enqueue(4, conn=late, wake=False)
    for _ in range(3):
        db.enqueue(1)
        assert squeeze(db)
    assert right(db)
    assert queue(db).counts == {State.AVAILABLE: 3}
    for step in ENDINGS[ending]:
        late.execute(step)
        assert right(db)
    assert sum(queue(db).counts.values()) == 3 + COUNTED[ending]
    assert squeeze(db) == (COUNTED[ending] > 0)
    assert right(db)


WHEN = ["before", "meanwhile", "after", "never"]


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("when", WHEN)
def test_jobs_that_are_taken_out_of_the_log(db: Database, when: str, *, kept: bool) -> None:
    """They are counted less exactly where a mark had counted them, whenever it is squeezed."""
    late = db.bare()
    jobs = db.enqueue(2, conn=late) + db.enqueue(3)
    db.enqueue(4)
    if when == "before":
        squeeze(db)
    late.commit()
    doing: Any = db.store.cancel if kept else db.store.delete
    if when == "meanwhile":
        # The deletion has happened, and its transaction has not ended.
        held = db.bare()
        held.execute("LOCK TABLE rota.finished IN SHARE MODE")
        under_way = Later(db, doing(jobs))
        until(lambda: db.waits_for(under_way.pid, held.info.backend_pid) or None)
        assert squeeze(db)
        assert right(db)
        held.rollback()
        under_way.result()
    else:
        db.own.run(doing(jobs))
    assert right(db)
    assert queue(db).counts.get(State.AVAILABLE) == 4
    assert queue(db).appended == 9
    if when != "never":
        squeeze(db)
        assert right(db)
    tidy(db)
    assert right(db)


def test_without_the_condition_they_are_counted_twice(db: Database) -> None:
    """The mutant: rows that stand for jobs of the log count though a mark has counted those."""
    jobs = db.enqueue(3)
    squeeze(db)
    db.own.run(db.store.delete(jobs))
    assert right(db)
    db.sql("UPDATE rota.tally SET appended_by = NULL")
    assert not right(db)


def test_two_squeezers(db: Database) -> None:
    """The second one waits for the first, and leaves it at that or does it himself."""
    for ended in ("COMMIT", "ROLLBACK"):
        db.enqueue(3)
        first = db.bare(autocommit=True)
        first.execute("BEGIN")
        first.execute(SQUEEZE.text, {"age": 0.0})
        before = marks(db)
        second = Later(db, db.store.squeeze())
        until(
            lambda second=second, first=first: (  # type: ignore[misc]
                db.waits_for(second.pid, first.info.backend_pid) or None
            )
        )
        db.enqueue(2)
        first.execute(ended)
        assert second.result() == (ended == "ROLLBACK")
        assert marks(db) == before + 1
        assert right(db)


def test_rows_that_stay_in_the_tally_are_counted(db: Database) -> None:
    """A producer that does not commit keeps its table of the tally, and loses nothing."""
    late = db.bare()
    db.enqueue(5, conn=late, delay=600.0)
    for _ in range(3):
        db.enqueue(2, delay=600.0)
        tidy(db)
    assert db.one("SELECT pg_relation_size('rota.tally_0')") > 0
    late.commit()
    tidy(db)
    assert db.one("SELECT pg_relation_size('rota.tally_0')") == 0
    assert right(db)
    assert queue(db).counts == {State.SCHEDULED: 11}


@pytest.mark.parametrize("kept", [True, False])
def test_a_job_that_comes_while_it_is_taken_out(db: Database, *, kept: bool) -> None:
    """A job whose lane was not locked, since it came later, is left to the claim that has the lane."""
    session = db.session()
    db.claim(session)
    late, claimer = db.bare(), db.bare()
    [job] = db.enqueue(1, conn=late)
    lane = db.one("SELECT id FROM rota.lane")
    statement = "available_cancel" if kept else "available_delete"
    operation: Any = (db.store.cancel if kept else db.store.delete)([job])

    def interrupted() -> Steps[Any]:
        rows: Rows = ()
        request = next(operation.steps)
        while True:
            if isinstance(request, Query) and request.statement.name == statement:
                late.commit()
                claimer.execute(CLAIM_LOCK.text, {"lane": lane, "session": session})
                claimer.execute(CLAIM.text, {"lane": lane, "session": session, "size": 9})
            rows = yield request
            if isinstance(request, Query) and request.statement.name == statement:
                claimer.commit()
            try:
                request = operation.steps.send(rows)
            except StopIteration as end:
                return end.value

    db.own.run(Stepped(operation.name, interrupted(), operation.begin))
    assert right(db)
    assert queue(db).counts == {State.RUNNING: 1}


# Squeezing ---------------------------------------------------------------------------------------


def test_nothing_is_written_where_nothing_has_changed(db: Database) -> None:
    """Squeezing again and again without work leaves the marks as they are."""
    session = db.session()
    assert not squeeze(db)
    works: list[Any] = [
        lambda: db.enqueue(2),
        lambda: db.enqueue(1, delay=600.0),
        lambda: db.claim(session, 1),
        lambda: db.settle(session, db.claim(session), keep=KEEP),
    ]
    for work in works:
        work()
        assert squeeze(db)
        assert not squeeze(db)
        assert right(db)


def test_a_new_mark_is_left_alone(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many workers, one squeezes."""
    monkeypatch.setattr(counters, "MARK_AGE", 3600.0)
    db.enqueue(1)
    assert not squeeze(db)
    db.sql("UPDATE rota.tally_mark SET at = at - interval '2 hours'")
    assert squeeze(db)
    db.enqueue(1)
    assert not squeeze(db)
    assert right(db)


def test_expired_jobs_leave_the_mark(db: Database) -> None:
    """Jobs whose retention is over are not counted any more, and forgotten."""
    session = db.session()
    db.enqueue(4)
    db.settle(session, db.claim(session, 2), keep=0.001)
    db.settle(session, db.claim(session, 2), keep=KEEP)
    squeeze(db)
    until(lambda: queue(db).counts == {State.COMPLETED: 2} or None)
    assert right(db)

    def forgotten() -> bool | None:
        db.enqueue(1)
        squeeze(db)
        kinds = "SELECT count(*) FROM rota.counter WHERE state = 'completed' AND isfinite(expires)"
        return db.one(kinds) == 1 or None

    until(forgotten)
    assert right(db)


@pytest.mark.parametrize("keep", [0.0005, 1.0, 3600.0, 86_400.0, 1e9])
def test_jobs_are_kept_a_little_longer(db: Database, keep: float) -> None:
    """At least their retention, and at most 1/32 longer (or a millisecond)."""
    session = db.session()
    db.enqueue(2)
    one, other = db.claim(session, 2)
    db.settle(session, [one], keep=keep)
    result = Settlement(other.id, other.lease, Move.COMPLETE, 0.0, keep, "1")
    db.own.run(db.store.settle(session, [result]))
    for [kept] in db.sql("SELECT extract(epoch FROM keep_until - finished_at) FROM rota.finished"):
        assert keep <= float(kept) + 1e-5
        assert float(kept) <= keep + max(keep / 32, 0.001) + 1e-5


def test_many_expire_together(db: Database) -> None:
    """A day's retention makes no more than 33 kinds of completed jobs to keep totals of."""
    session = db.session()
    db.enqueue(100)
    for _ in range(100):
        db.settle(session, db.claim(session, 1), keep=86_400.0)
    assert db.one("SELECT count(DISTINCT keep_until) FROM rota.finished") <= 2


# After a restore ---------------------------------------------------------------------------------


@pytest.mark.parametrize("marked", [True, False])
def test_a_restored_database_is_counted_anew(db: Database, *, marked: bool) -> None:
    """The totals of another cluster's transactions are made anew; running totals go on growing."""
    session = db.session()
    jobs = db.enqueue(20)
    db.enqueue(4, delay=600.0)
    db.settle(session, db.claim(session, 3), keep=KEEP)
    db.settle(session, db.claim(session, 2), Move.DISCARD)
    db.settle(session, db.claim(session, 1), Move.RETRY)
    db.claim(session, 2)
    if marked:
        squeeze(db)
    db.own.run(db.store.cancel(jobs[-3:-1]))
    before = queue(db)
    restore(db)
    assert not squeeze(db)
    db.session()
    assert right(db)
    after = queue(db)
    back = before.counts[State.RUNNING]
    assert after.counts[State.AVAILABLE] == before.counts[State.AVAILABLE] + back
    for state in (State.SCHEDULED, State.RETRYABLE, State.COMPLETED, State.DISCARDED):
        assert after.counts[state] == before.counts[state]
    assert after.claimed == before.claimed
    assert squeeze(db)
    db.enqueue(3)
    db.settle(db.session(), db.claim_all(db.session()))
    tidy(db)
    assert right(db)
