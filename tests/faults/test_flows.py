"""Flows with killed and frozen workers, on a server that crashes.

Each job counts once, and what waits runs once all have ended.
"""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from rota import State
from rota.app.flow_handle import FlowHandle
from rota.measure.servers import PostgresServer
from rota.model.flow import FlowState
from tests.faults.processes import LONG, Ledger, WorkerProcess, until

COUNT = 400


@pytest.fixture
def ledger(store_url: str, tmp_path: Path) -> Iterator[Ledger]:
    """An app of the test's own."""
    with Ledger(tmp_path, store_url) as ledger:
        yield ledger


def built(ledger: Ledger) -> FlowHandle:
    """A map, a job that adds up what it gives, and one that adds up that."""
    with ledger.app.flow("sum") as f:
        parts = f.map(ledger.part, [{"number": number} for number in range(COUNT)])
        f.add(ledger.total, parts.results, name="total")
        f.map(ledger.total, [{"numbers": [1, 2]}], after=[parts], name="last")
    return f.handle


def worker(ledger: Ledger) -> WorkerProcess:
    """A worker that is soon missed."""
    return ledger.worker(queues=("flow",), session_timeout=1.0, concurrency=4)


def ended_well(ledger: Ledger, flow: FlowHandle) -> None:
    """All ran, each counted once, and the sum is right."""
    assert flow.wait(LONG).state is FlowState.COMPLETED
    assert [(node.expects, node.completed) for node in flow.nodes()] == [
        (COUNT, COUNT),
        (1, 1),
        (1, 1),
    ]
    assert flow.job("total").result(0) == sum(range(COUNT))
    assert ledger.count(State.COMPLETED) == COUNT + 2
    # It began with all results, however often it began.
    assert set(ledger.noted("total")) == {COUNT, 2}


def test_workers_that_are_killed(ledger: Ledger) -> None:
    """During the map and during the sum: another worker goes on, and nothing is counted twice."""
    ledger.hold("summing")
    workers = [worker(ledger), worker(ledger)]
    flow = built(ledger)
    until(lambda: ledger.ended(COUNT // 4), "a quarter to end")
    workers[0].signal(signal.SIGKILL)
    workers.append(worker(ledger))
    until(lambda: len(ledger.noted("summing")) == 2, "the sums to begin")
    for one in workers[1:]:
        one.signal(signal.SIGKILL)
    ledger.unhold("summing")
    worker(ledger)
    ended_well(ledger, flow)


def test_a_worker_that_is_frozen(ledger: Ledger) -> None:
    """It is missed, others do its jobs, and what it says when it comes back counts for nothing."""
    frozen = worker(ledger)
    flow = built(ledger)
    until(lambda: ledger.ended(COUNT // 4), "a quarter to end")
    frozen.signal(signal.SIGSTOP)
    worker(ledger)
    assert flow.wait(LONG).state is FlowState.COMPLETED
    frozen.signal(signal.SIGCONT)
    until(lambda: "session" in frozen.said.partition("worker started")[2], "it to find out")
    ended_well(ledger, flow)


@pytest.mark.large
def test_a_server_that_crashes(postgres_server: PostgresServer, tmp_path: Path) -> None:
    """In the middle of the map, at its end, and while the sum is made."""
    with Ledger(tmp_path, postgres_server.create_database("flows")) as ledger:
        ledger.hold("summing")
        for _ in range(2):
            ledger.worker(queues=("flow",), session_timeout=3.0, concurrency=4)
        flow = built(ledger)
        for part in (COUNT // 3, COUNT // 2, COUNT):
            until(lambda part=part: ledger.ended(part), f"{part} to end")  # type: ignore[misc]
            postgres_server.restart(mode="immediate")
            ledger.app.close()
        until(lambda: ledger.noted("summing"), "the sums to begin")
        postgres_server.restart(mode="immediate")
        ledger.app.close()
        ledger.unhold("summing")
        until(lambda: not ledger.unfinished(), "all to end")
        ended_well(ledger, flow)
