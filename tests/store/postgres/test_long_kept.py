"""One long retention: it keeps its own jobs, and not those of all the others beside them."""

import random

import pytest
from psycopg.errors import SerializationFailure

from rota.errors import StoreUnavailable
from rota.model.job import JobId, LeaseId
from rota.model.notes import Note
from rota.model.settlement import Settlement
from rota.model.states import Move
from rota.store.operation import Begin, Statement
from rota.store.postgres import long_kept, rings
from rota.store.postgres.control import retry
from rota.store.postgres.failures import LockTimeout
from tests.store.factories import until
from tests.store.postgres.counting import right
from tests.store.postgres.database import Database, Later, begin, buffers, explained

DAY = 86_400.0
SHORT = 0.001


@pytest.fixture(autouse=True)
def small_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments so small that every round of housekeeping turns the ring."""
    monkeypatch.setattr(rings, "FINISHED_SIZE", 0)


def finish(db: Database, count: int, keep: float, *, result: str | None = None) -> list[JobId]:
    """Jobs that have completed, and are kept for so long."""
    session = db.session()
    db.enqueue(count)
    jobs = db.claim_all(session)
    ends = [Settlement(job.id, job.lease, Move.COMPLETE, 0.0, keep, result) for job in jobs]
    assert db.own.run(db.store.settle(session, ends)) == []
    return [job.id for job in jobs]


def expired(db: Database) -> None:
    """Wait until all that is kept for a moment is out of sight."""
    late = (
        "SELECT 1 FROM rota.finished WHERE keep_until BETWEEN now() AND now() + interval '1 minute'"
    )
    until(lambda: None if db.sql(late) else True)


def tidy(db: Database, rounds: int = 1) -> list[str]:
    """What rounds of housekeeping did to the finished jobs."""
    done = [did for _ in range(rounds) for did in db.own.run(db.store.tidy())]
    return [did for did in done if did.startswith("finished")]


def rows(db: Database, table: str = "rota.finished") -> list[int]:
    """The jobs that are on the disk."""
    column = "job" if table.endswith("note") else "id"
    return [row[0] for row in db.sql(f"SELECT DISTINCT {column} FROM {table} ORDER BY 1")]


def test_one_long_retention(db: Database) -> None:
    """Whatever time passes: the jobs of a queue that keeps a month stay, the others go from the disk."""
    kept: list[JobId] = []
    for _ in range(12):
        kept += finish(db, 2, 30 * DAY)
        finish(db, 40, SHORT)
        expired(db)
        tidy(db)
    tidy(db, 3)
    assert set(kept) <= set(rows(db))
    assert len(rows(db)) <= 4 * len(kept)
    assert [job.id for job in db.own.run(db.store.get(kept))] == kept
    assert right(db)


def test_jobs_move_with_their_notes(db: Database) -> None:
    """What a handler told goes where its job goes, and stays as long."""
    session = db.session()
    db.enqueue(30)
    long, *short = db.claim(session, 30)
    told = [Note(job.id, LeaseId(1), 1, True, 1, 0.0, None, "info", "x") for job in (long, *short)]
    db.own.run(db.store.note(told))
    db.settle(session, [long], keep=30 * DAY)
    db.settle(session, short, keep=SHORT)
    db.sql("SELECT setval('rota.note_turn', 1)")
    db.own.run(rings.empty_slot("note", 0))
    assert len(rows(db, "rota.finished_note")) == 30
    expired(db)
    tidy(db, 3)
    assert rows(db) == rows(db, "rota.finished_note") == [long.id]
    lie = "SELECT 1 FROM rota.finished_note AS told JOIN rota.finished ON finished.id = told.job"
    assert len(db.sql(f"{lie} AND finished.segment = told.segment")) == 1


def test_nothing_moves_that_goes_by_itself_soon(db: Database) -> None:
    """Where all are kept alike, the last of a segment are waited for, and written only once."""
    kept = finish(db, 2, rings.FINISHED_AGE / 2)
    finish(db, 40, SHORT)
    expired(db)
    assert [did for did in tidy(db, 3) if "moved" in did] == []
    assert set(kept) < set(rows(db))


def test_nothing_moves_from_a_segment_that_is_mostly_kept(db: Database) -> None:
    """What is kept for long and is not little stays where it is."""
    kept = finish(db, 20, 30 * DAY)
    finish(db, 40, SHORT)
    expired(db)
    assert [did for did in tidy(db, 3) if "moved" in did] == []
    assert set(kept) < set(rows(db))
    # By the bytes, not by the number of jobs.
    large = finish(db, 2, 30 * DAY, result=f'"{random.Random(1).randbytes(4000).hex()}"')
    finish(db, 40, SHORT)
    expired(db)
    assert [did for did in tidy(db, 3) if "moved" in did] == []
    assert set(large) < set(rows(db))


def test_a_large_segment_is_walked_in_pieces(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round goes on where the last one stopped, and the table is emptied in a later one."""
    monkeypatch.setattr(long_kept, "BLOCKS", 2)
    monkeypatch.setattr(long_kept, "PIECES", 3)
    kept = []
    for _ in range(10):
        finish(db, 95, SHORT)
        kept += finish(db, 5, 30 * DAY)
    blocks = db.one("SELECT pg_relation_size('rota.finished_0') / 8192")
    assert blocks > 14
    expired(db)
    tidy(db)
    seen = []
    while segments := db.sql("SELECT count(*) FROM rota.finished_0 WHERE keep_until > now()"):
        if not segments[0][0]:
            break
        seen.append(segments[0][0])
        assert tidy(db)
        assert len(seen) < blocks
    assert seen == sorted(set(seen), reverse=True)
    assert len(seen) >= 2
    until(
        lambda: (
            (tidy(db) and None) or db.one("SELECT pg_relation_size('rota.finished_0')") == 0 or None
        )
    )
    assert rows(db) == kept


def test_another_one_who_acts_on_a_job_that_moves(db: Database) -> None:
    """A retry by hand that meets the move is told to try again, and never that there is no such job."""
    [job] = finish(db, 1, 30 * DAY)
    finish(db, 40, SHORT)
    expired(db)
    db.own.run(rings.turn_finished())
    mover = db.bare()
    mover.execute(rings.TURN_LOCK.text)
    params = {"segment": 0, "first": "(0,0)", "until": "(9,0)"}
    mover.execute(long_kept.FINISHED_MOVE.text, params)
    by_hand = Later(db, retry([job]))
    until(lambda: db.waits_for(by_hand.pid, mover.info.backend_pid) or None)
    mover.commit()
    with pytest.raises(StoreUnavailable, match="try again") as caught:
        by_hand.result()
    assert isinstance(caught.value.__cause__, SerializationFailure)
    assert db.own.run(retry([job])) == [job]


def test_a_job_that_comes_during_the_wait(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a settlement of long ago commits while the truncation waits for its lock is not lost."""
    waiting = Statement("lock_wait", "SELECT set_config('lock_timeout', '20s', true)")
    monkeypatch.setattr(rings, "LOCK_WAIT", waiting)
    [job] = finish(db, 1, SHORT)
    expired(db)
    late = db.bare()
    columns = (
        "enqueued_at, segment, priority, entry, attempt, max_attempts, state, queue, task, args"
    )
    late.execute(
        f"INSERT INTO rota.finished (id, keep_until, {columns})"
        f" SELECT id + 1, now() + interval '1 day', {columns} FROM rota.finished"
    )
    db.own.run(rings.turn_finished())
    emptying = Later(db, long_kept.free_finished(0))
    until(lambda: db.waits_for(emptying.pid, late.info.backend_pid) or None)
    late.commit()
    assert emptying.result() == []
    assert job + 1 in rows(db)


def test_a_job_that_is_in_use_is_not_waited_for(db: Database) -> None:
    """A transaction that has locked a job keeps its piece from moving, and housekeeping goes on."""
    [job] = finish(db, 1, 30 * DAY)
    finish(db, 40, SHORT)
    expired(db)
    caller = db.bare()
    caller.execute("SELECT FROM rota.finished_0 WHERE id = %s FOR UPDATE", (job,))
    db.own.run(rings.turn_finished())
    db.own.raw().execute("SET statement_timeout = '3s'")
    with pytest.raises(LockTimeout):
        db.own.run(long_kept.free_finished(0))
    assert not any("moved" in did for did in tidy(db))
    assert db.one("SELECT segment FROM rota.finished WHERE id = %s", job) == 0
    caller.rollback()
    tidy(db, 3)
    assert rows(db) == [job]


def test_a_piece_reads_its_blocks(db: Database) -> None:
    """Neither the estimate nor a piece grows with the segment."""
    session = db.session()
    db.enqueue(15_000)
    db.settle(session, db.claim_all(session), keep=30 * DAY)
    blocks = db.one("SELECT pg_relation_size('rota.finished_0') / 8192")
    db.own.run(rings.turn_finished())
    piece = long_kept.FINISHED_MOVE(segment=0, first="(9,0)", until="(11,0)")
    raw = db.bare(autocommit=True)
    begin(raw, Begin.HASTY)
    assert "Tid Range Scan" in str(explained(raw, piece))
    raw.execute("ROLLBACK")
    assert buffers(db, long_kept.FINISHED_SHARE(segment=0)) < blocks / 2
