"""Flows in a test's own transaction."""

from typing import Any

import pytest

from rota import Context, Placing, Results, Rota, Unique
from rota.model.flow import FlowState
from rota.testing import Kit


def test_a_flow_runs_in_the_tests_transaction(app: Rota, kit: Kit) -> None:
    """What follows is decided in it, results are given, and what handlers add runs as well."""
    got: list[Any] = []

    @app.task(name="double")
    def double(ctx: Context, number: int) -> int:
        if number == 2:
            ctx.flow.add(note, "added")
        return 2 * number

    @app.task(name="total")
    def total(numbers: list[int], pages: Results[int]) -> None:
        got.append((numbers, list(pages)))

    @app.task(name="note")
    async def note(text: str) -> None:
        got.append(text)

    with app.flow("sums") as f:
        numbers = f.map(double, [1, 2, 3])
        f.add(total, numbers.results, numbers.results, name="total")
        f.add(note, "failed", on="failed", after=[numbers])
    assert kit.drain().completed == 5
    assert got == ["added", ([2, 4, 6], [2, 4, 6])]
    assert f.handle.state is FlowState.COMPLETED


@pytest.mark.parametrize("due", ["now", "all"])
def test_what_waits_for_others_does_not_run(app: Rota, kit: Kit, due: Any) -> None:
    """Not even where no delay is waited for."""

    @app.task(name="first", max_attempts=1)
    def first() -> None:
        raise ValueError("no")

    @app.task(name="second")
    def second() -> None:
        raise AssertionError

    with app.flow("fails") as f:
        f.add(second, after=[f.add(first.using(delay=60))])
    runs = kit.drain(due=due, raises=False)
    assert len(runs) == (1 if due == "all" else 0)
    if due == "now":
        assert f.handle.state is FlowState.RUNNING
        kit.travel(seconds=90)
        kit.drain(raises=False)
    assert f.handle.state is FlowState.FAILED


def test_a_job_of_a_flow_that_completes_in_its_transaction(app: Rota, kit: Kit) -> None:
    """What it adds in the block, and what waits for it, runs."""
    got: list[int] = []

    @app.task(name="take")
    def take(number: int) -> None:
        got.append(number)

    @app.task(name="give")
    def give(ctx: Context) -> int:
        with ctx.transaction() as tx:
            ctx.flow.add(take, 1)
            tx.result(2)
        return 2

    with app.flow("tx") as f:
        f.add(take, f.add(give).result)
    kit.drain()
    assert got == [1, 2]


def test_a_job_that_is_replaced_leaves_its_node(app: Rota, kit: Kit) -> None:
    """A drain decides what waits for its node, as a worker does, even where nothing else runs."""
    ran: list[str] = []

    @app.task(name="site", unique="{name}")
    def site(name: str, by: str = "flow") -> None:
        ran.append(name + by)

    @app.task(name="end")
    def end() -> None:
        ran.append("end")

    with app.flow("sites") as f:
        f.add(end, after=[f.add(site, "a")], on="finished")
    replacing = site.using(unique=Unique(key="{name}", on_conflict="replace"), delay=60)
    assert replacing.enqueue("a", by="other").placing is Placing.REPLACED
    kit.drain()
    assert ran == ["end"]
    assert f.handle.state is FlowState.CANCELLED
