"""Notes in PostgreSQL: their ring turns and loses nothing, and a held snapshot costs nothing."""

import time

import pytest

from rota.model.job import ClaimedJob, JobId, LeaseId
from rota.model.notes import LINES, Note, ToldNote
from rota.model.states import Move
from rota.store.operation import Begin, Query, Single, Statement
from rota.store.postgres import notes as noting
from rota.store.postgres import rings
from rota.store.postgres.failures import LockTimeout
from tests.store.factories import until
from tests.store.postgres.database import KEEP, Database, Later, Raw, begin, buffers, explained


@pytest.fixture(autouse=True)
def small_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables so small that every round of housekeeping turns the rings."""
    for ring in ("NOTE_SIZE", "FINISHED_SIZE"):
        monkeypatch.setattr(rings, ring, 0)


def said(job: ClaimedJob, number: int, *, lines: int = 1) -> list[Note]:
    """A progress, and lines, of a run."""
    now = time.monotonic()
    first = lines * (number - 1) + 1
    return [
        Note(job.id, job.lease, 1, False, number, now, number / 100_000, None, ""),
        *(
            Note(job.id, job.lease, 1, True, first + more, now, None, "info", "x")
            for more in range(lines)
        ),
    ]


def tell(db: Database, told: list[Note]) -> None:
    db.own.run(db.store.note(told))


def known(db: Database, job: JobId) -> tuple[int, list[int]]:
    """The number of the newest progress that is known of a job, and of its lines."""
    notes: list[ToldNote] = db.own.run(db.store.notes([job])).get(job, [])
    newest = max((note.number for note in notes if not note.line), default=0)
    return newest, sorted(note.number for note in notes if note.line)


def running(db: Database, count: int = 1) -> list[ClaimedJob]:
    db.enqueue(count)
    return db.claim(db.session(), count)


def rows(db: Database, table: str = "rota.note") -> int:
    return int(db.one(f"SELECT count(*) FROM {table}"))


def tidy(db: Database, rounds: int = 4) -> list[str]:
    return [did for _ in range(rounds) for did in db.own.run(db.store.tidy())]


@pytest.mark.parametrize("copied", [True, False])
def test_a_running_job_keeps_its_notes(
    db: Database, monkeypatch: pytest.MonkeyPatch, *, copied: bool
) -> None:
    """Whatever number of turns: the newest progress, and the newest lines; without the copy none."""
    if not copied:
        nothing = Statement("note_copy_forward", "SELECT %(most)s, %(characters)s")
        monkeypatch.setattr(rings, "NOTE_COPY_FORWARD", nothing)
    [job] = running(db)
    for number in range(1, 6):
        tell(db, said(job, number, lines=60))
        assert any(did.startswith("note: table") for did in tidy(db))
    if copied:
        assert known(db, job.id) == (5, list(range(301 - LINES, 301)))
        assert rows(db) == 1 + LINES
    else:
        assert known(db, job.id) == (0, [])


def test_a_finished_job_takes_them_along(db: Database) -> None:
    """They move to the segment where their job lies, and are truncated with it."""
    session = db.session()
    db.enqueue(3)
    short, long, failed = db.claim(session)
    for job in (short, long, failed):
        tell(db, said(job, 1))
    db.settle(session, [short], keep=0.5)
    tidy(db, 1)
    db.settle(session, [long], keep=KEEP)
    db.settle(session, [failed], Move.DISCARD)
    tidy(db)
    assert rows(db) == 0
    lie = "SELECT job FROM rota.finished_note AS told JOIN rota.finished ON finished.id = told.job"
    assert not db.sql(f"{lie} WHERE finished.segment <> told.segment")
    assert known(db, failed.id) == known(db, long.id) == (1, [1])
    until(lambda: None if tidy(db, 1) == [] and known(db, short.id)[0] else True)
    until(lambda: known(db, short.id) == (0, []) or (tidy(db, 1) and None) or None)
    assert known(db, failed.id) == known(db, long.id) == (1, [1])
    # By hand a job comes back, and what was told of it comes along.
    assert db.own.run(db.store.retry([failed.id])) == [failed.id]
    assert rows(db) == 2
    tidy(db)
    assert known(db, failed.id) == (1, [1])


def test_discarded_jobs_take_their_notes_along(db: Database) -> None:
    """What was told of a discarded job goes from the disk with it, and not what was told of others."""
    session = db.session()
    db.enqueue(2)
    short, kept = db.claim(session)
    tell(db, [*said(short, 1), *said(kept, 1)])
    db.settle(session, [short], Move.DISCARD, keep=0.001)
    db.settle(session, [kept], Move.DISCARD)
    db.own.run(rings.turn_slots())
    db.own.run(rings.empty_slot("note", 1 - int(db.one("SELECT last_value FROM rota.note_turn"))))
    assert rows(db, "rota.finished_note_discarded") == 4
    until(lambda: rows(db, "rota.finished_discarded") == 1 or (tidy(db, 1) and None) or None)
    assert rows(db, "rota.finished_note_discarded") == 2
    assert known(db, kept.id) == (1, [1])


def test_no_discarded_job_goes_while_notes_move(db: Database) -> None:
    """Notes that are being moved to a discarded job would stay behind without it, for ever."""
    session = db.session()
    db.enqueue(1)
    jobs = db.claim(session)
    tell(db, said(jobs[0], 1))
    db.settle(session, jobs, Move.DISCARD, keep=0.001)
    db.own.run(rings.turn_slots())
    housekeeper = db.bare()
    housekeeper.execute(rings.TURN_LOCK.text)
    housekeeper.execute(rings.NOTE_COPY_FORWARD.text, noting.BOUNDS)
    until(lambda: db.one("SELECT keep_until <= now() FROM rota.finished") or None)
    tidy(db)
    housekeeper.commit()
    until(lambda: rows(db, "rota.finished_discarded") == 0 or (tidy(db, 1) and None) or None)
    assert rows(db, "rota.finished_note") == 0


def test_notes_of_jobs_that_are_gone(db: Database) -> None:
    """With the next turn nothing is left of deleted jobs, and of those that leave nothing behind."""
    session = db.session()
    db.enqueue(2)
    jobs = db.claim(session)
    ghost = JobId(987_654_321)
    tell(db, [*said(jobs[0], 1), *said(jobs[1], 1)])
    tell(db, [Note(ghost, LeaseId(1), 1, True, 1, 0.0, None, "info", "x")])
    db.settle(session, jobs[:1], keep=KEEP)
    db.own.run(db.store.delete([jobs[0].id]))
    assert rows(db) == 3
    tidy(db)
    assert rows(db) == 2
    assert rows(db, "rota.finished_note") == 0


def test_a_writer_that_waits_for_the_truncation(db: Database) -> None:
    """A worker that has not noticed the turn writes to the table that was left; it is found there."""
    [job] = running(db)
    tell(db, said(job, 1))
    db.own.run(rings.turn_slots())
    slot = 1 - int(db.one("SELECT last_value % 2 FROM rota.note_turn"))
    housekeeper = db.bare()
    housekeeper.execute(rings.NOTE_LOCK[slot].text)
    # As a worker would that has read the turn before.
    text = noting.NOTE.text.replace("(SELECT last_value %% 2 FROM rota.note_turn)", str(slot))
    params = db.store.note(said(job, 2)).queries[0].params
    query = Query(Statement("note", text), params)
    late = Later(db, Single("note", query, lambda _: None))
    until(lambda: db.waits_for(late.pid, housekeeper.info.backend_pid) or None)
    housekeeper.execute(rings.NOTE_COPY_FORWARD.text, noting.BOUNDS)
    housekeeper.execute(rings.NOTE_TRUNCATE[slot].text)
    housekeeper.commit()
    late.result()
    assert known(db, job.id) == (2, [1, 2])
    tidy(db)
    assert known(db, job.id) == (2, [1, 2])


def test_a_reader_that_stays_open(db: Database) -> None:
    """A transaction that has read the notes keeps their ring from turning, and nothing is lost."""
    [job] = running(db)
    tell(db, said(job, 1))
    reader = db.bare()
    reader.execute("SELECT count(*) FROM rota.note")
    db.own.run(rings.turn_slots())
    slot = 1 - int(db.one("SELECT last_value % 2 FROM rota.note_turn"))
    with pytest.raises(LockTimeout):
        db.own.run(rings.empty_slot("note", slot))
    tell(db, said(job, 2))
    tidy(db)
    assert known(db, job.id) == (2, [1, 2])
    reader.rollback()


def test_a_held_snapshot(db: Database, held: Raw) -> None:
    """Nothing dies but by TRUNCATE, and reading costs the same after thousands of notes."""
    del held
    [job, other] = running(db, 2)

    def reading() -> int:
        return buffers(db, noting.NOTES(jobs=[job.id], most=LINES))

    tell(db, said(job, 1, lines=100))
    before = reading()
    for number in range(1, 2001):
        tell(db, said(other, number, lines=2))
        if number % 400 == 0:
            tidy(db, 2)
    tell(db, said(job, 2, lines=100))
    assert reading() <= 1.5 * before + 30
    tidy(db)
    assert known(db, job.id) == (2, list(range(101, 201)))
    assert known(db, other.id)[0] == 2000
    assert db.one("SELECT sum(pg_relation_size(c)) FROM (VALUES ('rota.note_0'::regclass),"
                  " ('rota.note_1')) AS t (c)") < 64 * 1024  # fmt: skip
    if db.own.raw().info.server_version >= 150_000:
        db.own.raw().execute("SELECT pg_stat_force_next_flush()")
    db.own.close()
    changed = (
        "SELECT coalesce(sum(n_tup_upd + n_tup_del + n_dead_tup), 0), sum(n_tup_ins)"
        " FROM pg_stat_user_tables WHERE schemaname = 'rota' AND relname ~ '^note_[0-9]$'"
    )
    [(dead, _)] = until(lambda: [row for row in db.sql(changed) if row[1] >= 6000] or None)
    assert dead == 0


def test_reading_walks_its_index(db: Database) -> None:
    """Of a job with many notes as many are read as count, whatever else there is."""
    jobs = running(db, 3)
    for job in jobs:
        for start in range(1, 20):
            tell(db, said(job, start, lines=500))
    db.sql("ANALYZE rota.note")
    raw = db.bare(autocommit=True)
    begin(raw, Begin.HASTY)
    plan = explained(raw, noting.NOTES(jobs=[jobs[0].id, jobs[2].id], most=LINES))
    raw.execute("ROLLBACK")
    assert plan["Actual Rows"] == 2 * (1 + LINES)

    def read(node: dict[str, object]) -> float:
        children = node.get("Plans", [])
        assert isinstance(children, list)
        mine = 0.0
        if "note" in str(node.get("Relation Name", "")):
            assert str(node["Node Type"]).startswith("Index"), node
            mine = float(str(node["Actual Rows"])) * float(str(node["Actual Loops"]))
        return mine + sum(read(child) for child in children)

    assert read(plan) <= 2 * (LINES + 10)
