"""Building flows: what cannot be one is refused when it is said, and leaves nothing behind."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rota import (
    ArgsError,
    BatchContext,
    ConfigError,
    Context,
    Discard,
    EnqueueCall,
    FlowNotFound,
    JobExists,
    JobNotFinished,
    Results,
    Rota,
    State,
    Unique,
    WorkerConfig,
)
from rota.events import JobsEnqueued
from rota.model.flow import FlowState
from rota.worker import Worker


class Row(msgspec.Struct):
    """A result."""

    number: int


@pytest.fixture
def app(tmp_path: Any) -> Iterator[Rota]:
    """An app on a file with some tasks."""
    with Rota(f"sqlite:///{tmp_path}/rota.db") as app:

        @app.task(name="row")
        def row(number: int) -> Row:
            return Row(number)

        @app.task(name="rows")
        def rows(rows: list[Row]) -> int:
            return len(rows)

        @app.task(name="pages")
        def pages(rows: Results[Row]) -> None: ...

        @app.task(name="one")
        def one(row: Row) -> str:
            return str(row.number)

        @app.task(name="text")
        def text(text: str) -> None: ...

        @app.task(name="far", executor="process")
        def far(rows: Results[Row]) -> None: ...

        @app.task(name="many", batch=10)
        def many(ctx: BatchContext, numbers: list[int]) -> None: ...

        yield app


def add(app: Rota, f: Any, task: str, /, *args: Any, **named: Any) -> Any:
    return f.add(app.tasks[task], *args, **named)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda app, f: add(app, f, "row"), "`number` is missing"),
        (lambda app, f: add(app, f, "row", "x"), "number"),
        (lambda app, f: add(app, f, "text", add(app, f, "one", Row(1)).result, more=1), "`more`"),
        (lambda app, f: add(app, f, "text", add(app, f, "row", 1).result), "Row is not str"),
        (lambda app, f: add(app, f, "one", f.map(app.tasks["row"], [1]).results), "are a list"),
        (lambda app, f: add(app, f, "rows", f.map(app.tasks["one"], []).results), "str is not Row"),
        (lambda app, f: add(app, f, "rows", add(app, f, "row", 1).result), "Row is not list"),
        (lambda app, f: f.map(app.tasks["row"], [1]).result, "it has .results"),
        (lambda app, f: add(app, f, "pages", add(app, f, "row", 1).result), "only maps have"),
        (lambda app, f: add(app, f, "far", f.map(app.tasks["row"], [1]).results), "take a list"),
        (lambda app, f: add(app, f, "many", add(app, f, "rows", []).result), "batch task"),
        (
            lambda app, f: add(
                app, f, "one", (node := add(app, f, "row", 1)).result, after=[node], on="failed"
            ),
            "exists only if that has completed",
        ),
        (lambda app, f: add(app, f, "row", 1, on="never"), "'completed', 'finished' or 'failed'"),
        (lambda app, f: add(app, f, "row", 1, after=["row"]), "must be nodes of this flow"),
        (lambda app, f: add(app, f, "row", 1, name="a/b"), "must be without"),
        (lambda app, f: [add(app, f, "row", n, name="x") for n in (1, 2)], "a node 'x' already"),
        (lambda _, f: f.add("row"), "a task is needed"),
        (lambda app, f: f.map(app.tasks["row"], [1, "x"]), "job 1"),
        (lambda _, f: f.handle, "not stored yet"),
        (lambda *_: None, "has no nodes"),
    ],
)
def test_what_cannot_be_a_flow(app: Rota, build: Any, message: str) -> None:
    """A clear error, and nothing is stored."""
    with pytest.raises((ConfigError, ArgsError), match=message), app.flow("bad") as f:
        build(app, f)
    assert app.flows.list() == []
    assert app.jobs.list() == []


def test_nodes_of_other_flows(app: Rota) -> None:
    """They cannot be waited for, and their results are not given."""
    row, one = app.tasks["row"], app.tasks["one"]
    with app.flow("first") as f:
        node = f.add(row, 1)
    with pytest.raises(ConfigError, match="a node of another flow"), app.flow("second") as g:
        g.add(row, 1, after=node)
    with pytest.raises(ConfigError, match="a node of another flow"), app.flow("second") as g:
        g.add(one, node.result)
    with pytest.raises(ConfigError, match="the flow is stored already"):
        f.add(row, 1)
    with Rota("sqlite:///nobody-opens-this.db") as other:
        foreign = other.task(name="row")(lambda: None)
        with pytest.raises(ConfigError, match="another app"), app.flow("second") as g:
            g.add(foreign)


def test_an_exception_in_the_block(app: Rota) -> None:
    """It goes on to the caller, and nothing is stored."""
    with pytest.raises(ZeroDivisionError), app.flow("order") as f:
        f.add(app.tasks["row"], 1 // 0)
    assert app.flows.list() == []


def test_names(app: Rota) -> None:
    """Names of tasks, numbered where they repeat; in groups, the groups' names come before them."""
    row = app.tasks["row"]
    with app.flow("names") as f:
        f.add(row, 1)
        f.add(row, 2)
        group = f.flow("resize")
        group.add(row, 3)
        group.flow("small").map(row, [4])
        f.add(row, 5, after=group, name="last")
    names = ["row", "row#2", "resize/row", "resize/small/row", "last"]
    graph = f.handle.graph()
    assert [node.name for node in graph.nodes] == names
    assert [(edge.node, edge.after) for edge in graph.edges] == [
        (graph.nodes[4].id, graph.nodes[2].id),
        (graph.nodes[4].id, graph.nodes[3].id),
    ]
    assert f.handle.job("last").status is State.SCHEDULED
    with pytest.raises(ConfigError, match="no node 'first'"):
        f.handle.job("first")
    with pytest.raises(ConfigError, match=r"\.job\(\) is for"):
        f.handle.job("resize/small/row")


def test_a_flow_in_the_callers_transaction(app: Rota) -> None:
    """It is there with the commit, and not after a rollback."""
    f = app.flow("order")

    def build(tx: Any) -> None:
        nonlocal f
        with app.flow("order", conn=tx) as f:
            f.add(app.tasks["row"], 1)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), app.transaction() as tx:
        build(tx)
    with pytest.raises(FlowNotFound):
        _ = f.handle.state
    with app.transaction() as tx, app.flow("order", conn=tx) as f:
        f.add(app.tasks["row"], 1)
    assert f.handle.state is FlowState.RUNNING
    with pytest.raises(JobNotFinished):
        f.handle.wait(0)


def test_unique_jobs(app: Rota) -> None:
    """A key that is taken counts as cancelled, or refuses the flow."""
    row = app.tasks["row"]
    skip = row.using(unique=Unique(key="row:{number}", on_conflict="skip"))
    refuse = row.using(unique=Unique(key="row:{number}", on_conflict="raise"))
    taken = skip.enqueue(1)
    with app.flow("skips") as f:
        f.add(row, 3, after=[f.map(skip, [1, 2])], on="finished")
    [node, _] = f.handle.nodes()
    assert (node.expects, node.cancelled) == (2, 1)
    refused = app.flow("refused")
    refused.add(row, 7)
    refused.add(refuse, 1)
    with pytest.raises(JobExists), refused:
        pass
    assert [flow.name for flow in app.flows.list()] == ["skips"]
    assert taken.status is State.AVAILABLE


def test_unique_jobs_that_replace(app: Rota) -> None:
    """The job that waits is the flow's from now on, and is no new one to subscribers."""
    row = app.tasks["row"]
    replace = row.using(unique=Unique(key="row:{number}", on_conflict="replace"), delay=60)
    new: list[int] = []

    @app.on(JobsEnqueued)
    def note(event: JobsEnqueued) -> None:
        new.extend(event.jobs)

    there = replace.enqueue(1)
    with app.flow("x") as f:
        f.map(replace, [1, 2], name="rows")
    [node] = f.handle.nodes()
    assert (node.expects, node.cancelled, node.first_job) == (2, 0, there.id)
    assert new == [there.id, node.last_job]
    assert app.flows.memberships([there.record()])[there.id].node == "rows"


def test_a_flow_does_not_replace_its_own_jobs(app: Rota) -> None:
    """Two nodes of one key are refused; in one map the last job of a key counts, as of enqueues."""
    row = app.tasks["row"]
    skip = row.using(unique=Unique(key="row:{number}"))
    replace = row.using(unique=Unique(key="row:{number}", on_conflict="replace"))
    with pytest.raises(ConfigError, match="'row#2' would replace the job of 'row'"):
        _add_both(app, skip, replace)
    assert app.flows.list() == []
    with app.flow("x") as f:
        f.add(replace, 1)
        f.add(skip, 1)
        f.map(replace, [2, 2])
    assert [(node.expects, node.cancelled) for node in f.handle.nodes()] == [(1, 0), (1, 1), (2, 1)]


def _add_both(app: Rota, one: Any, two: Any) -> None:
    with app.flow("x") as f:
        f.add(one, 1)
        f.add(two, 1)


def test_a_refusal_in_the_callers_transaction(app: Rota, tmp_path: Any) -> None:
    """A taken key leaves nothing of the flow, even if it came first; the transaction can go on."""
    row = app.tasks["row"]
    refuse = row.using(unique=Unique(key="row:{number}", on_conflict="raise"))
    refuse.enqueue(1)
    with closing(sqlite3.connect(tmp_path / "rota.db")) as conn:
        for key in (1, 2):
            with suppress(JobExists), app.flow(f"flow {key}", conn=conn) as f:
                f.add(row, 7)
                f.add(refuse, key)
            assert conn.in_transaction
            assert app.flows.list() == []
            conn.commit()
    assert [flow.name for flow in app.flows.list()] == ["flow 2"]


def test_a_connection_without_a_transaction(app: Rota, tmp_path: Any) -> None:
    """It is refused: a part of a flow could be stored without the rest."""
    with closing(sqlite3.connect(tmp_path / "rota.db", isolation_level=None)) as conn:
        app.admin.migrate()
        with pytest.raises(ConfigError, match="autocommit"), app.flow("x", conn=conn) as f:
            f.add(app.tasks["row"], 1)
        conn.execute("BEGIN")
        with app.flow("x", conn=conn) as f:
            f.add(app.tasks["row"], 1)
        conn.execute("COMMIT")
    assert [flow.id for flow in app.flows.list()] == [f.handle.id]


def test_middleware_sees_what_is_enqueued(app: Rota) -> None:
    """Around an enqueue it may change the jobs of a node; ids are not known yet."""
    seen: list[tuple[str, int]] = []

    @app.around_enqueue
    def note(call: EnqueueCall, call_next: Any) -> Any:
        seen.append((call.task.name, len(call.jobs)))
        return call_next(call.using(headers={"by": "ada"}))

    with app.flow("order") as f:
        f.map(app.tasks["row"], [1, 2])
        f.add(app.tasks["row"], 3)
    assert seen == [("row", 2), ("row", 1)]
    assert f.handle.job("row#2").record().headers["by"] == "ada"


def test_ctx_flow_where_there_is_none(app: Rota) -> None:
    """A direct call belongs to no flow."""

    @app.task(name="alone")
    def alone(ctx: Context) -> None:
        _ = ctx.flow

    with pytest.raises(ConfigError, match="not possible in another process, and in a direct call"):
        alone()


def test_listing(app: Rota) -> None:
    """By name and state, and one found again by its id."""
    with app.flow("order") as f:
        f.add(app.tasks["row"], 1)
    [record] = app.flows.list(name="order", state="running")
    assert app.flows.get(record.id).record() == record
    assert app.flows.list(state="failed") == []
    assert repr(f.handle) == f"<FlowHandle {record.id}>"


def test_a_failed_job_is_left_to_its_flow(tmp_path: Path) -> None:
    """By its id and by filters, until the flow is retried; unless it is to run alone."""
    with Rota(f"sqlite:///{tmp_path}/rota.db") as app:

        @app.task(name="break")
        def broken() -> None:
            raise Discard("no")

        ship = app.task(name="ship")(lambda: None)
        with app.flow("x") as f:
            f.add(ship, after=[f.add(broken)])
        other = broken.enqueue()
        Worker(app, WorkerConfig(drain=True)).run()
        failed, skipped = f.handle.job("break"), f.handle.job("ship")
        assert app.jobs.retry([failed, skipped]) == []
        assert app.jobs.retry(state="cancelled") == []
        assert app.jobs.retry(task="break") == [other.id]
        left = app.flows.left_to_retry(app.jobs.get([failed, skipped, other]))
        assert {job: (member.flow, member.node) for job, member in left.items()} == {
            failed.id: (f.handle.id, "break"),
            skipped.id: (f.handle.id, "ship"),
        }
        assert f.handle.retry() == 1
        assert app.flows.left_to_retry(app.jobs.get([failed, skipped])) == {}
        Worker(app, WorkerConfig(drain=True)).run()
        assert app.jobs.retry(failed, alone=True) == [failed.id]
        found = app.jobs.aretry(task="ship", state="cancelled", alone=True)
        assert asyncio.run(found) == [skipped.id]
