"""What the engine Dask makes of its client, without a cluster: the client is the test's own.

It runs bundles in threads.
"""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any, Self

import distributed
import pytest

from rota import Backoff, JobFailed, Rota, State
from rota.events import ClusterChanged
from rota.worker.executors import cluster, dask, node
from tests.fixtures.workers import LONG, records, until, working
from tests.worker import clustered
from tests.worker.engines import adopt


class Scheduler:
    """What all clients of a test see.

    Attributes:
        nodes: How many threads each node has, by their addresses.
        mute: Nodes that do not answer.
        paused: Those that take nothing more for the time being.
        silent: Whether it does not answer either.
        refused: So many of the next bundles find another process than that for which they were
            meant.
        met: The nodes that were asked which process they are, one after another.
        used: The nodes that were given bundles, one after another.
        clients: Those that have found it.
    """

    def __init__(self) -> None:
        self.nodes = {"a": 2}
        self.mute: set[str] = set()
        self.paused: set[str] = set()
        self.silent = False
        self.refused = 0
        self.met: list[str] = []
        self.used: list[str] = []
        self.clients: list[Client] = []

    async def identity(self) -> dict[str, Any]:
        """What it knows of its nodes."""
        if self.silent:
            await asyncio.Event().wait()
        return {
            "workers": {
                address: {
                    "nthreads": count,
                    "resources": {},
                    "status": "paused" if address in self.paused else "running",
                }
                for address, count in self.nodes.items()
            }
        }


class Client:
    """As much of Dask's as is used."""

    def __init__(self, scheduler: Scheduler, address: str, **options: Any) -> None:
        del address, options
        self.scheduler = scheduler
        self.status = "connecting"
        self.scheduler_comm = object()
        self._topics: dict[str, Any] = {}
        self._loop = asyncio.get_running_loop()

    async def _begin(self) -> Self:
        self.status = "running"
        self.scheduler.clients.append(self)
        return self

    def __await__(self) -> Any:
        return self._begin().__await__()

    def subscribe_topic(self, topic: str, handler: Any) -> None:
        """Hear of it from now on."""
        self._topics[topic] = handler

    def reconnect(self) -> None:
        """Lose the scheduler and find it again, as Dask's client does; called in any thread."""

        def change() -> None:
            self._topics.clear()
            self.scheduler_comm = object()

        self._loop.call_soon_threadsafe(change)

    async def run(self, function: Any, *args: Any, workers: list[str], on_error: str) -> Any:
        """Call it on a node."""
        del on_error
        [address] = workers
        if address in self.scheduler.mute:
            await asyncio.Event().wait()
        if function is node.this:
            self.scheduler.met.append(address)
        return {address: function(*args)}

    def submit(
        self, _: Any, bundle: bytes, topic: str, *, workers: Any = None,
        allow_other_workers: bool = True, **options: Any,
    ) -> "Future":  # fmt: skip
        """Run a bundle, where the node was left to Dask on another one."""
        assert options["retries"] == 0

        def tell(report: bytes) -> None:
            self._loop.call_soon_threadsafe(hear, report)

        def hear(report: bytes) -> None:
            if topic in self._topics:
                self._topics[topic]((0.0, report))

        if self.scheduler.refused or workers is None or allow_other_workers:
            self.scheduler.refused -= 1
            return Future(refuse())
        self.scheduler.used += workers
        return Future(asyncio.to_thread(node.run, bundle, tell))

    async def close(self) -> None:
        """Leave the scheduler, if it answers."""
        self.status = "closed"
        if self.scheduler.silent:
            await asyncio.Event().wait()


class Future:
    """The result of a bundle."""

    def __init__(self, running: Any) -> None:
        self._running = asyncio.ensure_future(running)

    async def result(self) -> Any:
        """Wait for it."""
        return await asyncio.shield(self._running)

    async def cancel(self) -> None:
        """A thread goes on."""


async def refuse() -> bytes:
    """What a node does that is another process now."""
    raise node.Refused


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> Scheduler:
    """The one that workers find from now on."""
    found = Scheduler()
    monkeypatch.setattr(distributed, "Client", partial(Client, found))
    monkeypatch.setattr(dask, "LOOK", 0.01)
    # No test waits for these, however busy the machine is.
    monkeypatch.setattr(dask, "TIMEOUT", 1000.0)
    monkeypatch.setattr(cluster, "PATIENCE", 1000.0)
    return found


def test_a_node_that_does_not_answer(app: Rota, scheduler: Scheduler) -> None:
    """One that comes and does not say who it is keeps no other one waiting."""
    double = adopt(app, clustered.double)
    with app.events.collect(ClusterChanged) as changes, working(app, dask="here"):
        scheduler.mute = {"b"}
        scheduler.nodes = {"a": 2, "b": 1}
        scheduler.nodes = {"a": 2, "b": 1, "c": 3}
        until(lambda: changes[-1].slots == 5)
        assert double.enqueue(1).result(timeout=LONG) == 2


def test_a_connection_that_was_lost(app: Rota, scheduler: Scheduler, tmp_path: Path) -> None:
    """What ran is a failed attempt; what runs after that is heard of again."""
    deaf = adopt(app, clustered.deaf, max_attempts=1)
    tell = adopt(app, clustered.tell)
    with working(app, dask="here"):
        lost = deaf.enqueue(str(tmp_path), 1)
        until((tmp_path / "began-1").exists)
        scheduler.clients[0].reconnect()
        with pytest.raises(JobFailed, match="was lost during this job"):
            lost.result(timeout=LONG)
        told = tell.enqueue(str(tmp_path))
        until(lambda: told.record().progress is not None)
        clustered.note(str(tmp_path), "go")
        assert told.result(timeout=LONG) == "told"
    assert [client.status for client in scheduler.clients] == ["closed", "closed"]


def test_a_node_that_pauses(app: Rota, scheduler: Scheduler, tmp_path: Path) -> None:
    """It goes on with what it has, and takes nothing more before it is running again."""
    scheduler.nodes = {"a": 1}
    deaf = adopt(app, clustered.deaf, max_attempts=1)
    with app.events.collect(ClusterChanged) as changes, working(app, dask="here"):
        first = deaf.enqueue(str(tmp_path), 1)
        until((tmp_path / "began-1").exists)
        scheduler.paused = {"a"}
        until(lambda: changes[-1].slots == 0)
        scheduler.nodes = {"a": 1, "b": 1}
        until(lambda: changes[-1].slots == 1)
        after = deaf.enqueue(str(tmp_path), 2)
        until((tmp_path / "began-2").exists)
        last = deaf.enqueue(str(tmp_path), 3)
        until(lambda: last.record().state is State.RUNNING)
        clustered.note(str(tmp_path), "go")
        for handle in (first, after, last):
            assert handle.wait(timeout=LONG).state is State.COMPLETED
    assert [record.errors for record in records(app)] == [()] * 3
    assert scheduler.used == ["a", "b", "b"]


def test_where_it_was_meant_to_run(app: Rota, scheduler: Scheduler) -> None:
    """Dask is not asked to choose, or to rerun anything: the worker knows where each bundle is."""
    scheduler.nodes = {"a": 1, "b": 1}
    double = adopt(app, clustered.double, max_attempts=1)
    with working(app, dask="here"):
        assert [double.enqueue(number).result(timeout=LONG) for number in range(4)] == [0, 2, 4, 6]


def test_a_node_that_is_another_one_now(app: Rota, scheduler: Scheduler) -> None:
    """A bundle that it refuses is lost, and it is asked again who it is."""
    double = adopt(app, clustered.double, retry=Backoff(first=0, factor=1, jitter=0))
    with working(app, dask="here"):
        scheduler.refused = 1
        handle = double.enqueue(1)
        assert handle.result(timeout=LONG) == 2
    [error] = handle.record().errors
    assert error.exception == "rota.NodeLost"
    assert "is another process now" in error.message
    assert scheduler.met == ["a", "a"]


def test_a_scheduler_that_falls_silent(
    app: Rota, scheduler: Scheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ran is a failed attempt after a while; the worker's other jobs go on, and it can stop."""
    monkeypatch.setattr(dask, "ENDING", 0.01)
    deaf = adopt(app, clustered.deaf, max_attempts=1)

    @app.task(name="beside")
    async def beside() -> None: ...

    with working(app, dask="here"):
        lost = deaf.enqueue(str(tmp_path), 1)
        until((tmp_path / "began-1").exists)
        monkeypatch.setattr(dask, "TIMEOUT", 0.05)
        scheduler.silent = True
        with pytest.raises(JobFailed, match="was lost during this job"):
            lost.result(timeout=LONG)
        assert beside.enqueue().wait(timeout=LONG).state is State.COMPLETED
        clustered.note(str(tmp_path), "go")


def test_a_scheduler_that_answers_again(app: Rota, scheduler: Scheduler) -> None:
    """Its nodes are met anew, and run what has waited."""
    double = adopt(app, clustered.double)
    with app.events.collect(ClusterChanged) as changes, working(app, dask="here"):
        scheduler.nodes = {}
        until(lambda: changes[-1].slots == 0)
        handle = double.enqueue(1)
        until(lambda: handle.record().state is State.RUNNING)
        scheduler.nodes = {"d": 1}
        assert handle.result(timeout=LONG) == 2
