"""How PostgreSQL executes the hot statements, whatever its statistics say.

With few distinct transaction ids the planner believes that one row is left past the cursor and
sorts the whole backlog. The settings of Rota's transactions must keep it from that, with generic
plans, on tables that are empty, large, analysed or not.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from rota import Unique
from rota.model.job import JobSpec, Keys, Order
from rota.model.states import Move
from rota.store.operation import Begin
from rota.store.postgres import claim, control, counters, look, settle_write
from rota.store.postgres import jobs as lookup
from rota.store.postgres import stage as timer
from tests.fixtures.large import LARGE
from tests.fixtures.postgres import created
from tests.store.factories import settlement
from tests.store.postgres.database import Database, begin, explained, ids

ROWS = 200_000 if LARGE else 50_000
LIMIT = 10
BY_INDEX = ("log_", "cursor_", "timer", "tally_")
"""What the names of the tables begin with that must be read by their indexes."""

TURN = "_turn"
"""And what the names of the sequences end with, which are single rows."""

Node = dict[str, Any]

TABLES = ["empty", "large", "analysed"]


def nodes(plan: Node) -> Iterator[Node]:
    """All nodes of a plan."""
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def times(node: Node, key: str) -> float:
    """A figure that a node gives per loop, altogether."""
    return float(node.get(key, 0)) * float(node.get("Actual Loops", 0))


def scans(plan: Node, table: str) -> list[Node]:
    """The nodes that read a table or its partitions."""
    return [
        node
        for node in nodes(plan)
        if node.get("Relation Name", "").startswith(table)
        and not node["Relation Name"].endswith(TURN)
        and "Scan" in node["Node Type"]
    ]


def rows_read(plan: Node, table: str) -> float:
    """How many rows the scans of a table looked at."""
    return sum(
        times(node, "Actual Rows")
        + times(node, "Rows Removed by Filter")
        + times(node, "Rows Removed by Index Recheck")
        for node in scans(plan, table)
    )


def unbounded(plan: Node) -> Iterator[str]:
    """The tables that flow into a node without a limit on their way."""
    for child in plan.get("Plans", ()):
        if child["Node Type"] == "Limit" or child["Parent Relationship"] in {"InitPlan", "SubPlan"}:
            continue
        if "Scan" in child["Node Type"] and "Relation Name" in child:
            yield child["Relation Name"]
        yield from unbounded(child)


def check_scans(plan: Node) -> None:
    """Indexes only, and no joins that read a table from end to end."""
    for table in BY_INDEX:
        for node in scans(plan, table):
            assert node["Node Type"] in {"Index Scan", "Index Only Scan", "Tid Scan"}, node
    for node in nodes(plan):
        assert node["Node Type"] not in {"Hash Join", "Merge Join", "Bitmap Heap Scan"}


def check(plan: Node, most: int) -> None:
    """Indexes only, in their order, and no sort of more than so many rows."""
    check_scans(plan)
    for node in nodes(plan):
        if "Sort" in node["Node Type"]:
            assert times(node, "Actual Rows") <= most, node
            assert not any(name.startswith(BY_INDEX) for name in unbounded(node)), node


@pytest.fixture(scope="module", params=TABLES)
def template(
    request: pytest.FixtureRequest, pytestconfig: pytest.Config, migrated_postgres: str
) -> Iterator[str]:
    """A database without jobs; with many of few transactions; and with statistics about them."""
    with created(pytestconfig, migrated_postgres) as (name, url):
        with Database(url) as db:
            fill(db, request.param)
        yield name


@pytest.fixture
def filled(template: str, pytestconfig: pytest.Config) -> Iterator[Database]:
    """A copy of it."""
    with created(pytestconfig, template) as (_, url), Database(url) as db:
        yield db


def fill(db: Database, tables: str) -> None:
    """Make the jobs of one of `TABLES`."""
    db.enqueue(1)
    db.settle(db.session(), db.claim(db.session()))
    if tables != "empty":
        for _ in range(5):
            db.enqueue(ROWS // 5)
        db.enqueue(ROWS // 10, delay=86_400.0)
        db.enqueue(100, delay=0.0)
        db.enqueue(500, priority=7)
    if tables == "analysed":
        db.sql("ANALYZE")
    else:
        analysed = (
            "SELECT count(*) FROM pg_stats WHERE schemaname = 'rota' AND tablename LIKE 'log%%'"
        )
        assert db.one(analysed) == 0


@pytest.mark.parametrize("middle", [False, True])
def test_the_claim(filled: Database, *, middle: bool) -> None:
    """A claim reads about as many rows of the log as it takes, wherever its cursor stands."""
    db = filled
    session = db.session()
    if middle:
        db.claim(session, 30_000)
    available = sum(part.ready for part in db.own.run(claim.probe(["default"])))
    lane = db.one("SELECT id FROM rota.lane WHERE priority = 0")
    raw = db.bare(autocommit=True)
    begin(raw, Begin.HASTY)
    raw.execute(claim.CLAIM_LOCK.text, {"lane": lane, "session": session})
    plan = explained(raw, claim.CLAIM(lane=lane, session=session, size=LIMIT))
    check(plan, most=LIMIT)
    assert rows_read(plan, "log_") <= 2 * LIMIT + 8
    assert rows_read(plan, "cursor_") <= 8
    assert plan["Actual Rows"] == (LIMIT if available else 0)


@pytest.mark.parametrize("analysed", [False, True])
def test_the_claim_of_unique_jobs(db: Database, *, analysed: bool) -> None:
    """A claim, and a staging, read the keys of the jobs that they take, and no others."""
    spec = JobSpec(task="shop.send", unique=Unique(on_conflict="replace"))
    keys = [f"{number:06}" for number in range(ROWS // 10)]
    for delay in (None, 0.0001, None):
        some = replace(spec, delay=delay)
        db.own.run(db.store.enqueue(Order(some, ["{}"] * len(keys), Keys(unique=keys))))
        keys = [f"{number:06}" for number in range(5000)] if delay is None else keys
    if analysed:
        db.sql("ANALYZE")
    session = db.session()
    lane = db.one("SELECT id FROM rota.lane WHERE priority = 0")
    raw = db.bare(autocommit=True)
    begin(raw, Begin.HASTY)
    raw.execute(claim.CLAIM_LOCK.text, {"lane": lane, "session": session})
    plan = explained(raw, claim.CLAIM_KEYED(lane=lane, session=session, size=LIMIT))
    check(plan, most=2 * LIMIT)
    assert rows_read(plan, "log_") <= 3 * LIMIT + 8
    assert rows_read(plan, "unique_key") <= 6 * LIMIT
    raw.execute("ROLLBACK")
    db.own.run(db.store.stage(50))
    begin(raw, Begin.HASTY)
    plan = explained(raw, timer.STAGE(size=LIMIT))
    check_scans(plan)
    assert rows_read(plan, "unique_key") <= 6 * LIMIT


def test_the_claim_of_a_hole(filled: Database) -> None:
    """Rows of late transactions are found by their transaction, not by walking the lane."""
    db = filled
    session = db.session()
    late = [db.bare() for _ in range(3)]
    jobs = [job for caller in late for job in db.enqueue(500, conn=caller)]
    db.enqueue(10)
    while db.claim(session, 70_000):
        pass
    for caller in late:
        caller.commit()
    lane = db.one("SELECT id FROM rota.lane WHERE priority = 0")
    raw = db.bare(autocommit=True)
    begin(raw, Begin.HASTY)
    raw.execute(claim.CLAIM_LOCK.text, {"lane": lane, "session": session})
    plan = explained(raw, claim.CLAIM(lane=lane, session=session, size=LIMIT))
    check(plan, most=4 * LIMIT)
    assert rows_read(plan, "log_") <= 4 * LIMIT
    raw.execute("ROLLBACK")
    assert ids(db.claim(session, LIMIT)) == jobs[:LIMIT]


def test_the_probe(filled: Database) -> None:
    """A look at the lanes reads a row or two of each."""
    raw = filled.bare(autocommit=True)
    begin(raw, Begin.HASTY)
    plan = explained(raw, claim.CLAIM_PROBE(queues=["default"], tasks=["shop.send"]))
    check(plan, most=10)
    assert rows_read(plan, "log_") <= 8
    assert rows_read(plan, "cursor_") <= 8


def test_the_look(filled: Database) -> None:
    """What an idle worker asks every second reads a row or two of each table."""
    filled.own.run(filled.store.stage(5000))
    raw = filled.bare(autocommit=True)
    begin(raw, Begin.HASTY)
    for query in (
        *(light(queues=["default"], cron=True, group=None) for light in look.LOOK),
        look.AVAILABLE(queues=["default"], tasks=["shop.send"]),
    ):
        plan = explained(raw, query)
        check(plan, most=10)
        assert rows_read(plan, "log_") <= 8
        assert rows_read(plan, "cursor_") <= 8
        assert rows_read(plan, "timer") <= 8


def test_a_page_of_available_jobs(filled: Database) -> None:
    """It begins where the page before ended, and reads as many jobs as it lists."""
    middle = filled.one("SELECT (min(id) + max(id)) / 2 FROM rota.log")
    raw = filled.bare(autocommit=True)
    begin(raw, Begin.SNAPSHOT)
    page = lookup.LIST_AVAILABLE_FROM(
        queue=None,
        task=None,
        path=None,
        value=None,
        size=LIMIT,
        first_id=1,
        until=middle,
        brief=False,
        first=None,
        last=None,
    )
    plan = explained(raw, page)
    assert len(scans(plan, "log_")) >= 4
    assert rows_read(plan, "log_") <= 2 * LIMIT


@pytest.mark.parametrize("size", [LIMIT, 5000])
def test_staging(filled: Database, size: int) -> None:
    """Staging looks at due jobs alone, though many others wait behind them."""
    db = filled
    # The first staging has yet to note down what was there before it.
    db.own.run(db.store.stage(50))
    due = db.one("SELECT count(*) FROM rota.timer WHERE run_at <= now()")
    raw = db.bare(autocommit=True)
    begin(raw, Begin.HASTY)
    plan = explained(raw, timer.STAGE(size=size))
    check(plan, most=size)
    assert rows_read(plan, "timer") <= 4 * min(size, due) + 20
    raw.execute("ROLLBACK")
    begin(raw, Begin.HASTY)
    assert rows_read(explained(raw, timer.STAGE_NEXT()), "timer") <= 4


def test_settling(filled: Database) -> None:
    """Completed jobs are looked up by their ids, one row each, in ranges or alone."""
    db = filled
    db.enqueue(LIMIT)
    session = db.session()
    claimed = db.claim(session, LIMIT)
    raw = db.bare(autocommit=True)
    jobs = [job.id for job in claimed]
    for firsts, lasts in (jobs[:1], jobs[-1:]), (jobs, jobs):
        begin(raw, Begin.DURABLE)
        complete = settle_write.SETTLE_COMPLETE(
            firsts=settle_write.array(firsts), lasts=settle_write.array(lasts), keep=60.0
        )
        plan = explained(raw, complete)
        check(plan, most=LIMIT)
        assert rows_read(plan, "log_") <= 2 * LIMIT
        raw.execute("ROLLBACK")


def test_a_retry_by_hand(filled: Database) -> None:
    """Finished jobs are looked up by their ids, and tables of flows are read for jobs of flows alone."""
    db = filled
    db.enqueue(1000)
    session = db.session()
    claimed = db.claim(session, 1000)
    moved = [settlement(job, Move.DISCARD) for job in claimed]
    assert db.own.run(db.store.settle(session, moved)) == []
    params = {"jobs": [job.id for job in claimed[:LIMIT]], "only": None, "touched": [], "kept": []}
    raw = db.bare(autocommit=True)
    for statement in (control.TOUCH(jobs=params["jobs"]), control.RETRY_FINISHED(**params)):
        begin(raw, Begin.DURABLE)
        plan = explained(raw, statement)
        raw.execute("ROLLBACK")
        assert rows_read(plan, "finished_") <= 3 * LIMIT
        assert rows_read(plan, "flow_") == 0
        assert all("Index" in node["Node Type"] for node in scans(plan, "finished_discarded"))


def test_counting(filled: Database) -> None:
    """Squeezing and asking read what came since the newest mark, and one entry per lane."""
    db = filled
    db.sql("UPDATE rota.tally_mark SET at = at - interval '1 hour'")
    assert db.own.run(db.store.squeeze())
    session = db.session()
    claimed = db.claim(session, LIMIT)
    db.enqueue(LIMIT)
    db.enqueue(LIMIT, delay=600.0)
    late = db.bare()
    late.execute("SELECT pg_current_xact_id()")
    raw = db.bare(autocommit=True)
    for statement in (lookup.QUEUES(), counters.SQUEEZE(age=0.0)):
        begin(raw, Begin.HASTY)
        plan = explained(raw, statement)
        raw.execute("ROLLBACK")
        # Totals may be sorted: there are few of them.
        check_scans(plan)
        assert rows_read(plan, "log_") == LIMIT
        assert rows_read(plan, "cursor_") <= 4
        assert rows_read(plan, "tally_") <= 16
        assert rows_read(plan, "lease") <= 4
    db.settle(session, claimed)


def test_without_the_settings_the_backlog_is_sorted(db: Database) -> None:
    """The mutant: the claim as the planner would like it, so that the checks above have meaning."""
    db.enqueue(ROWS // 2)
    db.sql("ANALYZE")
    session = db.session()
    lane = db.one("SELECT id FROM rota.lane")
    raw = db.bare(autocommit=True)
    raw.execute("BEGIN")
    raw.execute("SET LOCAL enable_indexscan = off")
    raw.execute("SET LOCAL enable_indexonlyscan = off")
    raw.execute(claim.CLAIM_LOCK.text, {"lane": lane, "session": session})
    plan = explained(raw, claim.CLAIM(lane=lane, session=session, size=LIMIT))
    with pytest.raises(AssertionError):
        check(plan, most=LIMIT)
    assert rows_read(plan, "log_") > 10_000


def test_a_statement_is_planned_once(db: Database) -> None:
    """A worker's connection prepares it when it comes for the first time: most come rarely."""
    with closing(db.store.connect("upkeep")) as connection:
        connection.run(db.store.due())
        prepared = connection.raw().execute("SELECT statement FROM pg_prepared_statements")
        assert [text for (text,) in prepared if "timer_mark" in text]
