"""What the pages of the dashboard read in tables with many jobs: a bounded number of rows."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from rota import Rota, Unique
from rota.dashboard import listing
from rota.dashboard.access import Access
from rota.dashboard.core import Core
from rota.dashboard.message import Request
from rota.dashboard.pages import ROUTES, discarded
from rota.model.flow import Condition, Edge, FlowOrder, NodeOrder
from rota.model.job import JobFilter, JobId, JobSpec, Keys, Order
from rota.model.limit import Limit
from rota.model.states import State
from rota.store import standing as standings
from rota.store.operation import Apart, Begin, Operation, Query, Stepped, Steps
from tests.fixtures.postgres import created
from tests.store.postgres.database import Database, begin, explained
from tests.store.postgres.test_plans import rows_read, scans

T = TypeVar("T")

ROWS = 20_000
MOST, SIZE = 100, 20
LONG = ("finished_", "log_", "timer", "unique_key")
"""The tables that are long."""

FINISHED = """
    INSERT INTO rota.finished (id, enqueued_at, keep_until, segment, priority, entry, attempt, max_attempts, state,
                               queue, task, args)
    SELECT nextval('rota.job_id'), now(), CASE WHEN i %% 50 = 0 THEN 'infinity' ELSE now() + interval '9 days' END,
           CASE WHEN i %% 50 = 0 THEN -1 ELSE i %% 3 END, 0, 0, 1, 5,
           CASE WHEN i %% 50 = 0 THEN 'discarded' ELSE 'completed' END, 'default', 'shop.send', '{}'
    FROM generate_series(1, %s) AS i
"""


@pytest.fixture(scope="module", params=["large", "analysed"])
def many(
    request: pytest.FixtureRequest, pytestconfig: pytest.Config, migrated_postgres: str
) -> Iterator[Database]:
    """A database with many jobs in each state, with statistics and without; tests only read."""
    with created(pytestconfig, migrated_postgres) as (_, url), Database(url) as db:
        db.enqueue(ROWS // 4, delay=86_400.0)
        db.sql(FINISHED, ROWS)
        keys = Keys(unique=[f"order:{n}" for n in range(ROWS // 4)])
        order = Order(
            JobSpec("shop.pay", unique=Unique(key="order:{n}")), ["{}"] * (ROWS // 4), keys
        )
        db.own.run(db.store.enqueue(order))
        limited = Keys(limit=[f"tenant:{n % 50}" for n in range(200)])
        spec = JobSpec("shop.pay", "limited", limit=Limit(key="tenant:{n}", running=1))
        db.own.run(db.store.enqueue(Order(spec, ["{}"] * 200, limited)))
        wide = NodeOrder("wide", Order(JobSpec("shop.send", "wide"), ["{}"] * 200), many=True)
        last = NodeOrder(
            "last", Order(JobSpec("shop.send"), ["{}"]), (Edge(0, Condition.COMPLETED),)
        )
        for _ in range(20):
            db.own.run(db.store.flows.create(FlowOrder("import", [wide, last], 0.0)))
        db.enqueue(ROWS // 2)
        db.claim(db.session(), 40)
        # A mark that was just made would be left as it is.
        db.sql("UPDATE rota.tally_mark SET at = at - interval '1 minute'")
        db.own.run(db.store.squeeze())
        if request.param == "analysed":
            db.sql("ANALYZE")
        yield db


def asked(db: Database, operation: Operation[T]) -> tuple[list[Query], T]:
    """The statements of an operation that runs, and what it gives."""
    queries: list[Query] = []

    def watched(steps: Steps[T]) -> Steps[T]:
        rows: Any = None
        while True:
            try:
                request = steps.send(rows)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(request, Apart):
                within, answer = asked(db, request.operation)
                queries.extend(within)
                rows = [(answer,)]
                continue
            assert isinstance(request, Query)
            queries.append(request)
            rows = yield request

    result = db.own.run(Stepped("watched", watched(operation.steps), operation.begin))
    return queries, result


def read(db: Database, query: Query) -> float:
    """How many rows of the long tables a statement reads, by their indexes."""
    raw = db.bare(autocommit=True)
    begin(raw, Begin.SNAPSHOT)
    plan = explained(raw, query)
    for table in LONG:
        for node in scans(plan, table):
            # A sample reads some blocks of a table, however large that is.
            by_part = "Index" in node["Node Type"] or node["Node Type"] == "Sample Scan"
            assert by_part or not node["Actual Loops"], node
    return sum(rows_read(plan, table) for table in LONG)


@pytest.mark.parametrize("task", [None, "none"])
@pytest.mark.parametrize("state", [None, *State])
def test_a_page_of_jobs(many: Database, state: State | None, task: str | None) -> None:
    """Each statement reads as many rows of a kind as a page may, from the top and the middle."""
    for after in (None, JobId(ROWS // 2)):
        wanted = JobFilter(state=state, task=task, after=after, limit=SIZE)
        queries, (until, since, _) = asked(many, many.store.reach(wanted, MOST))
        page = replace(wanted, after=JobId(until + 1), since=since or JobId(1))
        more, _ = asked(many, many.store.list_jobs(page))
        counts, _ = asked(many, many.store.count_listed(replace(page, limit=ROWS)))
        for query in queries + more + counts:
            assert read(many, query) <= 5 * MOST, query.statement.name


def test_no_further_than_what_is_shown(many: Database) -> None:
    """The last lookup goes above the oldest job that the page has by then, and no further."""
    newest = many.one("SELECT max(id) FROM rota.finished")
    wanted = JobFilter(after=JobId(newest + 1), since=JobId(1), limit=SIZE)
    queries, page = asked(many, many.store.list_jobs(wanted))
    assert len(page) == SIZE
    assert queries[-1].params["first_id"] == page[-1].id


def test_rows_of_other_queues(many: Database) -> None:
    """They are told by their lanes, without a look at where each of them has come to."""
    wanted = JobFilter(state=State.AVAILABLE, queue="limited", since=JobId(1), limit=1_000)
    queries, page = asked(many, many.store.list_jobs(wanted))
    assert len(page) == 200
    raw = many.bare(autocommit=True)
    begin(raw, Begin.SNAPSHOT)
    looks = sum(node["Actual Loops"] for node in scans(explained(raw, queries[-1]), "cursor_"))
    assert looks <= 2 * 300


def test_where_a_job_stands(many: Database) -> None:
    """Of the jobs before it so many are read as are counted."""
    last = many.one("SELECT max(id) FROM rota.log")
    for job in (last, 1):
        queries, standing = asked(many, many.store.standing(JobId(job)))
        assert standing is not None
        assert standing.ahead == (standings.MOST if job == last else 0)
        for query in queries:
            assert read(many, query) <= standings.MOST + 20


PAGES = [
    ("/", {}),
    ("/queues", {}),
    ("/queue", {"name": "default"}),
    ("/jobs", {}),
    *(("/jobs", {"state": state.value}) for state in State),
    ("/jobs", {"queue": "limited"}),
    ("/jobs", {"task": "none"}),
    ("/jobs", {"before": str(ROWS // 2)}),
    ("/jobs", {"arg": "number=-1"}),
    ("/jobs", {"subject": "order:7"}),
    ("/jobs", {"subject": "order:77*"}),
    ("/jobs", {"subject": "order:*"}),
    ("/jobs", {"subject": "order:*", "state": "available"}),
    *((f"/jobs/{job}", {}) for job in (1, ROWS, 3 * ROWS // 2)),
    ("/flows", {}),
    ("/flows", {"state": "running"}),
    ("/flows", {"name": "import", "state": "failed"}),
    ("/flows/1", {}),
    ("/discarded", {}),
    ("/cron", {}),
    ("/limits", {}),
    ("/workers", {}),
    ("/doctor", {}),
    ("/history", {"queue": "default", "span": "week"}),
    ("/audit", {}),
]


def test_no_page_reads_a_table(many: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """All pages read long tables by their indexes, and no more of them than listings may look at."""
    monkeypatch.setattr(listing, "BOUND", 10 * MOST)
    monkeypatch.setattr(discarded, "LOOKED_AT", 10 * MOST)
    routes = {route.path for route in ROUTES if route.method == "GET"}
    assert routes - {"/static/{name}"} == {
        f"/{path.split('/')[1]}/{{id}}" if path.count("/") == 2 else path for path, _ in PAGES
    }
    with Rota(many.url) as app:
        core = Core(app, every=3600.0)
        queries: list[Query] = []

        def run(operation: Operation[T], conn: object = None) -> T:
            assert conn is None
            more, answer = asked(many, operation)
            queries.extend(more)
            return answer

        monkeypatch.setattr(app.database, "run", run)
        for path, query in PAGES:
            queries.clear()
            answer = core.answer(Request("GET", path, Access.all(), query))
            assert answer.status == 200, (path, query)
            # The doctor looks at the ends of all lanes.
            most = 25_000 if path == "/doctor" else 50 * MOST
            assert {name for name, rows in reads(many, queries).items() if rows > most} == set(), (
                path,
                query,
            )


def reads(db: Database, queries: Iterable[Query]) -> dict[str, float]:
    """How many rows of the long tables each statement reads."""
    return {query.statement.name: read(db, query) for query in list(queries)}
