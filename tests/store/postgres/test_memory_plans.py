"""How PostgreSQL executes memory statements: they read their jobs' rows, however many others sleep.

In the tables are jobs that wait for signals, each with a step behind it; with statistics about
them, and without.
"""

from collections.abc import Iterator

import pytest

from rota.model.job import JobId, LeaseId
from rota.model.memory import FOR_EVER, Kind, Pause
from rota.model.settlement import Settlement
from rota.model.states import Move
from rota.store.operation import Begin, Query
from rota.store.postgres import look, rings, settle_write, stage
from rota.store.postgres import memory as remembered
from tests.fixtures.large import LARGE
from tests.fixtures.postgres import created
from tests.store.postgres.database import Database, begin, explained
from tests.store.postgres.test_plans import Node, check_scans, rows_read, scans

SLEEPING = 100_000 if LARGE else 10_000
FEW = 5

ASLEEP = """
    WITH asleep AS (
        INSERT INTO rota.timer (id, run_at, lane, entry, attempt, max_attempts, task, args)
        SELECT nextval('rota.job_id'), now() + interval '99 years', lane.id, 1, 0, 5, 'shop.send', '{}'
        FROM generate_series(1, %s), rota.lane
        RETURNING id, entry, run_at
    )
    INSERT INTO rota.memory (slot, job, kind, name, ref, value, xid, entry, until)
    SELECT 0, id, kind, name, CASE kind WHEN 'wait' THEN 'go' END, CASE kind WHEN 'step' THEN '1'::json END,
           CASE kind WHEN 'wait' THEN pg_current_xact_id() END, entry, run_at
    FROM asleep, (VALUES ('step', 'charge'), ('wait', 'go')) AS row (kind, name)
"""


LONG = 300
"""Turns of a conversation: in each of them a step, and a signal that a wait has taken."""

CONVERSATION = """
    INSERT INTO rota.memory (slot, job, kind, name, ref, value)
    SELECT 0, %s, kind, format(name, turn), format(ref, turn), '1'
    FROM generate_series(1, %s) AS turn,
         (VALUES (1, 'step', 'use#%%s', NULL), (2, 'signal', 'go', 'go#%%s'), (3, 'answer', 'go#%%s', 'go#%%s'))
             AS row (place, kind, name, ref)
    ORDER BY turn, place
"""


@pytest.fixture(scope="module", params=["large", "analysed"])
def template(
    request: pytest.FixtureRequest, pytestconfig: pytest.Config, migrated_postgres: str
) -> Iterator[str]:
    """A database with many jobs that sleep, which have been compared with their signals."""
    with created(pytestconfig, migrated_postgres) as (name, url):
        with Database(url) as db:
            session = db.session()
            db.enqueue(1)
            db.settle(session, db.claim(session))
            db.sql(ASLEEP, SLEEPING)
            db.own.run(db.store.stage(10))
            if request.param == "analysed":
                db.sql("ANALYZE")
        yield name


@pytest.fixture
def asleep(template: str, pytestconfig: pytest.Config) -> Iterator[Database]:
    """A copy of it."""
    with created(pytestconfig, template) as (_, url), Database(url) as db:
        yield db


def plan_of(db: Database, query: Query, kind: Begin = Begin.HASTY) -> Node:
    """The plan of a statement, which reads tables by their indexes alone; nothing of it remains."""
    raw = db.bare(autocommit=True)
    begin(raw, kind)
    plan = explained(raw, query)
    raw.execute("ROLLBACK")
    check_scans(plan)
    for node in scans(plan, "memory_") + scans(plan, "finished_memory"):
        assert "Index" in node["Node Type"], node
    return plan


def held(db: Database) -> dict[str, object]:
    """Who runs a job that remembers something."""
    session = db.session()
    db.enqueue(1)
    [job] = db.claim(session)
    return {"session": session, "lease": job.lease, "job": job.id}


def some(db: Database) -> list[JobId]:
    """A few of the jobs that sleep, from the middle of the tables."""
    rows = db.sql("SELECT id FROM rota.timer ORDER BY id OFFSET %s LIMIT %s", SLEEPING // 2, FEW)
    return [JobId(job) for (job,) in rows]


def test_the_look(asleep: Database) -> None:
    """What an idle worker asks reads a row or two of the timer, and nothing of memory."""
    for query in (
        look.LOOK[0](queues=["default"], cron=True, group=None),
        stage.DUE(),
        stage.DELIVER(),
        stage.STAGE_NEXT(),
    ):
        plan = plan_of(asleep, query)
        assert rows_read(plan, "timer") <= 8, query.statement.name
        assert rows_read(plan, "memory_") == 0, query.statement.name


@pytest.mark.parametrize("late", [False, True])
def test_signals_and_their_jobs(asleep: Database, *, late: bool) -> None:
    """Comparing reads the jobs that were signalled, also by a transaction that has ended late."""
    db = asleep
    raw = db.bare()
    for job in some(db):
        raw.execute("SELECT rota.signal(%s, 'go')", [job])
    if late:
        db.own.run(db.store.memory.signal(some(db)[0], "other", "1", None))
        db.own.run(db.store.stage(10))
    raw.commit()
    plan = plan_of(db, stage.DELIVER())
    assert plan["Actual Rows"] == 1
    assert rows_read(plan, "timer") <= 4 * FEW
    assert rows_read(plan, "memory_") <= 12 * FEW
    assert db.own.run(db.store.stage(100)).staged == FEW


def test_all_at_once(asleep: Database) -> None:
    """Where all that sleep are compared, as after a restore, each is looked up by itself."""
    asleep.sql("UPDATE rota.signal_mark SET snapshot = '3:3:'")
    plan = plan_of(asleep, stage.DELIVER())
    assert rows_read(plan, "timer") <= 2 * SLEEPING
    assert rows_read(plan, "memory_") <= 6 * SLEEPING


def test_loading(asleep: Database) -> None:
    """A handler reads what its own job remembers."""
    plan = plan_of(asleep, remembered.MEMORY(jobs=some(asleep)), Begin.SNAPSHOT)
    assert plan["Actual Rows"] == 2 * FEW
    assert rows_read(plan, "memory_") <= 3 * FEW


def test_appending(asleep: Database) -> None:
    """A step and the end of a wait read their lease and the rows of their job."""
    holder = held(asleep)
    for query in (
        remembered.REMEMBER(**holder, name="charge", value="1"),
        remembered.ANSWER(**holder, name="go", signal="go", over=True),
    ):
        plan = plan_of(asleep, query)
        assert plan["Actual Rows"] == 1
        assert rows_read(plan, "lease") <= 2
        assert rows_read(plan, "memory_") <= 4


def test_a_long_conversation(asleep: Database) -> None:
    """Each wait and each load read a job's memory once, however many signals were taken before."""
    db = asleep
    holder = held(db)
    job = holder["job"]
    db.sql(CONVERSATION, job, LONG)
    for query, most in (
        (remembered.MEMORY(jobs=[job]), 1),
        (remembered.ANSWER(**holder, name="go#9", signal="go", over=True), 2),
    ):
        plan = plan_of(db, query)
        assert rows_read(plan, "memory_") <= most * 3 * LONG, query.statement.name
    [sleeper] = some(db)[:1]
    db.sql(CONVERSATION, sleeper, LONG)
    db.own.run(db.store.memory.signal(sleeper, "go", "1", None))
    plan = plan_of(db, stage.DELIVER())
    assert rows_read(plan, "memory_") <= 3 * 3 * LONG
    assert db.own.run(db.store.stage(100)).staged == 1


def test_a_signal(asleep: Database) -> None:
    """Its job is found by its id, wherever it is."""
    runs = held(asleep)["job"]
    [waits] = asleep.enqueue(1)
    for job in (some(asleep)[0], runs, waits, 1, 987_654_321):
        for statement in (remembered.SIGNAL_ASLEEP, remembered.SIGNAL):
            plan = plan_of(asleep, statement(job=job, name="go", value="1", told=None))
            for table in ("timer", "log_", "finished_", "lease", "cursor_"):
                assert rows_read(plan, table) <= 4, (statement.name, table)


def test_falling_asleep(asleep: Database) -> None:
    """What a job sleeps for is written by its own entry in the timer."""
    job = some(asleep)[0]
    pauses = (Pause(Kind.WAIT, "go", FOR_EVER, "go"),)
    settled = Settlement(job, LeaseId(1), Move.SNOOZE, pauses=pauses)
    plan = plan_of(asleep, settle_write._pauses([settled]))
    assert rows_read(plan, "timer") <= 2
    assert rows_read(plan, "memory_") == 0


def test_the_ring(asleep: Database) -> None:
    """Copying reads the table that is left, with few probes per row, even in long conversations."""
    db = asleep
    db.sql(CONVERSATION, held(db)["job"], LONG)
    db.sql(rings.MEMORY_TURN.text)
    raw = db.bare(autocommit=True)
    begin(raw, Begin.HASTY)
    plan = explained(raw, rings.MEMORY_COPY_FORWARD())
    assert rows_read(plan, "memory_") <= 2 * (2 * SLEEPING + 3 * LONG)
    assert rows_read(plan, "timer") <= 2 * 2 * SLEEPING
    assert rows_read(plan, "log_") <= 3 * LONG
    assert plan["Actual Rows"] == 1
