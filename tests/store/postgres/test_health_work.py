"""The facts that `rota doctor` judges, from a real server: the rings, workers, queues, timers."""

from typing import Any

import pytest

from rota.doctor import tables
from rota.doctor.finding import Severity
from rota.store.health import PostgresFacts
from rota.store.operation import Begin
from rota.store.postgres import health, rings
from tests.store.factories import until
from tests.store.postgres.database import KEEP, Database, begin, explained
from tests.store.postgres.examining import findings, look
from tests.store.postgres.test_plans import rows_read

# Rings --------------------------------------------------------------------------------------------


def ring(db: Database, name: str) -> list[Any]:
    """A ring's segments, in order."""
    return [table for table in look(db).tables if table.ring == name]


def test_rings_come_from_the_catalog(db: Database) -> None:
    """Each ring has its segments, and one of them is current; the discarded jobs are in none."""
    facts = look(db)
    sizes: dict[str, int] = {}
    for table in facts.tables:
        sizes[table.ring] = sizes.get(table.ring, 0) + 1
    assert (sizes["log"], sizes["cursor"], sizes["finished"]) == (4, 2, 6)
    assert next(table for table in facts.tables if table.name == "finished_discarded").ring == ""
    for name in sizes.keys() - {""}:
        assert [table.name for table in ring(db, name) if table.current] == [f"{name}_0"]
    db.sql("SELECT setval('rota.log_turn', 6)")
    assert [table.name for table in ring(db, "log") if table.current] == ["log_2"]


def test_a_full_ring(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unclaimed jobs, then a lock, keep the segment; after that it falls back."""
    monkeypatch.setattr(tables, "LARGE", {"log": 1})
    session = db.session()
    for number in range(4):
        db.sql("SELECT setval('rota.log_turn', %s)", number)
        db.enqueue(2)
    assert [table.unclaimed for table in ring(db, "log")] == [True, True, True, None]
    [backlog] = findings(db, "space")
    assert "a backlog" in backlog.detail
    db.settle(session, db.claim_all(session))
    assert [table.unclaimed for table in ring(db, "log")] == [False, False, False, None]
    reader = db.bare(name="reader")
    reader.execute("SELECT count(*) FROM rota.log_1")
    [locked] = findings(db, "space")
    assert f"Session {reader.info.backend_pid} has locked log_1" in locked.detail
    reader.rollback()
    db.own.run(db.store.tidy())
    assert findings(db, "space") == []
    assert sum(table.size for table in ring(db, "log") if not table.current) == 0


def test_how_much_of_the_finished_jobs_is_kept(db: Database) -> None:
    """For each segment that was left: the share that is within its retention."""
    session = db.session()
    db.enqueue(30)
    jobs = db.claim(session)
    db.settle(session, jobs[:3], keep=3600.0)
    db.settle(session, jobs[3:], keep=0.001)
    until(lambda: db.one("SELECT count(*) FROM rota.job") == 3 or None)
    assert [table.kept for table in ring(db, "finished")] == [None] * 6
    db.sql("SELECT setval('rota.finished_turn', 1)")
    [share, *rest] = [table.kept for table in ring(db, "finished")]
    assert 0.05 < share < 0.15
    assert rest == [None] * 5


def test_the_thresholds_leave_room() -> None:
    """A ring that turns in time is never called full."""
    assert tables.LARGE["log"] >= 2 * rings.LOG_SIZE
    assert tables.LARGE["cursor"] >= 2 * rings.CURSOR_SIZE
    assert tables.LARGE["finished"] >= 2 * rings.FINISHED_SIZE


def test_dead_rows(db: Database) -> None:
    """Rows that were deleted are counted, by the server's statistics."""
    db.sql("ALTER TABLE rota.queue SET (autovacuum_enabled = off)")
    db.sql("INSERT INTO rota.queue SELECT 'q' || n FROM generate_series(1, 500) AS n")
    db.sql("DELETE FROM rota.queue")
    db.admin.close()  # hands its statistics in

    def dead() -> PostgresFacts | None:
        facts = look(db)
        found = any(table.name == "queue" and table.dead_rows >= 500 for table in facts.tables)
        return facts if found else None

    assert until(dead).dead_rows >= 500


# Work ---------------------------------------------------------------------------------------------


def test_a_dead_worker(db: Database) -> None:
    """Its silence and what it holds are told; a worker that has just spoken is alive."""
    session = db.session(timeout=0.05)
    db.enqueue(3)
    db.claim(session)
    [alive] = look(db).work.sessions
    assert alive.silent < 5
    assert (alive.worker, alive.leased, alive.queues) == ("alpha:4711", 3, ("default",))
    assert alive.oldest_lease is not None
    db.sql("UPDATE rota.heartbeat SET at = now() - interval '1 hour'")
    [dead] = findings(db, "sessions")
    assert dead.severity is Severity.CRITICAL
    assert "alpha:4711 has been silent for 1 h and still holds 3 jobs" in dead.title
    db.own.run(db.store.rescue())
    assert findings(db, "sessions") == []


def test_rescued_jobs(db: Database) -> None:
    """Jobs that were alone with their worker are found waiting, run again, and are discarded.

    Each is found once.
    """
    died = {"one": "render", "two": "render", "three": "export", "four": "mail"}
    for queue, task in died.items():
        session = db.session(timeout=0.05)
        count, attempts = 2 if task == "mail" else 1, 1 if task == "export" else 2
        db.enqueue(count, task=f"shop.{task}", max_attempts=attempts, queue=queue)
        assert len(db.claim(session, queues=[queue])) == count
        db.sql("UPDATE rota.heartbeat SET at = now() - interval '1 hour'")
        db.own.run(db.store.rescue())
    found = {"shop.export": 1, "shop.render": 2}
    assert {rescued.task: rescued.jobs for rescued in look(db).work.rescued} == found
    session = db.session()
    again = db.claim(session, queues=["one", "two"])
    assert len(again) == 2
    assert {rescued.task: rescued.jobs for rescued in look(db).work.rescued} == found
    db.settle(session, again[:1], keep=KEEP)
    db.settle(session, again[1:])
    # All is well with those that were completed.
    assert {rescued.task: rescued.jobs for rescued in look(db).work.rescued} == {"shop.export": 1}


def test_rescued_jobs_under_a_backlog(db: Database) -> None:
    """What was claimed before it is found behind what waits; a long log is read at its end only."""
    first = db.session(timeout=0.05)
    db.enqueue(1, task="shop.render")
    db.claim(first)
    db.enqueue(20_000)
    db.sql("UPDATE rota.heartbeat SET at = now() - interval '1 hour'")
    db.own.run(db.store.rescue())
    assert {rescued.task: rescued.jobs for rescued in look(db).work.rescued} == {"shop.render": 1}
    raw = db.bare(autocommit=True)
    begin(raw, Begin.HASTY)
    plan = explained(raw, health.RESCUED())
    raw.execute("ROLLBACK")
    assert 1000 <= rows_read(plan, "log_") <= 2000


def test_the_oldest_available_job(db: Database) -> None:
    """Each lane tells how long ago its next job was enqueued, also one that committed late."""
    late = db.bare()
    db.enqueue(1, conn=late, queue="mail")
    late.execute("UPDATE rota.log SET enqueued_at = now() - interval '2 hours'")
    db.enqueue(1, queue="mail")
    db.enqueue(1, queue="video", priority=3)
    db.sql("UPDATE rota.log SET enqueued_at = now() - interval '1 hour'")
    db.own.run(db.store.pause("video"))
    session = db.session()
    assert len(db.claim(session, queues=["mail"])) == 1
    lanes = {(lane.queue, lane.priority): lane for lane in look(db).work.lanes}
    assert lanes["mail", 0].oldest is None
    assert lanes["video", 3].paused
    assert lanes["video", 3].oldest == pytest.approx(3600, abs=60)
    late.commit()
    lanes = {(lane.queue, lane.priority): lane for lane in look(db).work.lanes}
    assert lanes["mail", 0].oldest == pytest.approx(7200, abs=60)
    assert len(db.claim(session, queues=["mail"])) == 1
    assert all(lane.oldest is None for lane in look(db).work.lanes if lane.queue == "mail")


def test_overdue_timers(db: Database) -> None:
    """What is due and not staged is told, on either side of the mark."""
    db.enqueue(1, delay=3600.0)
    assert look(db).work.overdue is None
    db.sql("UPDATE rota.timer SET run_at = now() - interval '10 minutes'")
    assert look(db).work.overdue == pytest.approx(600, abs=60)
    db.own.run(db.store.stage(10))
    assert look(db).work.overdue is None
    db.enqueue(1, delay=3600.0)
    db.sql("UPDATE rota.timer SET run_at = now() - interval '1 hour', xid = pg_current_xact_id()")
    assert look(db).work.overdue == pytest.approx(3600, abs=60)


def test_it_counts_nothing(db: Database) -> None:
    """What is asked about jobs reads a handful of pages under a backlog of 20,000."""
    db.enqueue(20_000)
    db.enqueue(2000, delay=3600.0)
    db.session()
    for statement in (health.LANES, health.OVERDUE, health.SESSIONS):
        raw = db.bare(autocommit=True)
        begin(raw, Begin.HASTY)
        plan = explained(raw, statement())
        raw.execute("ROLLBACK")
        read = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        assert read <= 60, (statement, read)


def test_a_restored_dump(db: Database) -> None:
    """Tables of another cluster are told by its name."""
    assert not look(db).foreign
    db.sql("UPDATE rota.origin SET system_identifier = 1")
    assert look(db).foreign
