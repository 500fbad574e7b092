"""A transaction that is held open for the whole test costs nothing but the space it pins.

Speed is measured in buffers that a statement reads, not in seconds: dead rows that vacuum may not
remove would make these figures grow with every job that passes.
"""

import pytest

from rota.model.job import SessionId
from rota.store.postgres import claim, rings
from rota.store.postgres import stage as timer
from rota.store.postgres.store import PostgresStore
from tests.store.factories import until
from tests.store.postgres.database import Database, Raw, buffers, ids

PASSING = 50_000
BATCH = 500
LIMIT = 50


@pytest.fixture
def late(db: Database, held: Raw) -> Raw:
    """A producer that has enqueued and does not commit."""
    del held
    raw = db.bare(name="late")
    db.enqueue(3, conn=raw)
    return raw


def claiming(db: Database, session: SessionId) -> tuple[int, int]:
    """The buffers of a claim and of the probe before it, with enough jobs for them."""
    db.enqueue(LIMIT)
    lane = db.one("SELECT id FROM rota.lane WHERE priority = 0")
    cost = (
        buffers(db, claim.CLAIM(lane=lane, session=session, size=LIMIT)),
        buffers(db, claim.CLAIM_PROBE(queues=["default"], tasks=["shop.send"])),
    )
    db.settle(session, db.claim_all(session))
    return cost


def passing(db: Database, session: SessionId, count: int) -> None:
    """Let jobs pass through, from enqueue to their end."""
    for _ in range(count // (5 * BATCH)):
        db.enqueue(5 * BATCH)
        while jobs := db.claim(session, BATCH):
            assert db.settle(session, jobs) == []


def test_claims_under_a_held_snapshot(db: Database, late: Raw) -> None:
    """A claim reads as little after 50,000 jobs as it did before, without any vacuum to help."""
    session = db.session()
    claiming(db, session)
    before = claiming(db, session)
    passing(db, session, PASSING)
    after = claiming(db, session)
    assert after[0] <= 1.5 * before[0] + 20, (before, after)
    assert after[1] <= 1.5 * before[1] + 10, (before, after)
    late.commit()
    assert len(db.claim_all(session)) == 3


def test_no_row_of_the_log_dies(db: Database, late: Raw) -> None:
    """Jobs pass through the log and the cursor without an update or a deletion there."""
    del late
    session = db.session()
    passing(db, session, 5000)
    changed = (
        "SELECT coalesce(sum(n_tup_upd + n_tup_del + n_dead_tup), 0), sum(n_tup_ins)"
        " FROM pg_stat_user_tables WHERE schemaname = 'rota' AND relname ~ '^(log|cursor)_[0-9]$'"
    )
    if db.own.raw().info.server_version >= 150_000:
        db.own.raw().execute("SELECT pg_stat_force_next_flush()")
    db.own.close()
    # PostgreSQL 14 sends its statistics to a collector, which takes a while.
    [(dead, _)] = until(lambda: [row for row in db.sql(changed) if row[1] >= 5000] or None)
    assert dead == 0


def test_other_producers_do_not_wait(db: Database, late: Raw) -> None:
    """Producers of the same lane do not wait for one that does not commit."""
    separator = "&" if "?" in db.url else "?"
    store = PostgresStore(f"{db.url}{separator}options=-c%20lock_timeout%3D100ms")
    hasty = store.connect()
    caller = db.bare()
    try:
        caller.execute("SET lock_timeout = '100ms'")
        jobs = db.enqueue(1, on=hasty)
        jobs += db.enqueue(5, on=hasty)
        jobs += db.enqueue(500, on=hasty)
        jobs += db.enqueue(1, conn=caller)
        caller.commit()
        assert len(db.enqueue(2, on=hasty, delay=5.0)) == 2
        assert len(db.enqueue(2, on=hasty, priority=9)) == 2
        session = db.session()
        claimed = hasty.run(store.claim(session, ["default"], len(jobs)))
        assert ids(claimed) == jobs
    finally:
        hasty.close()
    late.rollback()


def test_a_first_producer_that_does_not_commit(db: Database, held: Raw) -> None:
    """Not even a new lane's first producer holds up the others, or a claim."""
    del held
    first, second = db.bare(), db.bare()
    second.execute("SET lock_timeout = '100ms'")
    db.enqueue(1, conn=first, queue="fresh")
    jobs = db.enqueue(1, conn=second, queue="fresh")
    second.commit()
    session = db.session()
    assert ids(db.claim(session, 10, ["fresh"])) == jobs


def test_a_producer_whose_snapshot_is_older_than_its_lane(db: Database, held: Raw) -> None:
    """A transaction that cannot see the lane enqueues into it all the same, more than once."""
    db.enqueue(1, queue="fresh")
    jobs = db.enqueue(1, conn=held, queue="fresh") + db.enqueue(300, conn=held, queue="fresh")
    session = db.session()
    assert len(db.claim(session, 10, ["fresh"])) == 1
    held.commit()
    assert ids(db.claim(session, 1000, ["fresh"])) == jobs
    held.execute("SELECT 1")


def test_the_ring_turns(db: Database, late: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments that the open transactions did not touch are truncated, and give their space back."""
    monkeypatch.setattr(rings, "LOG_SIZE", 256 * 1024)
    monkeypatch.setattr(rings, "CURSOR_SIZE", 8 * 1024)
    session = db.session()
    done: list[str] = []
    largest = [0, 0, 0, 0]
    for _ in range(12):
        passing(db, session, 2500)
        largest = [max(pair) for pair in zip(largest, db.sizes(), strict=True)]
        did = db.own.run(db.store.tidy())
        done += did
    emptied = [did for did in done if did.startswith("log") and "empty again" in did]
    assert len(emptied) >= 4
    assert not any("segment 0" in did for did in emptied)
    # None has grown much beyond the size at which it is left.
    assert max(largest) < 2 * 1024 * 1024
    assert sum(size > 0 for size in db.sizes()) <= 3
    assert sum("cursor" in did and "empty again" in did for did in done) >= 2
    late.commit()
    db.settle(session, db.claim_all(session))
    assert any("segment 0 is empty" in did for did in db.own.run(db.store.tidy()))


def test_timers_under_a_held_snapshot(db: Database, late: Raw) -> None:
    """A staging reads as little after 20,000 timers as it did before."""
    session = db.session()

    def stage() -> int:
        db.enqueue(LIMIT, delay=0.0)
        cost = buffers(db, timer.STAGE(size=LIMIT))
        assert db.own.run(db.store.stage(LIMIT)).staged == LIMIT
        return cost

    db.enqueue(5000, delay=86_400.0)
    stage()
    before = stage()
    for _ in range(10):
        db.enqueue(2000, delay=0.0)
        assert db.own.run(db.store.stage(5000)).staged == 2000
        db.settle(session, db.claim_all(session))
    after = stage()
    assert after <= 1.5 * before + 20, (before, after)
    idle = buffers(db, timer.STAGE(size=LIMIT)), buffers(db, timer.STAGE_NEXT())
    assert max(idle) <= 40, idle
    late.rollback()


def test_a_plain_queue_grows_under_a_held_snapshot(db: Database, late: Raw) -> None:
    """The measure has teeth: a table whose rows are deleted one by one reads more and more."""
    del late
    db.sql("CREATE TABLE plain (id bigint PRIMARY KEY)")

    def first() -> int:
        raw = db.bare(autocommit=True)
        row = raw.execute(
            "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT id FROM plain ORDER BY id LIMIT 1"
        ).fetchone()
        assert row is not None
        return int(row[0][0]["Plan"]["Shared Hit Blocks"])

    db.sql("INSERT INTO plain SELECT generate_series(1, 20000)")
    before = first()
    db.sql("DELETE FROM plain WHERE id < 19000")
    assert first() > 10 * before
