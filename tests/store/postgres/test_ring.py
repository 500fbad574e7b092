"""The rings: a truncation takes nothing that is still needed, and waits for no transaction."""

import time
from collections.abc import Callable

import pytest

from rota.model.settlement import Settlement
from rota.model.states import Move, State
from rota.store.operation import Query, Statement
from rota.store.postgres import clearing, rings
from rota.store.postgres.failures import LockTimeout
from rota.store.postgres.store import PostgresStore
from tests.store.factories import error_json, until
from tests.store.postgres.database import KEEP, Database, Later, ids


@pytest.fixture(autouse=True)
def small_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments so small that every round of housekeeping turns the rings."""
    for ring in ("LOG_SIZE", "CURSOR_SIZE", "LEASE_SIZE", "TALLY_SIZE", "FINISHED_SIZE"):
        monkeypatch.setattr(rings, ring, 0)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Housekeeping that waits for its locks, so that a race can be arranged."""
    waiting = Statement("lock_wait", "SELECT set_config('lock_timeout', '20s', true)")
    monkeypatch.setattr(rings, "LOCK_WAIT", waiting)


def tidy(db: Database, rounds: int = 1) -> list[str]:
    """What so many rounds of housekeeping did."""
    return [did for _ in range(rounds) for did in db.own.run(db.store.tidy())]


def emptied(done: list[str], ring: str = "log") -> int:
    """How many segments of a ring were emptied."""
    return sum(did.startswith(ring) and "empty again" in did for did in done)


def forgetful(after: int) -> Callable[..., Query]:
    """The check for unclaimed rows, which says that there are none after so many looks."""
    looks = 0
    real = rings.UNCLAIMED

    def check(segment: int) -> Query:
        nonlocal looks
        looks += 1
        return real(segment=segment) if looks <= after else Statement("none", "SELECT false")()

    return check


def constant(name: str, text: str) -> Callable[..., Query]:
    """A statement that looks at no segment."""
    return lambda segment: Statement(f"{name} {segment}", text)()


@pytest.mark.parametrize("checked", [True, False])
def test_unclaimed_rows(db: Database, monkeypatch: pytest.MonkeyPatch, *, checked: bool) -> None:
    """A segment with an unclaimed job stays; without the check the job would be lost."""
    if not checked:
        monkeypatch.setattr(rings, "UNCLAIMED", forgetful(0))
    jobs = db.enqueue(3)
    done = tidy(db, 5)
    assert emptied(done) == (0 if checked else 1)
    assert ids(db.claim(db.session())) == (jobs if checked else [])


@pytest.mark.parametrize("checked", [True, False])
def test_rows_that_are_committed_during_the_wait(
    db: Database, monkeypatch: pytest.MonkeyPatch, patient: None, *, checked: bool
) -> None:
    """What a producer commits while the truncation waits for its lock is seen by another look."""
    del patient
    caller = db.bare()
    jobs = db.enqueue(3, conn=caller)
    db.own.run(rings.turn_log())
    if not checked:
        monkeypatch.setattr(rings, "UNCLAIMED", forgetful(1))
    truncation = Later(db, rings.empty_log(0))
    until(lambda: db.waits_for(truncation.pid, caller.info.backend_pid) or None)
    caller.commit()
    assert emptied(truncation.result()) == (0 if checked else 1)
    assert ids(db.claim(db.session())) == (jobs if checked else [])


def test_a_producer_that_has_not_committed(db: Database) -> None:
    """Truncation gives up after 50 ms, again and again, and holds nothing else up for longer."""
    caller = db.bare()
    late = db.enqueue(2, conn=caller)
    db.own.run(rings.turn_log())
    began = time.monotonic()
    with pytest.raises(LockTimeout):
        db.own.run(rings.empty_log(0))
    assert 0.045 < time.monotonic() - began < 1.0
    session = db.session()
    separator = "&" if "?" in db.url else "?"
    hasty = PostgresStore(f"{db.url}{separator}options=-c%20lock_timeout%3D500ms").connect()
    try:
        for _ in range(5):
            truncation = Later(db, rings.empty_log(0))
            while not truncation.ended:
                passed = db.enqueue(1, on=hasty)
                claimed = hasty.run(db.store.claim(session, ["default"], 10))
                assert ids(claimed) == passed
            with pytest.raises(LockTimeout):
                truncation.result()
    finally:
        hasty.close()
    caller.commit()
    assert ids(db.claim(session)) == late
    assert emptied(tidy(db, 2)) >= 1


def test_a_prepared_transaction(db: Database) -> None:
    """A transaction that waits for its second phase keeps its segment, without a connection."""
    caller = db.bare()
    late = db.enqueue(2, conn=caller)
    caller.execute("PREPARE TRANSACTION 'rota ring'")
    caller.close()
    assert emptied(tidy(db, 3)) == 0
    db.sql("COMMIT PREPARED 'rota ring'")
    assert emptied(tidy(db, 3)) == 0
    assert ids(db.claim(db.session())) == late
    assert emptied(tidy(db, 3)) >= 1


def test_a_row_of_a_hole(db: Database) -> None:
    """A job before the cursor, in a transaction that committed late, counts as unclaimed."""
    caller = db.bare()
    late = db.enqueue(3, conn=caller)
    db.enqueue(1)
    session = db.session()
    db.claim(session)
    caller.commit()
    assert emptied(tidy(db, 3)) == 0
    assert ids(db.claim(session, 2)) == late[:2]
    assert emptied(tidy(db, 3)) == 0
    assert ids(db.claim(session)) == late[2:]


ENDS = [Move.COMPLETE, Move.DISCARD, Move.RETRY, Move.SNOOZE, Move.RELEASE, Move.CANCEL]
RESULTS = {
    Move.COMPLETE: State.COMPLETED,
    Move.DISCARD: State.DISCARDED,
    Move.RETRY: State.RETRYABLE,
    Move.SNOOZE: State.SCHEDULED,
    Move.RELEASE: State.AVAILABLE,
    Move.CANCEL: State.CANCELLED,
}


@pytest.mark.parametrize("move", ENDS)
def test_leased_rows_are_copied_forward(db: Database, move: Move) -> None:
    """A job that runs through many turns of the ring does not pin it, and ends as any other."""
    job, other = db.enqueue(
        2, queue="default", max_attempts=7, timeout=1.5, headers='{"trace":"a"}'
    )
    session = db.session()
    running, done = db.claim(session)
    db.settle(session, [done])
    turns = 0
    for _ in range(10):
        db.enqueue(1)
        db.settle(session, db.claim_all(session))
        turns += emptied(tidy(db))
    assert turns >= 8
    assert 1 <= db.one("SELECT count(*) FROM rota.log WHERE id = %s", job) <= 2
    assert db.one("SELECT count(*) FROM rota.log WHERE id = %s", other) == 0
    error = error_json(1, "E", "e") if move in {Move.RETRY, Move.DISCARD} else None
    end = Settlement(
        job, running.lease, move, 600.0 if move is Move.SNOOZE else 0.0, KEEP, None, error
    )
    assert db.own.run(db.store.settle(session, [end])) == []
    [found] = db.own.run(db.store.get([job]))
    assert (found.state, found.args, found.max_attempts, found.timeout, found.headers) == (
        RESULTS[move], '{"number":0}', 7, 1.5, {"trace": "a"},
    )  # fmt: skip


def test_leased_rows_are_rescued_after_a_turn(db: Database) -> None:
    """Jobs of a dead worker come back although their segment was emptied meanwhile."""
    jobs = db.enqueue(3)
    dead = db.session()
    db.claim(dead)
    assert emptied(tidy(db, 6)) >= 1
    db.silence(dead)
    [rescue] = db.own.run(db.store.rescue())
    assert list(rescue.available) == jobs
    again = db.claim(db.session())
    assert [(job.id, job.attempt, job.args) for job in again] == [
        (job, 1, f'{{"number":{number}}}') for number, job in enumerate(jobs)
    ]


def test_without_copying_forward_a_running_job_is_lost(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: a truncation that takes leased rows along."""
    for name, text in {"COPY_FORWARD_SQL": "SELECT", "LEASED": "SELECT 0, 0"}.items():
        monkeypatch.setattr(rings, name, constant(name, text))
    db.enqueue(1)
    dead = db.session()
    db.claim(dead)
    tidy(db, 6)
    db.silence(dead)
    [rescue] = db.own.run(db.store.rescue())
    assert rescue.available == ()


def test_more_leased_rows_than_are_copied(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment whose rows are mostly leased stays until they are settled."""
    monkeypatch.setattr(rings, "COPY_FORWARD", 2)
    db.enqueue(3)
    session = db.session()
    jobs = db.claim(session)
    assert emptied(tidy(db, 3)) == 0
    db.settle(session, jobs[:1])
    assert emptied(tidy(db, 2)) == 1
    assert db.settle(session, jobs[1:]) == []


def test_the_current_segment_is_never_emptied(db: Database) -> None:
    """Leased rows are copied to the current segment: to empty it would take them along."""
    [job] = db.enqueue(1)
    session = db.session()
    claimed = db.claim(session)
    assert db.own.run(rings.empty_log(0)) == []
    assert not db.own.run(clearing.clear_log(0))
    assert db.one("SELECT count(*) FROM rota.log") == 1
    db.settle(session, claimed, Move.RELEASE)
    assert ids(db.claim(session)) == [job]


def test_one_housekeeper_at_a_time(db: Database) -> None:
    """A housekeeper that finds another at work does nothing; two would wait for each other's locks."""
    session = db.session()
    db.enqueue(1)
    db.settle(session, db.claim(session))
    db.own.run(rings.turn_log())
    busy = db.bare()
    busy.execute("SELECT pg_advisory_xact_lock(7682002, 1)")
    assert tidy(db, 3) == []
    busy.rollback()
    assert emptied(tidy(db)) == 1


def test_the_ring_waits_for_its_next_segment(db: Database) -> None:
    """While the next segment is in use the current one grows, and nothing is lost."""
    session = db.session()
    callers = []
    for _ in range(3):
        callers.append(db.bare())
        db.enqueue(1, conn=callers[-1])
        db.own.run(rings.turn_log())
    jobs = db.enqueue(50)
    for _ in range(3):
        assert emptied(tidy(db)) == 0
        jobs += db.enqueue(1)
    got = ids(db.claim_all(session))
    assert got == jobs
    for caller in callers:
        caller.rollback()
    assert emptied(tidy(db, 4)) >= 4


def test_a_producer_that_is_a_turn_behind(db: Database) -> None:
    """A job that lands in an old segment is claimed like any other, and keeps it until then."""
    session = db.session()
    db.enqueue(1)
    db.settle(session, db.claim(session))
    [(job,)] = db.sql(
        "INSERT INTO rota.log (id, lane, segment, max_attempts, task, args)"
        " SELECT nextval('rota.job_id'), id, 3, 5, 'shop.send', '{}' FROM rota.lane RETURNING id"
    )
    assert emptied(tidy(db, 2)) == 1
    assert db.sizes()[3] > 0
    assert ids(db.claim(session)) == [job]
    assert emptied(tidy(db, 2)) == 1


def test_the_cursor_turns(db: Database) -> None:
    """The cursor's tables change places under claims and holes: nothing is lost, nothing twice."""
    session = db.session()
    caller = db.bare()
    late = db.enqueue(5, conn=caller)
    claimed = []
    passed = []
    turns = 0
    for number in range(12):
        passed += db.enqueue(2, priority=number % 3)
        claimed += ids(db.claim(session, 3))
        if number == 6:
            caller.commit()
        turns += emptied(tidy(db), "cursor")
    claimed += ids(db.claim_all(session))
    assert turns >= 4
    assert sorted(claimed) == sorted([*late, *passed])
    assert min(db.one(f"SELECT pg_relation_size('rota.cursor_{slot}')") for slot in (0, 1)) == 0


def test_without_copying_the_cursor_forward_lanes_die(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: a truncation that takes a lane's only cursor entry along."""
    monkeypatch.setattr(rings, "CURSOR_REPEAT", Statement("none", "SELECT WHERE false"))
    db.enqueue(1)
    assert emptied(tidy(db, 2), "cursor") == 1
    assert db.claim(db.session()) == []


def test_a_claim_under_way_holds_the_cursor(db: Database) -> None:
    """Emptying a cursor table waits for no claim: it gives up, and succeeds later."""
    db.enqueue(1)
    tidy(db)
    claimer = db.bare()
    claimer.execute("SELECT FROM rota.lane FOR NO KEY UPDATE")
    assert emptied(tidy(db), "cursor") == 0
    claimer.rollback()
    assert emptied(tidy(db, 2), "cursor") == 1
    assert len(db.claim(db.session())) == 1


def test_a_dump_only_postpones(db: Database) -> None:
    """Weak locks on all tables, as pg_dump takes them, stop truncation alone, and for a while."""
    session = db.session()
    db.enqueue(3)
    db.settle(session, db.claim(session), keep=0.001)
    dump = db.bare()
    for (name,) in db.sql(
        "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'p')"
        " AND relnamespace = 'rota'::regnamespace"
    ):
        dump.execute(f"LOCK TABLE {name} IN ACCESS SHARE MODE")
    done = tidy(db, 3)
    assert not any("empty again" in did for did in done)
    jobs = db.enqueue(3)
    claimed = db.claim(session)
    assert ids(claimed) == jobs
    assert db.settle(session, claimed) == []
    dump.rollback()
    done = tidy(db, 2)
    assert emptied(done) >= 1
    assert emptied(done, "cursor") >= 1


def test_finished_jobs_stay_for_their_retention(db: Database) -> None:
    """A segment of finished jobs goes when the last of them may go; discarded ones stay."""
    session = db.session()
    kept, gone, bad = db.enqueue(3)
    one, two, three = db.claim(session)
    db.settle(session, [one], keep=KEEP)
    db.settle(session, [two], keep=0.001)
    db.settle(session, [three], Move.DISCARD)
    assert emptied(tidy(db, 8), "finished") == 0
    assert [job.id for job in db.own.run(db.store.get([kept, gone, bad]))] == [kept, bad]
    db.sql("UPDATE rota.finished SET keep_until = now() WHERE id = %s", kept)
    assert emptied(tidy(db, 2), "finished") == 1
    assert [job.id for job in db.own.run(db.store.get([kept, gone, bad]))] == [bad]
    assert (
        db.one("SELECT sum(pg_relation_size('rota.finished_' || n)) FROM generate_series(0, 5) n")
        == 0
    )


def test_the_ring_passes_a_segment_that_is_in_use(db: Database) -> None:
    """A transaction that never ends keeps its own segment; the others are used and emptied."""
    session = db.session()
    caller = db.bare()
    late = db.enqueue(1, conn=caller)
    used = set()
    for _ in range(8):
        db.enqueue(200)
        used |= {number for number, size in enumerate(db.sizes()) if size}
        db.settle(session, db.claim_all(session))
        tidy(db, 2)
    assert used == {0, 1, 2, 3}
    assert sum(db.sizes()[1:]) == 0
    caller.commit()
    assert ids(db.claim_all(session)) == late
