"""When a ring leaves its current segment: by its real size, and by how long it was the current one."""

import random

import pytest

from rota.model.job import JobSpec, Order
from rota.model.settlement import Settlement
from rota.model.states import Move
from rota.store.health import PostgresFacts
from rota.store.postgres import clearing, rings
from tests.store.postgres.database import KEEP, Database, ids

MIB = 1024 * 1024


def long_text(size: int) -> str:
    """A JSON string that does not compress, and so lies outside of its row."""
    return f'"{random.Random(size).randbytes(size // 2).hex()}"'


def enqueue_long(db: Database, count: int, size: int = 100_000) -> None:
    args = [f'{{"text":{long_text(size + number)}}}' for number in range(count)]
    db.own.run(db.store.enqueue(Order(JobSpec(task="shop.send"), args)))


def aged(db: Database, ring: str, seconds: float) -> None:
    """Let the current segment of a ring have been the current one for so long."""
    db.sql(f"SELECT setval('rota.{ring}_begun', floor(extract(epoch FROM now()))::int8 - %s)",
           int(seconds))  # fmt: skip


def come_back(db: Database, count: int) -> None:
    """Let jobs of long ago come back: appended again, with the time of their first enqueueing."""
    session = db.session()
    db.enqueue(count)
    db.sql("UPDATE rota.log SET enqueued_at = now() - interval '1 day'")
    db.settle(session, db.claim(session), Move.RELEASE)


def test_long_args_count(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long args lie outside of their rows, and make the log as large as they are."""
    monkeypatch.setattr(rings, "LOG_SIZE", MIB)
    db.enqueue(100)
    assert db.own.run(rings.turn_log()) == []
    enqueue_long(db, 20)
    assert db.one("SELECT pg_relation_size('rota.log_0')") < MIB / 10
    assert db.own.run(db.store.look(["default"])).untidy
    assert len(db.own.run(rings.turn_log())) == 1
    facts = db.own.run(db.store.health())
    assert isinstance(facts, PostgresFacts)
    [table] = [table for table in facts.tables if table.name == "log_0"]
    assert MIB < table.size < table.total


def test_long_results_count(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for the segments of finished jobs."""
    monkeypatch.setattr(rings, "FINISHED_SIZE", MIB)
    session = db.session()
    db.enqueue(20)
    results = [
        Settlement(job.id, job.lease, Move.COMPLETE, 0.0, KEEP, long_text(100_000 + job.id))
        for job in db.claim(session)
    ]
    db.own.run(db.store.settle(session, results[:1]))
    assert db.own.run(rings.turn_finished()) == []
    db.own.run(db.store.settle(session, results[1:]))
    assert len(db.own.run(rings.turn_finished())) == 1


def test_long_args_that_are_leased_are_not_copied(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claims wait for a copy; a segment with much to be copied waits until it is settled."""
    monkeypatch.setattr(rings, "COPY_FORWARD_SIZE", MIB)
    enqueue_long(db, 20)
    session = db.session()
    jobs = db.claim(session)
    aged(db, "log", rings.LOG_AGE)
    db.own.run(rings.turn_log())
    assert not db.own.run(clearing.clear_log(0))
    assert db.own.run(rings.empty_log(0)) == []
    db.settle(session, jobs[:15])
    db.own.run(clearing.clear_log(0))
    assert db.own.run(clearing.clear_log(0))
    assert db.own.run(rings.empty_log(0)) == ["log: segment 0 is empty again"]
    assert db.settle(session, jobs[15:]) == []


def test_jobs_that_come_back_make_no_segment_old(db: Database) -> None:
    """A segment is as old as it has been the current one, whatever lies in it."""
    come_back(db, 3)
    assert db.own.run(rings.turn_log()) == []
    aged(db, "log", rings.LOG_AGE - 60)
    assert db.own.run(rings.turn_log()) == []
    aged(db, "log", rings.LOG_AGE)
    assert len(db.own.run(rings.turn_log())) == 1
    # The next one is new.
    assert ids(db.claim(db.session())) == [1, 2, 3]
    db.enqueue()
    assert db.own.run(rings.turn_log()) == []


def test_finished_jobs_are_left_after_six_hours(db: Database) -> None:
    """Their segment is left by its age; an empty one is not, however old."""
    aged(db, "finished", rings.FINISHED_AGE)
    assert db.own.run(rings.turn_finished()) == []
    session = db.session()
    db.enqueue()
    db.settle(session, db.claim(session), keep=KEEP)
    assert len(db.own.run(rings.turn_finished())) == 1
    db.enqueue()
    db.settle(session, db.claim(session), keep=KEEP)
    assert db.own.run(rings.turn_finished()) == []
