"""What the engine Ray makes of what its driver says, without Ray.

The driver is a task of the worker's own loop.
"""

import asyncio
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rota import Backoff, ConfigError, JobFailed, Rota, State
from rota.worker.executors import cluster, node, ray
from rota.worker.executors.ray_words import (
    Dismiss,
    Ended,
    Failed,
    Hire,
    Hired,
    Lost,
    Machines,
    News,
    Order,
    Run,
    Stop,
    Told,
    frame,
    framed,
)
from tests.fixtures.workers import drained, until, working
from tests.worker import clustered
from tests.worker.engines import adopt

CORES = {"only": {"CPU": 2.0, "memory": 1e9}}


class Driver:
    """Says what the test wants, and runs bundles in threads."""

    def __init__(self, end: socket.socket, first: News, *, refuses: bool) -> None:
        self.heard: list[Any] = []
        self._loop = asyncio.get_running_loop()
        self._first = first
        self._refuses = refuses
        self._end = end
        self._playing = asyncio.ensure_future(self._play())
        self._running: set[asyncio.Future[None]] = set()

    async def _play(self) -> None:
        reader, self._writer = await asyncio.open_connection(sock=self._end)
        self.say(self._first)
        while (said := await frame(reader)) is not None and not self._writer.is_closing():
            order: Any = msgspec.msgpack.decode(said, type=Order)
            self.heard.append(order)
            match order:
                case Hire():
                    self.say(Lost(order.actor, "no") if self._refuses else Hired(order.actor))
                    self._refuses = False
                case Run():
                    running = asyncio.ensure_future(self._run(order))
                    self._running.add(running)
                case Stop():
                    node.stop(order.key, order.place)
                case _:
                    pass
        self._writer.close()

    async def _run(self, order: Run) -> None:
        def tell(report: bytes) -> None:
            self._loop.call_soon_threadsafe(self.say, Told(report))

        self.say(Ended(order.actor, await asyncio.to_thread(node.run, order.bundle, tell)))

    def say(self, news: News) -> None:
        """Tell the worker."""
        self._writer.write(framed(news))

    def say_again(self) -> None:
        """Tell of the machines once more; called in any thread."""
        self._loop.call_soon_threadsafe(self.say, self._first)

    def leave(self) -> None:
        """End; called in any thread."""
        self._loop.call_soon_threadsafe(self._writer.close)

    async def wait(self) -> int:
        """It ends when the worker hears it no more."""
        await asyncio.wait({self._playing})
        return 0

    def kill(self) -> None:
        """What a process would not survive; of one that has ended, an error, as of a process."""
        if self._writer.is_closing():
            raise ProcessLookupError
        self._writer.close()


class Drivers(list[Driver]):
    """Those that were started, and what the next one does."""

    first: News = Machines(CORES)
    refuses = False

    def all(self, kind: type[Any]) -> list[Any]:
        """What they were told of one kind."""
        return [order for driver in self for order in driver.heard if isinstance(order, kind)]


@pytest.fixture
def drivers(monkeypatch: pytest.MonkeyPatch) -> Drivers:
    """The drivers that workers start from now on."""
    started = Drivers()

    async def drive(address: str, end: socket.socket) -> Driver:
        del address
        driver = Driver(end.dup(), started.first, refuses=started.refuses)
        started.append(driver)
        return driver

    monkeypatch.setattr(ray, "drive", drive)
    # No test waits for these, however busy the machine is.
    monkeypatch.setattr(ray, "SILENCE", 1000.0)
    monkeypatch.setattr(ray, "IDLE", 1000.0)
    monkeypatch.setattr(ray, "AGAIN", 0.01)
    monkeypatch.setattr(cluster, "PATIENCE", 1000.0)
    return started


def test_actors_for_each_need(app: Rota, drivers: Drivers) -> None:
    """Jobs run in actors that were made with what they need; those that have nothing to do make room."""
    double = adopt(app, clustered.double, executor="ray")
    where = adopt(app, clustered.whereabouts, executor="ray", ray={"num_cpus": 2, "memory": 5e8})
    with working(app, ray="here"):
        assert double.enqueue(1).result(timeout=20) == 2
        assert where.enqueue().result(timeout=20)
        assert double.enqueue(2).result(timeout=20) == 4
    one, two = {"num_cpus": 1}, {"num_cpus": 2, "memory": 5e8}
    assert [hire.options for hire in drivers.all(Hire)] == [one, two, one]
    assert [dismiss.actor for dismiss in drivers.all(Dismiss)] == [0, 1]


def test_no_more_than_there_is(app: Rota, drivers: Drivers, tmp_path: Path) -> None:
    """As many actors are made as the machines have cores for; more jobs wait."""
    deaf = adopt(app, clustered.deaf, executor="ray")
    handles = [deaf.enqueue(str(tmp_path), number) for number in range(5)]
    with working(app, ray="here"):
        until(lambda: len(list(tmp_path.glob("began-*"))) == 2)
        until(lambda: all(handle.record().state is State.RUNNING for handle in handles))
        clustered.note(str(tmp_path), "go")
        for handle in handles:
            assert handle.wait(timeout=20).state is State.COMPLETED
    assert len(drivers.all(Hire)) == 2


def test_what_has_nothing_to_do(
    app: Rota, drivers: Drivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An actor leaves the cluster to others after a while."""
    monkeypatch.setattr(ray, "IDLE", 0.01)
    double = adopt(app, clustered.double, executor="ray")
    with working(app, ray="here"):
        assert double.enqueue(1).result(timeout=20) == 2
        until(lambda: drivers.all(Dismiss))


def test_what_is_told_on_the_way(app: Rota, drivers: Drivers, tmp_path: Path) -> None:
    """A handler that is cancelled hears of it while it runs, and what it tells is heard."""
    linger = adopt(app, clustered.linger, executor="ray")
    tell = adopt(app, clustered.tell, executor="ray")
    with working(app, ray="here", session_timeout=1.0):
        telling = tell.enqueue(str(tmp_path))
        until(lambda: telling.record().progress is not None)
        handle = linger.enqueue(str(tmp_path), 1)
        until((tmp_path / "began-1-1").exists)
        handle.cancel()
        assert handle.wait(timeout=20).state is State.CANCELLED
        clustered.note(str(tmp_path), "go")
        assert telling.result(timeout=20) == "told"
    assert drivers.all(Stop)


def test_a_driver_that_ends(app: Rota, drivers: Drivers, tmp_path: Path) -> None:
    """What ran is a failed attempt that says so; another driver takes over."""
    deaf = adopt(app, clustered.deaf, executor="ray", max_attempts=1)
    double = adopt(app, clustered.double, executor="ray")
    with working(app, ray="here"):
        lost = deaf.enqueue(str(tmp_path), 1)
        until((tmp_path / "began-1").exists)
        drivers[0].leave()
        with pytest.raises(JobFailed, match="the Ray cluster was lost during this job"):
            lost.result(timeout=20)
        assert double.enqueue(1).result(timeout=20) == 2
        clustered.note(str(tmp_path), "go")
    assert len(drivers) == 2
    assert [error.exception for error in lost.record().errors] == ["rota.NodeLost"]


def test_a_driver_that_falls_silent(
    app: Rota, drivers: Drivers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster is lost after a while, though its connection is not."""
    deaf = adopt(app, clustered.deaf, executor="ray", max_attempts=1)
    lost = deaf.enqueue(str(tmp_path), 1)
    with working(app, ray="here"):
        until((tmp_path / "began-1").exists)
        monkeypatch.setattr(ray, "SILENCE", 0.05)
        drivers[0].say_again()
        with pytest.raises(JobFailed, match="it has not answered"):
            lost.result(timeout=20)
        clustered.note(str(tmp_path), "go")
        until(lambda: len(drivers) > 1)


def test_an_actor_that_cannot_begin(
    app: Rota, drivers: Drivers, caplog: pytest.LogCaptureFixture
) -> None:
    """It is made again, and the log says why the first one was not."""
    drivers.refuses = True
    double = adopt(app, clustered.double, executor="ray", retry=Backoff(first=0))
    with working(app, ray="here"):
        assert double.enqueue(1).result(timeout=20) == 2
    assert len(drivers.all(Hire)) == 2
    [said] = [one.message for one in caplog.records if "could not begin" in one.message]
    assert said.endswith("no")


def test_no_cluster(app: Rota, drivers: Drivers) -> None:
    """A worker whose driver finds none says why, before it claims."""
    drivers.first = Failed("nobody is there")
    adopt(app, clustered.double, executor="ray")
    with pytest.raises(ConfigError, match="no Ray cluster answers at here: nobody is there"):
        drained(app, ray="here")


def test_without_the_package(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker without Ray says what to install."""
    monkeypatch.setattr(ray, "find_spec", lambda _name: None)
    adopt(app, clustered.double, executor="ray")
    with pytest.raises(ConfigError, match="pip install 'rota\\[ray\\]'"):
        drained(app, ray="auto")
