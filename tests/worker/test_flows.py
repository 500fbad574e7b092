"""Flows in real workers: jobs begin when those have ended that they wait for, and get their results."""

import asyncio
from typing import Any

import msgspec
import pytest

from rota import Context, Discard, Results, Rota, State, Worker, WorkerConfig
from rota.model.flow import FlowState, NodeState
from tests.fixtures.workers import working

pytestmark = pytest.mark.both
"""SQLite decides in the transaction of a settlement, PostgreSQL after it."""


class Part(msgspec.Struct, frozen=True):
    """What a job gives to others."""

    number: int
    text: str


def drain(app: Rota) -> None:
    """Run all jobs."""
    Worker(app, WorkerConfig(drain=True, poll=0.2)).run()


def states(app: Rota, flow: int) -> dict[str, NodeState]:
    return {node.name: node.state for node in app.flows.get(flow).nodes()}


def test_results_go_to_what_waits_for_them(app: Rota) -> None:
    """A fan-in gets a map's results in the order of its args, a chain's link the previous one's."""
    said: list[str] = []

    @app.task(name="parse")
    async def parse(number: int) -> Part:
        return Part(number, f"<{number}>")

    @app.task(name="merge", store_result=True)
    def merge(parts: list[Part], sep: str = "") -> str:
        return sep.join(part.text for part in parts)

    @app.task(name="notify")
    async def notify(total: str) -> None:
        said.append(total)

    with app.flow("import") as f:
        parts = f.map(parse, range(20))
        total = f.add(merge, parts.results, sep=",")
        f.add(notify, total.result, after=[parts])
    assert f.handle.job("merge").status is State.SCHEDULED
    drain(app)
    wanted = ",".join(f"<{number}>" for number in range(20))
    assert said == [wanted]
    assert f.handle.job("merge").result(0) == wanted
    assert f.handle.wait(5).state is FlowState.COMPLETED


def test_a_failure_skips_what_needs_success_and_runs_what_waits_for_it(app: Rota) -> None:
    """Payment fails: shipping is skipped, the refund runs, and so does what waits for any end."""
    ran: list[str] = []

    @app.task(name="pay")
    def pay() -> None:
        raise Discard("no cover")

    @app.task(name="log")
    def log(what: str) -> None:
        ran.append(what)

    with app.flow("order") as f:
        paid = f.add(pay)
        shipped = f.add(log, "ship", after=[paid], name="ship")
        f.add(log, "mail", after=[shipped], name="mail")
        f.add(log, "refund", after=[paid], on="failed", name="refund")
        f.add(log, "done", after=[paid, shipped], on="finished", name="done")
    drain(app)
    assert sorted(ran) == ["done", "refund"]
    assert states(app, f.handle.id) == {
        "pay": NodeState.FAILED,
        "ship": NodeState.SKIPPED,
        "mail": NodeState.SKIPPED,
        "refund": NodeState.COMPLETED,
        "done": NodeState.COMPLETED,
    }
    record = f.handle.wait(5)
    assert (record.state, record.reason) == (FlowState.FAILED, "pay has failed")


def test_a_map_without_jobs_ends_at_once(app: Rota) -> None:
    """What waits for nothing gets an empty list, at a flow's beginning and in its middle."""
    got: list[list[int]] = []

    @app.task(name="double")
    def double(number: int) -> int:
        return 2 * number

    @app.task(name="collect")
    def collect(numbers: list[int]) -> None:
        got.append(numbers)

    with app.flow("nothing") as f:
        first = f.map(double, [])
        f.add(collect, first.results)
        second = f.map(double, [], after=[first])
        f.add(collect, second.results)
    drain(app)
    assert got == [[], []]
    assert f.handle.wait(5).state is FlowState.COMPLETED


def test_large_results_are_read_in_pages(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Results parameter can be iterated, blocking and not, as often as is asked for."""
    monkeypatch.setattr("rota.app.results.PAGE", 3)
    got: list[Any] = []

    @app.task(name="part")
    async def part(number: int) -> Part:
        return Part(number, "")

    @app.task(name="blocking")
    def blocking(parts: Results[Part]) -> None:
        got.append((len(parts), [one.number for one in parts], [one.number for one in parts]))

    @app.task(name="awaiting")
    async def awaiting(parts: Results[Part]) -> None:
        got.append((len(parts), [one.number async for one in parts], []))

    with app.flow("pages") as f:
        parts = f.map(part, range(10))
        f.add(blocking, parts.results)
        f.add(awaiting, parts.results)
    drain(app)
    ten = list(range(10))
    assert sorted(got) == [(10, ten, []), (10, ten, ten)]


def test_a_job_adds_to_its_flow(app: Rota) -> None:
    """What waits for the job waits for what it has added, and a failed attempt has added nothing."""
    ran: list[str] = []

    @app.task(name="fetch")
    def fetch(page: int) -> None:
        ran.append(f"page {page}")

    @app.task(name="crawl", retry=lambda *_: 0.0)
    def crawl(ctx: Context) -> None:
        ctx.flow.map(fetch, [1, 2])
        last = ctx.flow.add(fetch, 3)
        ctx.flow.add(fetch, 4, after=[last])
        if ctx.attempt == 1:
            raise ValueError("once")

    @app.task(name="report")
    def report() -> None:
        ran.append("report")

    with app.flow("site") as f:
        f.add(report, after=[f.add(crawl)])
    drain(app)
    assert sorted(ran[:-1]) == ["page 1", "page 2", "page 3", "page 4"]
    assert ran[-1] == "report"
    assert len(f.handle.nodes()) == 5
    assert f.handle.wait(5).state is FlowState.COMPLETED


def test_a_job_that_completes_in_its_transaction_adds_in_it(app: Rota) -> None:
    """Within ctx.transaction() nodes are stored on commit, with the job's result for others."""
    ran: list[Any] = []

    @app.task(name="after")
    def after(number: int) -> None:
        ran.append(number)

    @app.task(name="work")
    def work(ctx: Context) -> int:
        with ctx.transaction() as tx:
            ctx.flow.add(after, 7)
            tx.result(5)
        return 5

    with app.flow("tx") as f:
        f.add(after, f.add(work).result)
    drain(app)
    assert ran == [7, 5]
    assert f.handle.wait(5).state is FlowState.COMPLETED


def test_async_code_builds_and_waits(app: Rota) -> None:
    """`async with` stores a flow, and the handle's twins look at it."""

    @app.task(name="hello")
    async def hello() -> int:
        return 1

    async def main() -> None:
        async with app.flow("async") as f:
            f.add(hello, name="other")
            f.add(hello)
        worker = asyncio.create_task(
            Worker(app, WorkerConfig(drain=True, poll=0.2)).arun(signals=False)
        )
        record = await f.handle.await_ended(20)
        await worker
        assert record.state is await f.handle.astate() is FlowState.COMPLETED
        assert [node.name for node in await f.handle.anodes()] == ["other", "hello"]
        assert (await f.handle.ajob("hello")).id > 0

    asyncio.run(main())


def test_cancelling_a_flow(app: Rota) -> None:
    """Nothing begins any more, and the flow says why."""

    @app.task(name="never")
    def never() -> None:
        raise AssertionError

    with app.flow("gone") as f:
        first = f.map(never, [()] * 3)
        f.add(never, after=[first])
    assert f.handle.cancel()
    record = f.handle.wait(0)
    assert (record.state, record.reason) == (FlowState.CANCELLED, "it was cancelled by hand")
    assert not f.handle.cancel()
    drain(app)
    assert {node.state for node in f.handle.nodes()} == {NodeState.CANCELLED}


def test_the_first_failure_can_end_a_map(app: Rota) -> None:
    """With fail_fast the others are cancelled: a thousand run long past the first look."""
    ran: list[int] = []

    @app.task(name="some")
    def some(number: int) -> None:
        ran.append(number)
        raise Discard("no")

    with app.flow("fast") as f:
        f.map(some, range(1000), fail_fast=True)
    Worker(app, WorkerConfig(drain=True, poll=0.2, concurrency=1, prefetch=1)).run()
    [node] = f.handle.nodes()
    assert node.state is NodeState.FAILED
    assert node.failed == len(ran) < 1000
    assert node.cancelled == 1000 - node.failed


def test_a_chain_does_not_wait_for_upkeep(app: Rota) -> None:
    """The settler decides what follows, at once: here nobody else would."""

    @app.task(name="link")
    async def link() -> None: ...

    with app.flow("chain") as f:
        node = f.add(link)
        for _ in range(5):
            node = f.add(link, after=node)
    with working(app, upkeep=False, poll=0.1):
        assert f.handle.wait(30).state is FlowState.COMPLETED
