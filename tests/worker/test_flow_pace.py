"""When settlers and upkeep look at nodes, and jobs whose results cannot be given to others."""

from typing import Any

import pytest

from rota import Context, JobEnded, Rota, State, Worker, WorkerConfig
from rota.model.flow import FlowState, NodeState
from rota.model.headers import NodeId
from rota.worker import deciding
from rota.worker.deciding import Deciding
from tests.fixtures.workers import working

pytestmark = pytest.mark.both
"""SQLite decides in the transaction of a settlement, PostgreSQL after it."""


def test_an_idle_worker_looks_at_once(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has other jobs in hand looks at a node of many jobs every so often."""
    # However slow the machine is: it is never time by itself.
    monkeypatch.setattr(deciding, "SPACING", 1000.0)
    monkeypatch.setattr(deciding, "SHARE", 0)
    store = app.database.store
    connection = store.connect()
    due = Deciding(store, connection)
    due.add([NodeId(1)])
    assert due.step() is None
    due.add([NodeId(1)])
    pause = due.step()
    assert pause is not None
    assert 0 < pause <= 1000.0
    assert due.step(idle=True) is None
    assert not due
    connection.close()


def test_a_fan_in_does_not_wait_for_upkeep(app: Rota) -> None:
    """The settler of the map's last job releases what waits for it: here nobody else would."""

    @app.task(name="part")
    async def part(number: int) -> int:
        return number

    @app.task(name="sum", store_result=True)
    def add(numbers: list[int]) -> int:
        return sum(numbers)

    with app.flow("sum") as f:
        f.add(add, f.map(part, range(100)).results)
    with working(app, upkeep=False, poll=0.1):
        assert f.handle.wait(30).state is FlowState.COMPLETED
    assert f.handle.job("sum").result(0) == 4950


def test_upkeep_goes_on_where_a_settler_died(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks after the commit: upkeep does, within seconds."""
    ran: list[int] = []

    @app.task(name="part")
    async def part(number: int) -> None:
        ran.append(number)

    with app.flow("overlooked") as f:
        f.add(part, 3, after=[f.map(part, [1, 2])])
    monkeypatch.setattr(Deciding, "step", lambda *_, **__: None)
    monkeypatch.setattr(Deciding, "__bool__", lambda _: False)
    with working(app, poll=0.1):
        assert f.handle.wait(30).state is FlowState.COMPLETED
    assert sorted(ran) == [1, 2, 3]


def failed(app: Rota, build: Any) -> str:
    """What is said of the job of the first node, which fails; what waits for it is skipped."""
    with app.flow("bad") as f:
        build(f)
    Worker(app, WorkerConfig(drain=True, poll=0.2)).run()
    first, *others = f.handle.nodes()
    assert first.state is NodeState.FAILED
    assert {node.state for node in others} == {NodeState.SKIPPED}
    assert f.handle.wait(5).state is FlowState.FAILED
    record = f.handle.job(first.name).record()
    assert record.state is State.DISCARDED
    return str(record.errors[-1].message)


def test_a_result_that_is_too_large(app: Rota) -> None:
    """It is not kept, the handler does not run again, and what waits for it is skipped."""

    @app.task(name="large", max_attempts=5)
    def large() -> str:
        return "x" * 1_000_001

    @app.task(name="take")
    def take(text: str) -> None:
        raise AssertionError(len(text))

    message = failed(app, lambda f: f.add(take, f.add(large).result))
    assert "result cannot be stored" in message
    assert "is 1,000,003 bytes, the limit is 1,000,000" in message


def test_a_result_of_the_wrong_type(app: Rota) -> None:
    """Where annotations say nothing, the job that gets it fails, without being called."""
    called: list[Any] = []

    @app.task(name="any")
    def give() -> Any:
        return {"not": "a number"}

    @app.task(name="take", max_attempts=1)
    def take(number: int) -> None:
        called.append(number)

    with app.flow("wrong") as f:
        f.add(take, f.add(give).result)
    Worker(app, WorkerConfig(drain=True, poll=0.2)).run()
    assert [node.state for node in f.handle.nodes()] == [NodeState.COMPLETED, NodeState.FAILED]
    assert "number" in str(f.handle.job("take").record().errors[-1].message)
    assert called == []


def test_a_signal_to_a_job_that_has_ended(app: Rota) -> None:
    """It comes too late, says so, and changes nothing of the flow."""

    @app.task(name="quick")
    async def quick() -> None: ...

    with app.flow("over") as f:
        f.add(quick)
    Worker(app, WorkerConfig(drain=True, poll=0.2)).run()
    before = f.handle.graph()
    with pytest.raises(JobEnded):
        f.handle.job("quick").signal("go")
    assert f.handle.graph() == before


def test_attempts_that_fail_add_nothing(app: Rota) -> None:
    """Whatever they have asked for before, and also where what they ask for is refused."""

    @app.task(name="leaf")
    async def leaf(number: int) -> None:
        del number

    bad: Any = "no number"

    @app.task(name="grow", retry=lambda *_: 0.0)
    def grow(ctx: Context) -> None:
        ctx.flow.map(leaf, [1, 2])
        if ctx.attempt == 1:
            raise ValueError
        if ctx.attempt == 2:
            ctx.flow.add(leaf, bad)

    with app.flow("tree") as f:
        f.add(grow)
    Worker(app, WorkerConfig(drain=True, poll=0.2)).run()
    first, second = f.handle.nodes()
    assert (first.name, second.expects) == ("grow", 2)
    assert f.handle.job("grow").record().attempt == 3
    assert f.handle.wait(5).state is FlowState.COMPLETED
