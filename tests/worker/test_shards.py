"""One worker for several databases: shared slots and fair turns; an absent one stops no other."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rota import PROVIDED, ConfigError, Context, Rota, State, StoreUnavailable, WorkerConfig
from rota.app.shards import Shards
from rota.events import (
    JobCompleted,
    JobStarted,
    PausedLeft,
    StoreLost,
    StoreRecovered,
)
from rota.service.endpoint import Address, Endpoint
from rota.worker import Worker, calls
from rota.worker.health import Phase
from tests.fixtures import workers
from tests.fixtures.frozen import frozen
from tests.fixtures.workers import LONG, until
from tests.worker import clustered
from tests.worker.engines import Here, adopt

if TYPE_CHECKING:
    from rota.measure.servers.postgres import PostgresServer

NAMES = ("eu", "us")
AWAY = "postgresql://nobody@127.0.0.1:1/nothing"


@pytest.fixture
def rota(tmp_path: Path) -> Iterator[Shards]:
    """Two files."""
    with Rota.shards({name: f"sqlite:///{tmp_path}/{name}.db" for name in NAMES}) as rota:
        yield rota


def drained(rota: Shards, **config: Any) -> None:
    """Run a worker of all shards until nothing is left to do."""
    worker = Worker(rota, WorkerConfig(drain=True, **{"poll": 0.05, **config}))
    asyncio.run(asyncio.wait_for(worker.arun(signals=False), LONG))


def working(rota: Shards, **config: Any) -> AbstractContextManager[Worker]:
    """A worker of all shards in a thread, which looks often."""
    return workers.working(rota, **{"poll": 0.05, **config})


def enqueue(rota: Shards, task: Any, count: int = 1) -> None:
    """Enqueue so many jobs on each shard."""
    for name in rota:
        with rota.on(name):
            task.enqueue_many([()] * count)


# What runs where ----------------------------------------------------------------------------------


def test_one_worker_runs_all(rota: Shards) -> None:
    """Each job is settled on its own shard; its handler and subscribers know which that is."""
    ran: list[str] = []
    heard: list[tuple[str, int]] = []

    @rota.task(name="here")
    async def here() -> None:
        ran.append(rota.here)

    @rota.task(name="in_thread")
    def in_thread() -> None:
        ran.append(f"thread {rota.here}")

    @rota.on(JobCompleted)
    def hear(event: JobCompleted) -> None:
        heard.append((rota.here, event.job.id))

    enqueue(rota, here, 2)
    enqueue(rota, in_thread)
    drained(rota)
    assert sorted(ran) == ["eu", "eu", "thread eu", "thread us", "us", "us"]
    assert sorted(heard) == [(name, job) for name in NAMES for job in (1, 2, 3)]
    for shard in rota.values():
        assert shard.jobs.count(state=State.COMPLETED) == 3


def test_a_cluster_for_all(rota: Shards, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each shard's jobs run there, too.

    In the worker no more handlers run at once than its concurrency says.
    """
    monkeypatch.setattr(calls, "Dask", Here)
    double = adopt(rota, clustered.double)
    begun, ended = list[JobStarted](), list[JobCompleted]()
    rota.on(JobStarted)(begun.append)
    rota.on(JobCompleted)(ended.append)
    most = running = 0
    lock = threading.Lock()

    @rota.task(name="threaded")
    def threaded() -> None:
        nonlocal most, running
        with lock:
            running += 1
            most = max(most, running)
        clustered.wait_for(str(tmp_path), "go")
        with lock:
            running -= 1

    for name in rota:
        with rota.on(name):
            double.enqueue_many([(number,) for number in range(10)])
    with working(rota, dask="here", concurrency=2):
        until(lambda: len(ended) == 20)
        enqueue(rota, threaded, 3)
        until(lambda: len(begun) == 26)
        until(lambda: running == 2)
        clustered.note(str(tmp_path), "go")
        until(lambda: len(ended) == 26)
    assert most == 2


def test_jobs_of_a_handler_lie_beside_it(tmp_path: Path) -> None:
    """What a handler enqueues lies on its job's shard, unless a key, `on` or `conn` says otherwise."""
    urls = {name: f"sqlite:///{tmp_path}/{name}.db" for name in NAMES}
    with Rota.shards(urls, key="{tenant}", pinned={"acme": "eu"}) as rota:

        @rota.task(name="left", queue="left")
        def left(number: int = 0) -> None:
            del number

        @rota.task(name="keyed", queue="left")
        def keyed(tenant: str) -> None:
            del tenant

        @rota.task(name="first")
        def first(ctx: Context) -> None:
            assert left.enqueue().shard == "us"
            assert keyed.enqueue("acme").shard == "eu"
            with rota.on("eu"):
                assert left.enqueue().shard == "eu"
            with ctx.transaction() as tx:
                assert left.using(conn=tx).enqueue().shard == "us"

        with rota.on("us"):
            handle = first.enqueue()
        drained(rota, queues=("default",))
        assert handle.status is State.COMPLETED
        assert [shard.jobs.count(queue="left") for shard in rota.values()] == [2, 2]


def test_successors_stay(rota: Shards) -> None:
    """A successor lies on the shard of the job that it follows."""
    ran: list[str] = []

    @rota.task(name="second")
    def second() -> None:
        ran.append(rota.here)

    @rota.task(name="first", on_success="second")
    def first() -> None: ...

    with rota.on("us"):
        first.enqueue()
    drained(rota)
    assert ran == ["us"]


def test_child_processes_know_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler in a child process knows its job's shard, and its jobs lie there."""
    urls = {name: f"sqlite:///{tmp_path}/{name}.db" for name in NAMES}
    monkeypatch.setenv("ROTA_SHARDS", " ".join(f"{name}={url}" for name, url in urls.items()))
    from tests.worker.sharded import left, rota, there

    for name in NAMES:
        rota[name].use(urls[name])
    with rota:
        with rota.on("us"):
            handle = there.enqueue()
        drained(rota, queues=("default",))
        assert handle.result(0) == "us"
        assert rota["us"].jobs.count(task=left) == 1


def test_children_are_lent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shard that is alone with work has all child processes, and then the other one has the same."""
    urls = {name: f"sqlite:///{tmp_path}/{name}.db" for name in NAMES}
    monkeypatch.setenv("ROTA_SHARDS", " ".join(f"{name}={url}" for name, url in urls.items()))
    from tests.worker.sharded import met, rota

    for name in NAMES:
        rota[name].use(urls[name])
    ran = dict[str, set[int]]()
    with rota, working(rota, concurrency=4, processes=2):
        for name in NAMES:
            folder = tmp_path / f"folder-{name}"
            folder.mkdir()
            with rota.on(name):
                both = [met.enqueue(str(folder), number, 2) for number in range(2)]
            ran[name] = {handle.result(timeout=LONG) for handle in both}
            assert len(ran[name]) == 2
    assert ran["eu"] == ran["us"]


def test_lifespans_and_middleware_of_all(rota: Shards) -> None:
    """Lifespans surround the worker once, and what they yield and middleware are there on each shard."""
    said: list[str] = []

    @rota.lifespan(name="engine")
    async def engine() -> AsyncIterator[str]:
        said.append("enter")
        yield "an engine"
        said.append("leave")

    @rota.around_run
    async def around(ctx: Context, call_next: Callable[[], Any]) -> Any:
        said.append(f"{rota.here} {ctx.task}")
        return await call_next()

    @rota.task(name="equipped")
    async def equipped(engine: str = PROVIDED) -> None:
        assert engine == "an engine"

    enqueue(rota, equipped)
    drained(rota)
    assert (said[0], sorted(said[1:-1]), said[-1]) == (
        "enter",
        ["eu equipped", "us equipped"],
        "leave",
    )
    assert all(shard.jobs.count(state=State.COMPLETED) == 1 for shard in rota.values())


def test_draining_follows_jobs_across(rota: Shards) -> None:
    """A draining worker ends only when no shard has a job, even if jobs enqueue on the other."""
    left_in: list[str] = []
    other = {"eu": "us", "us": "eu"}

    @rota.task(name="hop")
    async def hop(more: int) -> None:
        if more:
            with rota.on(other[rota.here]):
                await hop.aenqueue(more - 1)

    @rota.task(name="paused", queue="paused")
    def paused() -> None: ...

    @rota.on(PausedLeft)
    def hear(event: PausedLeft) -> None:
        left_in.append(f"{rota.here} {event.count}")

    rota["us"].queue("paused").pause()
    with rota.on("us"):
        paused.enqueue()
        hop.enqueue(7)
    drained(rota)
    assert [shard.jobs.count(state=State.COMPLETED) for shard in rota.values()] == [4, 4]
    assert left_in == ["us 1"]


def test_several_apps_are_not_several_databases(rota: Shards) -> None:
    """A worker is told of an app with several databases alone, not among others."""
    with pytest.raises(ConfigError, match="a Shards"):
        Worker([rota])  # type: ignore[list-item]


def test_no_more_at_once_than_there_are_slots(rota: Shards) -> None:
    """The slots are the worker's: all shards together run no more at once."""
    running, most = 0, 0

    @rota.task(name="busy")
    async def busy() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.002)
        running -= 1

    enqueue(rota, busy, 30)
    drained(rota, concurrency=3)
    assert most == 3


# Shards that are away -----------------------------------------------------------------------------


def test_one_is_away_at_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Others are worked on, the worker is ready, and what is wrong is said, naming the shard."""
    caplog.set_level(logging.WARNING, logger="rota")
    with Rota.shards({"away": AWAY, "here": f"sqlite:///{tmp_path}/rota.db"}) as rota:
        done, lost = threading.Event(), list[str]()

        @rota.task(name="job")
        async def job() -> None:
            done.set()

        @rota.on(StoreLost)
        def hear(event: StoreLost) -> None:
            assert isinstance(event.error, StoreUnavailable)
            lost.append(rota.here)

        with rota.on("here"):
            job.enqueue()
        with (
            working(rota) as worker,
            Endpoint(Address("127.0.0.1", 0), worker.health),
        ):
            assert done.wait(LONG)
            until(lambda: lost, "the word of the shard that is away")
            assert worker.health().ready
            assert worker.health().phase is Phase.RUNNING
        assert set(lost) == {"away"}
        assert any(line.startswith("shard away: worker: ") for line in caplog.messages)


def test_none_can_be_used() -> None:
    """A worker for which no shard is there ends, as that of one database does."""
    with Rota.shards({"eu": AWAY, "us": AWAY.replace("nothing", "none")}) as rota:

        @rota.task(name="job")
        def job() -> None: ...

        with pytest.raises(StoreUnavailable):
            drained(rota)


def test_tables_that_come_later(postgres_url: str, tmp_path: Path) -> None:
    """A shard whose tables are missing keeps no other one waiting, and is worked on once it has them."""
    with Rota.shards({"new": postgres_url, "old": f"sqlite:///{tmp_path}/rota.db"}) as rota:
        ran: list[str] = []
        lost, recovered = threading.Event(), list[str]()

        @rota.task(name="job")
        async def job() -> None:
            ran.append(rota.here)

        rota.on(StoreLost)(lambda _: lost.set())
        rota.on(StoreRecovered)(lambda _: recovered.append(rota.here))
        with rota.on("old"):
            job.enqueue()
        with working(rota):
            until(lambda: ran == ["old"], "the job of the shard that has its tables")
            assert lost.wait(LONG)
            rota["new"].admin.migrate()
            with rota.on("new"):
                job.enqueue()
            until(lambda: ran == ["old", "new"], "the job of the other one")
        assert recovered == ["new"]


def test_a_server_that_is_stopped_and_started(
    postgres_server: "PostgresServer", tmp_path: Path
) -> None:
    """While one shard's server is down the other's jobs run, and then its own, each once."""
    urls = {"down": postgres_server.url, "up": f"sqlite:///{tmp_path}/rota.db"}
    with Rota.shards(urls) as rota:
        ran: list[str] = []

        @rota.task(name="job")
        async def job(number: int) -> None:
            ran.append(f"{rota.here} {number}")

        def put(name: str, number: int) -> None:
            with rota.on(name):
                job.enqueue(number)
            until(lambda: f"{name} {number}" in ran, "the job")

        rota["down"].admin.migrate()
        with working(rota) as worker:
            put("up", 1)
            put("down", 1)
            with postgres_server.down():
                put("up", 2)
                put("up", 3)
                assert worker.health().ready
            put("down", 2)
            put("up", 4)
        assert len(ran) == len(set(ran)) == 6
        assert rota["down"].jobs.count(state=State.COMPLETED) == 2
        assert rota["up"].jobs.count(state=State.COMPLETED) == 4


def test_a_server_that_stands_still_under_load(
    postgres_server: "PostgresServer", tmp_path: Path
) -> None:
    """All jobs of the other shard run meanwhile; its own run when it goes on.

    None is lost or settled twice, and effects are exact.
    """
    urls = {"still": postgres_server.url, "up": f"sqlite:///{tmp_path}/rota.db"}
    jobs, more = 300, 50
    with Rota.shards(urls) as rota:
        settled: list[tuple[str, int]] = []

        @rota.task(name="job")
        def job(number: int, ctx: Context) -> None:
            with ctx.transaction() as tx:
                tx.execute(f"INSERT INTO effect VALUES ({number})")

        @rota.on(JobCompleted)
        def hear(event: JobCompleted) -> None:
            settled.append((rota.here, event.job.id))

        def ended(name: str) -> int:
            return sum(shard == name for shard, _ in settled)

        rota["still"].admin.migrate()
        for name, shard in rota.items():
            with shard.transaction() as tx:
                tx.execute("CREATE TABLE effect (number int)")
            with rota.on(name):
                job.enqueue_many([(number,) for number in range(jobs)])
        with working(rota, concurrency=4, prefetch=8):
            until(lambda: ended("still") >= 20)
            with frozen(postgres_server):
                before = ended("still")
                with rota.on("up"):
                    job.enqueue_many([(number,) for number in range(jobs, jobs + more)])
                until(lambda: ended("up") == jobs + more, "the jobs of the other shard")
                # What was on its way when the server stopped, and no more.
                assert ended("still") < jobs
                assert before < jobs
            until(lambda: ended("still") == jobs, "the jobs of the shard that goes on")
        assert len(settled) == len(set(settled)) == 2 * jobs + more
        for name, shard in rota.items():
            expected = jobs + more * (name == "up")
            assert shard.jobs.count(state=State.COMPLETED) == expected
            with shard.transaction() as tx:
                found = sorted(number for (number,) in tx.execute("SELECT number FROM effect"))
            assert found == [*range(expected)]
