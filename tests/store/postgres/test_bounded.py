"""What the pages of the dashboard read in tables with many jobs: a bounded number of rows."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from rota.model.job import JobFilter, JobId
from rota.model.states import State
from rota.store import standing as standings
from rota.store.operation import Begin, Operation, Query, Stepped, Steps
from tests.fixtures.postgres import created
from tests.store.postgres.database import Database, begin, explained
from tests.store.postgres.test_plans import rows_read, scans

T = TypeVar("T")

ROWS = 20_000
MOST, SIZE = 100, 20
LONG = ("finished", "log_", "timer")
"""The tables that are long."""

FINISHED = """
    INSERT INTO rota.finished (id, enqueued_at, keep_until, segment, priority, entry, attempt, max_attempts, state,
                               queue, task, args)
    SELECT nextval('rota.job_id'), now(), 'infinity', CASE WHEN i %% 50 = 0 THEN -1 ELSE i %% 3 END, 0, 0, 1, 5,
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
        db.enqueue(ROWS // 2)
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
            assert "Index" in node["Node Type"] or not node["Actual Loops"], node
    return sum(rows_read(plan, table) for table in LONG)


@pytest.mark.parametrize("task", [None, "none"])
@pytest.mark.parametrize("state", [None, *State])
def test_a_page_of_jobs(many: Database, state: State | None, task: str | None) -> None:
    """Each statement reads as many rows of each kind as a page may look at, from the top and from the middle."""
    for after in (None, JobId(ROWS // 2)):
        wanted = JobFilter(state=state, task=task, after=after, limit=SIZE)
        queries, (until, since) = asked(many, many.store.reach(wanted, MOST))
        page = replace(wanted, after=JobId(until + 1), since=since or JobId(1))
        more, _ = asked(many, many.store.list_jobs(page))
        counts, _ = asked(many, many.store.count_listed(replace(page, limit=ROWS)))
        for query in queries + more + counts:
            assert read(many, query) <= 5 * MOST, query.statement.name


def test_where_a_job_stands(many: Database) -> None:
    """Of the jobs before it so many are read as are counted."""
    last = many.one("SELECT max(id) FROM rota.log")
    for job in (last, 1):
        queries, standing = asked(many, many.store.standing(JobId(job)))
        assert standing is not None
        assert standing.ahead == (standings.MOST if job == last else 0)
        for query in queries:
            assert read(many, query) <= standings.MOST + 20
