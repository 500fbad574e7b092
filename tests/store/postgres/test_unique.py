"""Unique keys where transactions meet: replacements that stay open, claims, settlements, rescues."""

from collections.abc import Callable
from contextlib import nullcontext, suppress
from threading import Thread
from typing import Any

import psycopg
import pytest

from rota import JobExists, StoreError, Unique
from rota.database.recognise import blocking_caller
from rota.model.enqueued import Enqueued, Placed, Placing
from rota.model.job import ClaimedJob, JobId, JobSpec, Keys, Order, SessionId
from rota.model.settlement import Settlement
from rota.model.states import Move, State
from rota.store.execute import drive
from rota.store.operation import (
    Copy,
    Operation,
    Query,
    Request,
    Rows,
    Statement,
    Surroundings,
    Where,
)
from rota.store.postgres import claim
from rota.store.postgres import enqueue_keyed as keyed
from rota.store.postgres import enqueue_keyed_many as many_keyed
from rota.store.postgres import stage as timer
from tests.store import factories
from tests.store.factories import until
from tests.store.postgres.counting import right, squeeze, tidy
from tests.store.postgres.database import KEEP, Database, Later, Raw, ids

REPLACE = Unique(on_conflict="replace")
LATER = 3600.0


def placing(
    db: Database,
    *keys: str,
    unique: Unique = REPLACE,
    args: str = "{}",
    **options: Any,
) -> Operation[list[Placed]]:
    """The operation that enqueues a job for each key."""
    spec = JobSpec(**{"task": "shop.send", "unique": unique, **options})
    return factories.placing(db.store, Order(spec, [args] * len(keys), Keys(unique=keys)))


def place(db: Database, *keys: str, conn: Raw | None = None, **options: Any) -> list[Placed]:
    """Enqueue, by Rota or in a caller's transaction."""
    operation = placing(db, *keys, **options)
    return db.own.run(operation) if conn is None else db.inside(conn, operation)


def settle(
    db: Database,
    session: SessionId,
    jobs: list[ClaimedJob],
    move: Move = Move.COMPLETE,
    delay: float = 0.0,
) -> list[JobId]:
    """Settle jobs alike."""
    return db.own.run(db.store.settle(session, settlements(jobs, move, delay)))


def settlements(
    jobs: list[ClaimedJob], move: Move = Move.COMPLETE, delay: float = 0.0
) -> list[Settlement]:
    """Settlements of keyed jobs."""
    return [
        Settlement(job.id, job.lease, move, delay, KEEP, unique_key=job.unique_key) for job in jobs
    ]


def stage_all(db: Database) -> None:
    """Stage until what was put aside for a moment is back."""

    def back() -> bool | None:
        db.own.run(db.store.stage(100))
        return (
            db.one("SELECT count(*) FROM rota.timer WHERE run_at < now() + interval '1 minute'")
            == 0
            or None
        )

    until(back)


def mutant(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, *changes: tuple[str, str]
) -> None:
    """Exchange a statement for one that lacks something."""
    statement: Statement = getattr(where, name)
    text = statement.text
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    monkeypatch.setattr(where, name, Statement(statement.name + "_mutant", text))


# A replacement that is open, and a claim ----------------------------------------------------------


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("delay", [None, LATER])
def test_a_claim_beside_an_open_replacement(
    db: Database, *, commits: bool, delay: float | None
) -> None:
    """The claim does not wait and takes the other jobs; the job runs once, as the outcome says."""
    [job] = place(db, "a", args='"old"', headers='{"trace":"old"}')
    others = db.enqueue(3)
    caller = db.bare()
    new = {"args": '"new"', "headers": '{"trace":"new"}'}
    assert place(db, "a", conn=caller, **new, delay=delay) == [Placed(job.job, Placing.REPLACED)]
    session = db.session()
    assert ids(db.claim(session)) == others
    assert right(db)
    assert db.claim(session) == []
    if commits:
        caller.commit()
    else:
        caller.rollback()
    assert right(db)
    stage_all(db)
    assert right(db)
    if commits and delay:
        assert db.claim(session) == []
        assert db.own.run(db.store.retry([job.job])) == [job.job]
    [found] = db.claim(session)
    assert (found.id, found.args) == (job.job, '"new"' if commits else '"old"')
    assert found.headers == ('{"trace":"new"}' if commits else '{"trace":"old"}')
    assert right(db)
    assert settle(db, session, [found]) == []
    stage_all(db)
    assert db.claim(session) == []
    assert right(db)


def test_late_transactions_beside_unique_jobs(db: Database) -> None:
    """What commits behind the cursor is handed out, in parts if need be, and once."""
    late = db.bare()
    delayed = [placed.job for placed in place(db, "a", "b", conn=late)]
    passed = [placed.job for placed in place(db, "c", "d")]
    session = db.session()
    assert ids(db.claim(session)) == passed
    late.commit()
    assert [ids(db.claim(session, 1)) for _ in range(3)] == [delayed[:1], delayed[1:], []]


def test_a_claim_that_waited_would_be_seen(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: without SKIP LOCKED the claim waits for the caller's transaction."""
    mutant(
        monkeypatch, claim, "CLAIM_KEYED", ("FOR UPDATE OF held SKIP LOCKED", "FOR UPDATE OF held")
    )
    place(db, "a")
    db.enqueue(3)
    caller = db.bare()
    place(db, "a", conn=caller)
    session = db.session()
    claiming = Later(db, db.store.claim(session, ["default"], 10))
    until(lambda: db.waits_for(claiming.pid, caller.info.backend_pid) or None)
    caller.rollback()
    assert len(claiming.result()) == 4


def test_void_entries_that_were_not_looked_at_would_run(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: a claim that hands out every entry runs a replaced job twice."""
    mutant(
        monkeypatch, claim, "CLAIM_KEYED",
        ("WHERE unique_key IS NULL OR ((id, entry) IN (SELECT id, entry FROM key)) IS TRUE", ""),
    )  # fmt: skip
    place(db, "a")
    place(db, "a")
    assert len(db.claim(db.session())) == 2


def test_a_claim_before_a_replacement(db: Database) -> None:
    """A replacement that meets a claim waits for its short transaction, and leaves the job alone."""
    [job] = place(db, "a", args='"old"')
    session = db.session()
    third = db.bare()
    third.execute("LOCK TABLE rota.lease IN SHARE MODE")
    claiming = Later(db, db.store.claim(session, ["default"], 10))
    until(lambda: db.waits_for(claiming.pid, third.info.backend_pid) or None)
    # The lease is not written yet; whether the key is locked already is up to the plan.
    replacing = Later(db, placing(db, "a", args='"new"'))
    third.rollback()
    [found] = claiming.result() or db.claim(session)
    [placed] = replacing.result()
    assert found.id == job.job
    assert (found.args == '"new"') is (placed.placing is Placing.REPLACED)
    assert settle(db, session, [found]) == []
    stage_all(db)
    assert db.claim(session) == []
    assert right(db)


def test_a_locked_key_and_a_replacement(db: Database) -> None:
    """A replacement that waited for a claim finds the job running, and skips it."""
    [job] = place(db, "a", args='"old"')
    session = db.session()
    [lane] = db.sql("SELECT id FROM rota.lane")[0]
    raw = db.bare(autocommit=True)
    raw.execute("BEGIN")
    raw.execute(claim.CLAIM_LOCK.text, {"lane": lane, "session": session})
    assert (
        len(
            raw.execute(
                claim.CLAIM_KEYED.text, {"lane": lane, "session": session, "size": 9}
            ).fetchall()
        )
        == 1
    )
    replacing = Later(db, placing(db, "a", args='"new"'))
    until(lambda: db.waits_for(replacing.pid, raw.info.backend_pid) or None)
    raw.execute("COMMIT")
    assert replacing.result() == [Placed(job.job, Placing.SKIPPED)]
    assert right(db)


@pytest.mark.parametrize("keys", ["a", "ab"])
@pytest.mark.parametrize("looks", [True, False])
def test_a_replacement_that_met_a_claim_and_stays_open(
    db: Database, monkeypatch: pytest.MonkeyPatch, keys: str, *, looks: bool
) -> None:
    """It keeps no lock on a job that runs by then; the mutant does, and its settlement would wait."""
    if not looks:
        unlocked = "SELECT ARRAY(SELECT json_array_elements_text(%(keys)s::json))"
        monkeypatch.setattr(keyed, "KEYED_LOCK_WAITING", Statement("unlocked", unlocked))
    place(db, *keys)
    [lane] = db.sql("SELECT id FROM rota.lane")[0]
    claiming, caller = db.bare(), db.bare()
    given = {"lane": lane, "session": db.session(), "size": 1}
    joined = blocking_caller(caller)

    def execute(request: Request) -> Rows:
        if isinstance(request, Where):
            return [Surroundings(inside=True)]
        if isinstance(request, Query) and request.statement is keyed.KEYED_LOCK_WAITING:
            # The claim begins after it was seen that the keys are taken.
            claiming.execute(claim.CLAIM_LOCK.text, given)
            assert len(claiming.execute(claim.CLAIM_KEYED.text, given).fetchall()) == 1
        return joined.execute(request)

    placed: list[Placed] = []
    steps = placing(db, *keys).steps
    replacing = Thread(target=lambda: placed.extend(drive(steps, execute)))
    replacing.start()
    until(lambda: db.waits_for(caller.info.backend_pid, claiming.info.backend_pid) or None)
    claiming.commit()
    replacing.join()
    assert [answer.placing for answer in placed] == [Placing.SKIPPED, Placing.REPLACED][: len(keys)]
    settlement = db.bare()
    locking = "SELECT FROM rota.unique_key WHERE key = %s FOR UPDATE NOWAIT"
    with nullcontext() if looks else pytest.raises(psycopg.errors.LockNotAvailable):
        settlement.execute(locking, ["a"])
    settlement.rollback()
    # What it did replace stays locked.
    for key in keys[1:]:
        with pytest.raises(psycopg.errors.LockNotAvailable):
            settlement.execute(locking, [key])
    caller.commit()
    assert right(db)


def test_many_void_entries_before_a_job(db: Database) -> None:
    """A claim of one job goes on past what was replaced, however much that is."""
    for _ in range(30):
        place(db, "a")
    [other] = db.enqueue(1)
    session = db.session()
    assert [db.claim(session, 1)[0].id for _ in range(2)] == [place(db, "a")[0].job, other]
    assert right(db)


def test_a_plain_claim_of_a_keyed_lane(db: Database) -> None:
    """A worker that does not know of the lane's unique jobs yet asks again, in the other way."""
    session = db.session()
    db.enqueue(2)
    assert len(db.claim(session, 1)) == 1
    [job] = place(db, "a")
    place(db, "a", args='"new"')
    found = db.claim(session)
    assert [listed.args for listed in found[1:]] == ['"new"']
    assert found[1].id == job.job


def test_a_plain_claim_that_did_not_look(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: without the lane's mark entries are handed out that do not count."""
    from rota.store.postgres import enqueue_keyed as keyed

    monkeypatch.setattr(keyed, "KEYED_MARK", Statement("nothing", "SELECT %(lane)s::int4"))
    place(db, "a")
    place(db, "a")
    assert len(db.claim(db.session())) == 2


def test_an_empty_claim_that_ended_there(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: a claim that takes passed entries for the end of the lane comes back with nothing."""
    monkeypatch.setattr(
        claim, "_answer", lambda found: claim.Answer([], unique=True) if found[1] else None
    )
    for _ in range(3):
        place(db, "a")
    assert db.claim(db.session(), 1) == []


# The counts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("delays", [(None, None), (None, LATER), (LATER, None), (LATER, LATER)])
def test_counts_beside_replacements(db: Database, delays: tuple[float | None, ...]) -> None:
    """Each job counts once and where it is, before and after marks, void entries passed or not."""
    for delay in (*delays, *delays):
        place(db, "a", "b", delay=delay, priority=0 if delay else 1)
        assert right(db)
    squeeze(db)
    tidy(db)
    assert right(db)
    session = db.session()
    db.sql("UPDATE rota.timer SET run_at = now() - interval '1 second'")
    db.sql(
        "INSERT INTO rota.timer_mark SELECT max(seq) + 1, '-infinity', 0, pg_current_snapshot() FROM rota.timer_mark"
    )
    stage_all(db)
    assert right(db)
    found = db.claim(session)
    assert len(found) == 2
    assert right(db)
    settle(db, session, found)
    squeeze(db)
    tidy(db)
    assert right(db)
    assert db.one("SELECT count(*) FROM rota.timer") == 0
    assert db.claim(session) == []


def test_staging_beside_an_open_replacement(db: Database) -> None:
    """A due job that is being replaced is put off without waiting, and counts as scheduled till then."""
    [job] = place(db, "a", args='"old"', delay=0.001)
    db.enqueue(2, delay=0.001)
    caller = db.bare()
    until(lambda: db.one("SELECT max(run_at) < now() FROM rota.timer") or None)
    place(db, "a", conn=caller, args='"new"')
    assert db.own.run(db.store.stage(10)).staged == 2
    assert right(db)
    caller.commit()
    assert right(db)
    stage_all(db)
    assert right(db)
    session = db.session()
    found = db.claim(session)
    assert [(listed.id, listed.args) for listed in found if listed.id == job.job] == [
        (job.job, '"new"')
    ]
    assert len(found) == 3
    assert right(db)


def test_a_staging_that_waited_would_be_seen(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: without SKIP LOCKED one open replacement stops all staging."""
    mutant(monkeypatch, timer, "STAGE", ("FOR UPDATE OF held SKIP LOCKED", "FOR UPDATE OF held"))
    place(db, "a", delay=0.001)
    caller = db.bare()
    until(lambda: db.one("SELECT max(run_at) < now() FROM rota.timer") or None)
    place(db, "a", conn=caller)
    staging = Later(db, db.store.stage(10))
    until(lambda: db.waits_for(staging.pid, caller.info.backend_pid) or None)
    caller.rollback()
    staging.result()


def test_a_staging_without_ties_would_lose_jobs(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: with LIMIT the mark passes an entry of the same job and time."""
    mutant(
        monkeypatch, timer, "STAGE",
        ("FETCH FIRST (%(size)s::int8) ROWS WITH TIES", "LIMIT %(size)s::int8"),
    )  # fmt: skip
    past = db.one("SELECT now() + interval '0.2 seconds'")
    for _ in range(2):
        place(db, "a", at=past)
    db.own.run(db.store.stage(1))  # marks what it has seen
    until(lambda: db.one("SELECT %s < now()", past) or None)
    for _ in range(5):
        db.own.run(db.store.stage(1))
    assert db.claim(db.session()) == []


# Producers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("commits", [True, False])
def test_two_who_enqueue_a_key(db: Database, *, commits: bool) -> None:
    """The second one waits for the first one's transaction, and learns what came of it."""
    db.enqueue(1)
    caller = db.bare()
    [first] = place(db, "a", conn=caller)
    second = Later(db, placing(db, "a", unique=Unique()))
    until(lambda: db.waits_for(second.pid, caller.info.backend_pid) or None)
    if commits:
        caller.commit()
    else:
        caller.rollback()
    [placed] = second.result()
    assert (placed == Placed(first.job, Placing.SKIPPED)) is commits
    assert (placed.placing is Placing.CREATED) is not commits
    assert right(db)


def test_two_who_replace_a_key(db: Database) -> None:
    """The second one waits, and its args are the last ones."""
    [job] = place(db, "a")
    caller = db.bare()
    place(db, "a", conn=caller, args='"first"')
    second = Later(db, placing(db, "a", args='"second"'))
    until(lambda: db.waits_for(second.pid, caller.info.backend_pid) or None)
    caller.commit()
    assert second.result() == [Placed(job.job, Placing.REPLACED)]
    [found] = db.claim(db.session())
    assert found.args == '"second"'
    assert right(db)


def test_producers_in_opposite_orders(db: Database) -> None:
    """Keys are taken in their order: two producers in opposite orders do not deadlock."""
    keys = [f"{number:04}" for number in range(3000)]
    for unique in (Unique(), REPLACE):
        for _ in range(2):
            both = [Later(db, placing(db, *order, unique=unique)) for order in (keys, keys[::-1])]
            answers = [later.result() for later in both]
            assert {len(answer) for answer in answers} == {3000}
    assert len(db.claim_all(db.session())) == 3000
    assert right(db)


def test_a_key_that_is_freed_meanwhile(db: Database) -> None:
    """An enqueue that meets the settlement of the key's job waits for it, and creates a new one."""
    [first] = place(db, "a")
    session = db.session()
    jobs = db.claim(session)
    # What is wanted no more is forgotten last, when the key is free.
    db.own.run(db.store.cancel([first.job]))
    third = db.bare()
    third.execute("SELECT FROM rota.cancel_request FOR UPDATE")
    settling = Later(db, db.store.settle(session, settlements(jobs)))
    until(lambda: db.waits_for(settling.pid, third.info.backend_pid) or None)
    placed = Later(db, placing(db, "a"))
    until(lambda: db.waits_for(placed.pid, settling.pid) or None)
    third.rollback()
    assert settling.result() == []
    [second] = placed.result()
    assert second.placing is Placing.CREATED
    assert second.job != first.job
    assert right(db)


def test_a_settlement_beside_open_producers(db: Database) -> None:
    """An enqueue with the key of a running job locks nothing that its settlement waits for."""
    place(db, "a")
    session = db.session()
    jobs = db.claim(session)
    callers = [db.bare(), db.bare()]
    for caller, unique in zip(callers, (REPLACE, Unique()), strict=True):
        [placed] = place(db, "a", conn=caller, unique=unique)
        assert placed.placing is Placing.SKIPPED
    assert settle(db, session, jobs) == []
    for caller in callers:
        caller.commit()
    assert right(db)


def test_a_rescue_beside_an_enqueue(db: Database) -> None:
    """The rescued job keeps its key: an enqueue that meets the rescue finds it there."""
    [first] = place(db, "a")
    session = db.session()
    assert len(db.claim(session)) == 1
    db.silence(session)
    third = db.bare()
    third.execute("LOCK TABLE rota.session IN SHARE MODE")
    rescue = Later(db, db.store.rescue())
    until(lambda: db.waits_for(rescue.pid, third.info.backend_pid) or None)
    placing_one = Later(db, placing(db, "a", unique=Unique()))
    until(lambda: db.waits_for(placing_one.pid, rescue.pid) or None)
    third.rollback()
    [found] = rescue.result()
    assert list(found.available) == [first.job]
    assert (
        placing_one.result()
        == place(db, "a", unique=Unique())
        == [Placed(first.job, Placing.SKIPPED)]
    )
    [job] = db.claim(db.session())
    assert (job.id, job.attempt) == (first.job, 2)
    assert right(db)


def test_a_key_that_a_rescue_forgot(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: a rescue that does not note the new entry loses the job."""
    from rota.store.postgres import sessions

    monkeypatch.setattr(sessions, "keys_wait", lambda _: iter(()))
    place(db, "a")
    session = db.session()
    db.claim(session)
    db.silence(session)
    assert db.own.run(db.store.rescue())[0].available
    assert db.claim(db.session()) == []


def test_an_old_snapshot_meets_a_newer_key(db: Database) -> None:
    """In REPEATABLE READ a key that the snapshot does not see is refused, in words."""
    db.enqueue(1)
    caller = db.bare()
    caller.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    caller.execute("SELECT 1")
    place(db, "a")
    with pytest.raises(StoreError, match="READ COMMITTED"):
        place(db, "a", conn=caller)
    caller.rollback()
    assert place(db, "a", conn=caller)[0].placing is Placing.REPLACED


def test_cancelling_waits_for_a_replacement(db: Database) -> None:
    """Cancelling a job waits for its replacement, and stops no claim meanwhile."""
    [job] = place(db, "a")
    others = db.enqueue(2)
    caller = db.bare()
    place(db, "a", conn=caller, delay=LATER)
    cancelling = Later(db, db.store.cancel([job.job]))
    until(lambda: db.waits_for(cancelling.pid, caller.info.backend_pid) or None)
    assert ids(db.claim(db.session())) == others
    caller.commit()
    assert cancelling.result() == {job.job: State.CANCELLED}
    assert place(db, "a")[0].placing is Placing.CREATED
    assert right(db)


# An old snapshot ----------------------------------------------------------------------------------


def test_keys_of_a_period_that_is_over(db: Database) -> None:
    """Housekeeping forgets them, and no others."""
    place(db, "a", "b", unique=Unique(period=1e9))
    session = db.session()
    jobs = db.claim(session)
    assert settle(db, session, jobs) == []
    assert db.one("SELECT count(*) FROM rota.unique_key WHERE state = 'ended'") == 2
    db.sql("UPDATE rota.unique_key SET until = now() WHERE job = %s", jobs[0].id)
    tidy(db)
    assert db.sql("SELECT job FROM rota.unique_key") == [(jobs[1].id,)]


def test_turns_beside_an_old_snapshot(db: Database) -> None:
    """Rounds of a subject go on; what grows is the versions of its key, and nothing else."""
    place(db, "a")
    db.enqueue(1)
    old = db.bare()
    old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    old.execute("SELECT pg_current_xact_id(), count(*) FROM rota.lane")
    session = db.session()
    for _ in range(50):
        db.own.run(db.store.stage(10))
        jobs = db.claim(session)
        assert jobs
        keyed = [job for job in jobs if job.unique_key]
        settle(db, session, [job for job in jobs if not job.unique_key])
        assert settle(db, session, keyed, Move.AGAIN) == []
        # What was put back by Again is due at once.
    assert right(db)
    [found] = db.own.run(db.store.get([keyed[0].id]))
    assert found.iteration == 50
    old.rollback()


# Many ---------------------------------------------------------------------------------------------

MANY = 300
"""So many jobs are copied."""


def many(keys: list[str], args: list[str] | None = None, **options: Any) -> Order:
    """An order of a job for each key, with its number as args."""
    spec = JobSpec("shop.send", **{"unique": REPLACE, **options})
    return Order(spec, args or [f"{number}" for number in range(len(keys))], Keys(unique=keys))


@pytest.mark.parametrize("conflict", ["skip", "replace"])
def test_many_of_which_half_are_taken(db: Database, conflict: str) -> None:
    """The log gets the new jobs, and where they replace others new entries of those."""
    unique = Unique(on_conflict=conflict)
    keys = [f"{number}" for number in range(2 * MANY)]
    before = db.own.run(db.store.enqueue(many(keys[::2], unique=unique)))
    stored = db.own.run(db.store.enqueue(many(keys, unique=unique)))
    assert stored[::2] == before
    met = stored.skipped if conflict == "skip" else stored.replaced
    assert (met, stored.created) == (before, stored[1::2])
    entries = MANY if conflict == "replace" else 0
    assert db.one("SELECT count(*) FROM rota.log") == 2 * MANY + entries
    args = [record.args for record in db.own.run(db.store.get(stored))]
    assert args[1::2] == [f"{number}" for number in range(1, 2 * MANY, 2)]
    assert args[::2] == [f"{2 * number if entries else number}" for number in range(MANY)]
    assert right(db)


def test_all_keys_of_a_page_change_at_once(db: Database) -> None:
    """Each page has room for the new versions of its rows, so no index gets an entry."""

    def sizes() -> list[Any]:
        tables = "rota.unique_key", "rota.unique_key_pkey"
        return [db.one(f"SELECT pg_relation_size('{table}')") for table in tables]

    keys = [f"{number}" for number in range(1000)]
    db.own.run(db.store.enqueue(many(keys)))
    before = sizes()
    assert len(db.own.run(db.store.enqueue(many(keys))).replaced) == len(keys)
    assert sizes() == before


def store_many(
    db: Database, order: Order, before: Statement, meanwhile: Callable[[], object]
) -> tuple[Raw, Thread, list[Enqueued]]:
    """Store many jobs in a transaction of Rota's own that stays open, acting before a statement."""
    own, stored, pending = db.connect(), list[Enqueued](), [meanwhile]
    raw = own.raw()
    raw.execute("BEGIN")

    def execute(request: Request) -> Rows:
        if isinstance(request, Query | Copy) and request.statement is before and pending:
            pending.pop()()
        return own._execute(request)

    steps = db.store.enqueue(order).steps

    def store() -> None:
        with suppress(JobExists):
            stored.append(drive(steps, execute))

    storing = Thread(target=store)
    storing.start()
    return raw, storing, stored


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("conflict", ["skip", "replace", "raise"])
def test_a_key_of_many_that_is_taken_meanwhile(
    db: Database, conflict: str, *, commits: bool
) -> None:
    """It is found by those that looked before, and all others are stored."""
    unique = Unique(on_conflict=conflict)
    keys = [f"{number}" for number in range(MANY)]
    # Makes the lane.
    place(db, "another")
    other, first = db.bare(), list[Placed]()

    def take() -> None:
        first.extend(place(db, "7", conn=other))

    own, storing, stored = store_many(db, many(keys, unique=unique), many_keyed.COPY_KEYS, take)
    until(lambda: db.waits_for(own.info.backend_pid, other.info.backend_pid) or None)
    if commits:
        other.commit()
    else:
        other.rollback()
    storing.join()
    if commits and conflict == "raise":
        assert stored == []
        own.rollback()
        assert db.one("SELECT count(*) FROM rota.log") == 2
        return
    own.commit()
    [found] = stored
    assert len(found.created) == MANY - commits
    assert (found[7] == first[0].job) is commits
    assert [found.skipped, found.replaced][conflict == "replace"] == [first[0].job] * commits
    assert db.one("SELECT count(*) FROM rota.unique_key") == MANY + 1
    assert right(db)


def test_a_job_of_many_that_starts_meanwhile(db: Database) -> None:
    """It is not replaced, and its key is not locked when all others are."""
    keys = [f"{number}" for number in range(MANY)]
    before = db.own.run(db.store.enqueue(many(keys)))
    session, claiming = db.session(), db.bare()
    [lane] = db.sql("SELECT id FROM rota.lane")[0]
    given = {"lane": lane, "session": session, "size": 1}

    def start() -> None:
        claiming.execute(claim.CLAIM_LOCK.text, given)
        assert len(claiming.execute(claim.CLAIM_KEYED.text, given).fetchall()) == 1

    own, storing, stored = store_many(db, many(keys), many_keyed.KEYED_REPLACE_MANY, start)
    until(lambda: db.waits_for(own.info.backend_pid, claiming.info.backend_pid) or None)
    claiming.commit()
    storing.join()
    [found] = stored
    assert (found.skipped, found.replaced) == (before[:1], before[1:])
    locking = "SELECT FROM rota.unique_key WHERE key = %s FOR UPDATE NOWAIT"
    settlement = db.bare()
    settlement.execute(locking, ["0"])
    with pytest.raises(psycopg.errors.LockNotAvailable):
        settlement.execute(locking, ["1"])
    settlement.rollback()
    own.commit()
    assert db.one("SELECT state FROM rota.unique_key WHERE key = '0'") == "running"
    assert right(db)


def test_many_that_go_round(db: Database) -> None:
    """Replaced together with others, a job keeps the number of its rounds."""
    keys = [f"{number}" for number in range(MANY)]
    [first] = place(db, "0")
    session = db.session()
    assert settle(db, session, db.claim(session), Move.AGAIN) == []
    db.own.run(db.store.enqueue(many(keys)))
    assert len(db.own.run(db.store.enqueue(many(keys))).replaced) == MANY
    stage_all(db)
    assert len(db.claim_all(session)) == MANY
    assert db.own.run(db.store.get([first.job]))[0].iteration == 1
    assert right(db)


def test_many_keys_are_stored_as_they_are(db: Database) -> None:
    """Also where the characters of a key mean something to COPY, each job in its own lane."""
    odd = ("\t", "\n", "\r", "\\", "\\N", "\\.", "\v", "grüße 你好 🌍", "\x01")
    keys = [f"{number}{odd[number % len(odd)]}{number}" for number in range(MANY)]
    order = many(keys)
    fair = [f"{number % 7}" for number in range(MANY)]
    jobs = db.own.run(db.store.enqueue(order._replace(keys=Keys(unique=keys, fair=fair))))
    found = db.admin.execute(
        "SELECT job.id, job.unique_key, lane.fair, job.args::text FROM rota.log AS job"
        " JOIN rota.lane ON lane.id = job.lane ORDER BY job.id"
    ).fetchall()
    assert found == list(zip(jobs, keys, fair, order.args, strict=True))


@pytest.mark.parametrize("own", [True, False])
def test_no_key_without_its_job(db: Database, own: bool) -> None:  # noqa: FBT001
    """Where many cannot be stored no key is taken, also if each statement is a transaction."""
    keys = [f"{number}" for number in range(MANY)]
    order = many(keys, ["1"] * (MANY - 1) + ["this is no JSON"])
    operation = db.store.enqueue(order)
    with pytest.raises(StoreError):
        _ = db.own.run(operation) if own else db.inside(db.admin, operation)
    assert db.one("SELECT count(*) FROM rota.unique_key") == 0
    assert db.one("SELECT count(*) FROM rota.log") == 0


def test_many_keys_where_each_statement_is_a_transaction(db: Database) -> None:
    """They are stored all the same, each key together with its job."""
    keys = [f"{number}" for number in range(MANY)]
    jobs = db.inside(db.admin, db.store.enqueue(many(keys)))
    assert len(jobs.created) == MANY
    assert right(db)


def test_one_of_many_is_taken_and_that_is_an_error(db: Database) -> None:
    """The error says which, and nothing is stored."""
    [first] = place(db, "7")
    keys = [f"{number}" for number in range(MANY)]
    with pytest.raises(JobExists, match="'7'") as raised:
        db.own.run(db.store.enqueue(many(keys, unique=Unique(on_conflict="raise"))))
    assert raised.value.job == first.job
    assert db.one("SELECT count(*) FROM rota.log") == 1
    assert right(db)
