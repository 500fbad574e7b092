"""Queues on PostgreSQL: clearing, pruning and settings beside locks and old snapshots."""

import pytest

from rota.model.job import Cleared, JobId
from rota.model.states import Move, State
from rota.store.postgres import clear, enqueue, tidy
from rota.store.postgres.failures import LockTimeout
from tests.store.factories import retry_discarded, until
from tests.store.postgres.counting import right, squeeze
from tests.store.postgres.database import Database, Raw, buffers, ids

FIRST = JobId(0)


def step(db: Database, state: State, after: JobId, until: JobId, limit: int = 500) -> Cleared:
    """One batch."""
    return db.own.run(db.store.clear("default", state, after=after, until=until, limit=limit))


def test_clearing_under_a_held_snapshot(db: Database, held: Raw) -> None:
    """Each batch reads as much as the first, though no vacuum may remove what the others left."""
    del held
    until = db.enqueue(10_000)[-1]
    after: JobId | None = FIRST
    read: list[int] = []
    while after is not None:
        params = {"queue": "default", "after": after, "until": until, "size": 500}
        read.append(buffers(db, clear.CLEAR_AVAILABLE(**params)))
        after = step(db, State.AVAILABLE, after, until).last
    assert len(read) == 21
    assert max(read[:20]) <= 1.5 * read[0] + 20, read
    assert right(db)
    assert db.claim_all(db.session()) == []


@pytest.mark.parametrize("marked", [True, False])
def test_counting_what_was_cleared(db: Database, held: Raw, *, marked: bool) -> None:
    """Whether a mark has counted a job or not, it is counted off once; late jobs count too."""
    late = db.bare()
    db.enqueue(5, conn=late)
    jobs = db.enqueue(20)
    if marked:
        db.sql("UPDATE rota.tally_mark SET at = at - interval '1 minute'")
        assert squeeze(db)
    assert step(db, State.AVAILABLE, FIRST, jobs[-1], 15).deleted == 15
    assert right(db)
    late.commit()
    assert right(db)
    assert step(db, State.AVAILABLE, FIRST, jobs[-1], 100).deleted == 10
    assert right(db)
    squeeze(db)
    assert right(db)
    del held


def test_the_cursors_holes_are_cleared(db: Database) -> None:
    """A job that was committed behind the cursor is available, and goes as well."""
    late = db.bare()
    hidden = db.enqueue(3, conn=late)
    session = db.session()
    db.enqueue(2)
    assert len(db.claim(session)) == 2
    late.commit()
    assert step(db, State.AVAILABLE, FIRST, hidden[-1]).deleted == 3
    assert db.claim(session) == []
    assert right(db)


def test_clearing_waits_for_no_lane_where_it_needs_none(db: Database) -> None:
    """Finished and waiting jobs go while a claim holds the lane."""
    db.enqueue(3, delay=600.0)
    jobs = db.enqueue(2)
    session = db.session()
    db.settle(session, db.claim(session), Move.DISCARD)
    claim = db.bare()
    claim.execute("SELECT FROM rota.lane FOR NO KEY UPDATE")
    db.own.raw().execute("SET lock_timeout = '100ms'")
    assert step(db, State.SCHEDULED, FIRST, jobs[-1]).deleted == 3
    assert step(db, State.DISCARDED, FIRST, jobs[-1]).deleted == 2
    db.enqueue(1)
    with pytest.raises(LockTimeout):
        step(db, State.AVAILABLE, FIRST, JobId(99))
    claim.rollback()
    assert step(db, State.AVAILABLE, FIRST, JobId(99)).deleted == 1
    assert right(db)


def expired(db: Database, count: int) -> None:
    """Discarded jobs that are past their retention."""
    session = db.session()
    first = db.one("SELECT last_value FROM rota.job_id")
    db.enqueue(count)
    db.settle(session, db.claim_all(session), Move.DISCARD, keep=0.001)
    seen = "SELECT count(*) FROM rota.job WHERE finished_at > now() - interval '1 minute'"
    until(lambda: db.one(f"{seen} AND id > %s", first) == 0 or None)


def test_pruning_under_a_held_snapshot(db: Database, held: Raw) -> None:
    """What is past its retention goes, in batches; what stays for ever is not looked at."""
    del held
    session = db.session()
    kept = db.enqueue(3)
    db.settle(session, db.claim(session), Move.DISCARD)
    expired(db, 1200)
    assert right(db)
    assert "removed 1200 discarded job(s) past their retention" in db.own.run(db.store.tidy())
    assert db.one("SELECT count(*) FROM rota.finished") == 3
    assert right(db)
    squeeze(db)
    assert right(db)
    assert retry_discarded(db.store, db.own) == kept


def test_pruning_waits_for_nobody(db: Database) -> None:
    """A row that a transaction has locked is left for the next round."""
    expired(db, 5)
    other = db.bare()
    other.execute("SELECT FROM rota.finished_discarded LIMIT 2 FOR UPDATE")
    db.own.raw().execute("SET lock_timeout = '100ms'")
    assert db.own.run(tidy.prune_discarded()) == 3
    other.rollback()
    assert db.own.run(tidy.prune_discarded()) == 2


def test_expiry_of_discarded_jobs_is_rounded_up(db: Database) -> None:
    """At least their retention, and at most 1/32 longer; so they expire together."""
    session = db.session()
    db.enqueue(50)
    for job in db.claim(session):
        db.settle(session, [job], Move.DISCARD, keep=3200.0)
    assert db.one("SELECT count(DISTINCT keep_until) FROM rota.finished") <= 2
    assert db.one(
        "SELECT bool_and(keep_until - finished_at BETWEEN interval '3200s' AND interval '3301s')"
        " FROM rota.finished"
    )


def test_a_producer_with_an_old_snapshot(
    db: Database, held: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It enqueues with what was set when its snapshot was taken, and waits for no lock."""
    monkeypatch.setattr(enqueue, "FRESH", 0.0)
    db.enqueue(1)
    db.own.run(db.store.set_queue("default", {"max_attempts": 2}))
    [old] = db.enqueue(1, conn=held)
    other = db.bare()
    [new] = db.enqueue(1, conn=other)
    other.commit()
    assert db.one("SELECT max_attempts FROM rota.log WHERE id = %s", new) == 2
    held.commit()
    assert db.one("SELECT max_attempts FROM rota.log WHERE id = %s", old) == 5
    assert len(ids(db.claim_all(db.session()))) == 3
    held.execute("SELECT 1")


def test_producers_do_not_wait_for_a_setting(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a change is not committed, jobs are enqueued as before."""
    monkeypatch.setattr(enqueue, "FRESH", 0.0)
    db.enqueue(1)
    db.own.run(db.store.set_queue("default", {"max_attempts": 2}))
    setting = db.bare()
    setting.execute("UPDATE rota.queue_setting SET max_attempts = 3")
    producer = db.bare(autocommit=True)
    producer.execute("SET lock_timeout = '100ms'")
    for count in (1, 5, 300):
        [*_, job] = db.enqueue(count, conn=producer)
        assert db.one("SELECT max_attempts FROM rota.log WHERE id = %s", job) == 2
    setting.commit()
