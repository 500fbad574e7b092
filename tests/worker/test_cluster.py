"""The executor of handlers on a cluster; its engine's nodes are threads of the test's process."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from rota import Backoff, ConfigError, Executor, JobFailed, NodeLost, Rota, State, StoreError
from rota.dispatch import Events
from rota.events import ClusterChanged, JobReleased, JobStarted
from rota.model.job import ClaimedJob, JobId, LeaseId
from rota.model.notes import Notes
from rota.worker import Worker, calls
from rota.worker.call import Call, Stop
from rota.worker.executors import cluster, dask, node
from rota.worker.executors.bundle import Ran, Report
from rota.worker.executors.remote import Answer, Order
from rota.worker.executors.seam import TimeLimit
from tests.fixtures.workers import drained, records, until, working
from tests.worker import clustered
from tests.worker.engines import Here, adopt


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[Here]:
    """The engines that workers have made from now on."""
    made: list[Here] = []

    def make(address: str) -> Here:
        made.append(Here(address))
        return made[-1]

    monkeypatch.setattr(calls, "Dask", make)
    return made


@contextmanager
def using(app: Rota, **config: Any) -> Iterator[Worker]:
    """A worker with such a cluster."""
    with working(app, dask="here", **config) as worker:
        yield worker


@pytest.mark.usefixtures("engines")
def test_results_and_errors(app: Rota) -> None:
    """Results come back, exceptions are failed attempts with tracebacks, outcomes are heeded."""
    double, fail = adopt(app, clustered.double), adopt(app, clustered.fail, max_attempts=1)
    outcome = adopt(app, clustered.outcome)
    sums = [double.enqueue(number) for number in range(30)]
    failed = fail.enqueue("broken")
    ends = [outcome.enqueue(kind) for kind in ("discard", "retry", "again", "snooze")]
    with using(app):
        assert [handle.result(timeout=20) for handle in sums] == [2 * n for n in range(30)]
        busy = {State.AVAILABLE, State.RUNNING}
        until(lambda: busy.isdisjoint({one.record().state for one in (failed, *ends)}))
    [error] = failed.record().errors
    assert (error.exception, error.message) == ("builtins.ValueError", "broken")
    assert "in fail" in error.traceback
    states = [handle.record().state for handle in ends]
    assert states == [State.DISCARDED, State.RETRYABLE, State.SCHEDULED, State.SCHEDULED]


def test_short_jobs_travel_together(
    app: Rota, engines: list[Here], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs of tasks known to be short share bundles; more wait than the worker can run itself."""
    # However busy the machine is, a run is short beside this.
    monkeypatch.setattr(cluster, "SPAN", 1000.0)
    double = adopt(app, clustered.double)
    with app.events.collect(JobStarted) as started, using(app, concurrency=4):
        engines[0].become(1)
        double.enqueue(0).result(timeout=20)
        engines[0].hold()
        double.enqueue_many([(number,) for number in range(400)])
        # Those of the first bundle and as many again, since it was short.
        until(lambda: len(started) > 20)
        engines[0].let_go()
        until(lambda: len(records(app, State.COMPLETED)) == 401)
    assert sum(engines[0].bundles) == 401
    assert engines[0].bundles[0] == 1
    assert max(engines[0].bundles) > 4


def test_long_jobs_travel_alone(
    app: Rota, engines: list[Here], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs of which nothing is known fill the slots one by one; the others wait for a slot."""
    monkeypatch.setattr(cluster, "PATIENCE", 1000.0)
    linger = adopt(app, clustered.linger)
    with app.events.collect(JobStarted) as begun, using(app):
        engines[0].become(0)
        linger.enqueue_many([(str(tmp_path), number) for number in range(5)])
        until(lambda: len(begun) == 5)
        engines[0].become(2)
        until(lambda: len(list(tmp_path.glob("began-*"))) == 2)
        assert engines[0].bundles == [1, 1]
        clustered.note(str(tmp_path), "go")
        until(lambda: len(records(app, State.COMPLETED)) == 5)


def test_a_task_that_has_become_slow(
    app: Rota, engines: list[Here], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs behind one that is slower than was thought run in another slot, before it has ended."""
    monkeypatch.setattr(cluster, "SPAN", 1000.0)
    monkeypatch.setattr(cluster, "PATIENCE", 1000.0)
    folder = str(tmp_path)
    double, deaf = adopt(app, clustered.double), adopt(app, clustered.deaf)
    clustered.note(folder, "go")
    with app.events.collect(JobStarted) as started, using(app, concurrency=20):
        # Both are known to be short.
        for _ in range(3):
            deaf.enqueue(folder, 0).wait(timeout=20)
            double.enqueue(1).result(timeout=20)
        (tmp_path / "go").unlink()
        engines[0].become(0)
        slow = deaf.enqueue(folder, 1)
        quick = [double.enqueue(number) for number in range(10)]
        until(lambda: len(started) == 6 + 11)
        engines[0].become(2)
        assert [handle.result(timeout=20) for handle in quick] == [2 * n for n in range(10)]
        assert slow.record().state is State.RUNNING
        clustered.note(folder, "go")
        slow.wait(timeout=20)
    assert (tmp_path / "finished-1").exists()
    assert max(engines[0].bundles) > 1


@pytest.mark.usefixtures("engines")
def test_what_handlers_tell(app: Rota, tmp_path: Path) -> None:
    """Progress and lines are seen while the job runs, and at its end."""
    handle = adopt(app, clustered.tell).enqueue(str(tmp_path))
    with using(app):
        until(lambda: handle.record().progress is not None)
        assert [line.message for line in handle.record().log] == ["half-way"]
        clustered.note(str(tmp_path), "go")
        assert handle.result(timeout=20) == "told"
    assert [line.message for line in handle.record().log] == ["half-way", "the end"]


@pytest.mark.usefixtures("engines")
def test_a_cancel(app: Rota, tmp_path: Path) -> None:
    """A handler is told by its context, as in a thread; jobs that wait for a slot do not begin."""
    linger = adopt(app, clustered.linger)
    running = [linger.enqueue(str(tmp_path), number) for number in range(2)]
    with using(app, session_timeout=1.0):
        until(lambda: len(list(tmp_path.glob("began-*"))) == 2)
        waiting = linger.enqueue(str(tmp_path), 2)
        until(lambda: waiting.record().state is State.RUNNING)
        # First the job that waits: it would begin if another one ended before this cancel arrives.
        for handle in (waiting, *running):
            handle.cancel()
        for handle in (waiting, *running):
            assert handle.wait(timeout=20).state is State.CANCELLED
    assert sorted(path.name for path in tmp_path.glob("stopped-*")) == ["stopped-0", "stopped-1"]
    assert not list(tmp_path.glob("began-2-*"))


@pytest.mark.usefixtures("engines")
def test_a_timeout(app: Rota, tmp_path: Path) -> None:
    """A timed-out attempt fails, whatever the node does; its slot is free once it has ended."""
    deaf = adopt(app, clustered.deaf, timeout=0.2, max_attempts=1)
    handles = [deaf.enqueue(str(tmp_path), number) for number in range(2)]
    with using(app):
        for handle in handles:
            with pytest.raises(JobFailed, match="longer than"):
                handle.result(timeout=20)
        after = deaf.using(timeout=60).enqueue(str(tmp_path), 2)
        until(lambda: after.record().state is State.RUNNING)
        assert not (tmp_path / "began-2").exists()
        clustered.note(str(tmp_path), "go")
        assert after.wait(timeout=20).state is State.COMPLETED


@pytest.mark.usefixtures("engines")
def test_a_worker_that_stops(app: Rota, tmp_path: Path) -> None:
    """What has not ended within the grace is given back, without an attempt."""
    linger = adopt(app, clustered.linger)
    handles = [linger.enqueue(str(tmp_path), number) for number in range(3)]
    with app.events.collect(JobReleased) as released, using(app, grace=0.1):
        until(lambda: len(list(tmp_path.glob("began-*"))) == 2)
        until(lambda: handles[2].record().state is State.RUNNING)
    assert {event.job.id for event in released} == {handle.id for handle in handles}
    assert [(handle.record().state, handle.record().attempt) for handle in handles] == [
        (State.AVAILABLE, 0)
    ] * 3
    until(lambda: len(list(tmp_path.glob("stopped-*"))) == 2)


def test_a_lost_node(app: Rota, engines: list[Here], tmp_path: Path) -> None:
    """It is a failed attempt that says so, and a policy can tell it."""
    told: list[BaseException] = []

    def policy(_attempt: int, error: BaseException) -> float | None:
        told.append(error)
        return None

    deaf, double = adopt(app, clustered.deaf, retry=policy), adopt(app, clustered.double)
    handle = deaf.enqueue(str(tmp_path), 1)
    with using(app):
        until((tmp_path / "began-1").exists)
        engines[0].freeze()
        with pytest.raises(JobFailed, match="the test says so"):
            handle.result(timeout=20)
        assert double.enqueue(1).result(timeout=20) == 2
        clustered.note(str(tmp_path), "go")
    [error] = handle.record().errors
    assert error.exception == "rota.NodeLost"
    assert [type(one) for one in told] == [NodeLost]


def test_a_lost_bundle(
    app: Rota, engines: list[Here], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tasks' jobs now travel alone: one that takes its node along costs no other an attempt."""
    # What has not begun is not given back.
    monkeypatch.setattr(node, "TELLER", node.Teller(60.0))
    # However busy the machine is, a run is short beside this.
    monkeypatch.setattr(cluster, "SPAN", 1000.0)
    monkeypatch.setattr(cluster, "PATIENCE", 1000.0)
    folder = str(tmp_path)
    deaf = adopt(app, clustered.deaf, retry=Backoff(first=0, factor=1, jitter=0))
    clustered.note(folder, "go")
    with app.events.collect(JobStarted) as started, using(app, concurrency=20):
        for _ in range(3):
            deaf.enqueue(folder, 0).wait(timeout=20)
        (tmp_path / "go").unlink()
        engines[0].become(0)
        ids = deaf.enqueue_many([(folder, number) for number in range(1, 5)])
        until(lambda: len(started) == 3 + 4)
        engines[0].become(2)
        until(lambda: engines[0].bundles[3:] == [2, 1])
        engines[0].become(0)
        engines[0].freeze()
        until(lambda: len(started) == 3 + 4 + 3)
        engines[0].become(2)
        until(lambda: len(engines[0].bundles) == 7)
        clustered.note(folder, "go")
        until(lambda: all(app.job(each).record().state is State.COMPLETED for each in ids))
    assert engines[0].bundles[5:7] == [1, 1]
    assert sorted(len(app.job(each).record().errors) for each in ids) == [0, 1, 1, 1]


# What the cluster has -----------------------------------------------------------------------------


def test_without_a_cluster(app: Rota) -> None:
    """A worker that was given none leaves such jobs to those that have one, and says so."""
    handle = adopt(app, clustered.double).enqueue(1)
    with app.events.collect(JobReleased) as passed_on, working(app):
        until(lambda: passed_on)
        until(lambda: handle.record().state is State.AVAILABLE)
    assert handle.record().attempt == 0


def test_resources_that_nobody_has(
    app: Rota, engines: list[Here], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job waits where other workers see it, until a node has what it needs."""
    monkeypatch.setattr(cluster, "PATIENCE", 0.01)
    on_gpu, double = adopt(app, clustered.on_gpu), adopt(app, clustered.double)

    def knowing(job: JobId) -> int:
        standing = app.database.run(app.database.store.standing(job))
        assert standing is not None
        return len(standing.knowing)

    with app.events.collect(ClusterChanged) as changes, using(app, session_timeout=1.0):
        handle = on_gpu.enqueue()
        assert double.enqueue(1).result(timeout=20) == 2
        until(lambda: handle.record().state is State.AVAILABLE)
        assert [(one.slots, one.lacking) for one in changes] == [(2, (clustered.on_gpu.name,))]
        until(lambda: knowing(handle.id) == 0)
        engines[0].become(3, "GPU")
        assert handle.result(timeout=20)
        engines[0].become(1)
        until(lambda: changes[-1].lacking)
        assert double.enqueue(2).result(timeout=20) == 4
    assert [one.slots for one in changes] == [2, 3, 1, 1]


def test_nodes_that_come_back(
    app: Rota, engines: list[Here], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all nodes are gone for a moment, jobs wait for them."""
    monkeypatch.setattr(cluster, "PATIENCE", 1000.0)
    double = adopt(app, clustered.double)
    with app.events.collect(ClusterChanged) as changes, using(app):
        engines[0].become(0)
        until(lambda: changes[-1].slots == 0)
        handle = double.enqueue(1)
        until(lambda: handle.record().state is State.RUNNING)
        engines[0].become(2)
        assert handle.result(timeout=20) == 2
    assert not any(one.lacking for one in changes)


@pytest.mark.usefixtures("engines")
def test_handlers_beside_it(app: Rota, tmp_path: Path) -> None:
    """In the worker itself no more handlers run at once than its concurrency says."""
    adopt(app, clustered.double).enqueue_many([(number,) for number in range(200)])
    most = running = 0
    lock = threading.Lock()

    @app.task(name="threaded")
    def threaded() -> None:
        nonlocal most, running
        with lock:
            running += 1
            most = max(most, running)
        clustered.wait_for(str(tmp_path), "go")
        with lock:
            running -= 1

    threaded.enqueue_many([()] * 20)
    with using(app, concurrency=3):
        until(lambda: len(records(app, State.COMPLETED)) == 200)
        until(lambda: running == 3)
        clustered.note(str(tmp_path), "go")
        until(lambda: len(records(app, State.COMPLETED)) == 220)
    assert most == 3


@pytest.mark.usefixtures("engines")
def test_waiting_beside_it(app: Rota, tmp_path: Path) -> None:
    """Nor do more wait on the loop."""
    adopt(app, clustered.double).enqueue(1)
    most = running = 0

    @app.task(name="waiting")
    async def waiting() -> None:
        nonlocal most, running
        running += 1
        most = max(most, running)
        await asyncio.to_thread(clustered.wait_for, str(tmp_path), "go")
        running -= 1

    with using(app, concurrency=3):
        until(lambda: len(records(app, State.COMPLETED)) == 1)
        waiting.enqueue_many([()] * 20)
        until(lambda: running == 3 and len(records(app, State.RUNNING)) > 3)
        clustered.note(str(tmp_path), "go")
        until(lambda: len(records(app, State.COMPLETED)) == 21)
    assert most == 3


def test_a_database_that_refuses(app: Rota, engines: list[Here]) -> None:
    """A worker that cannot begin leaves its cluster."""
    adopt(app, clustered.double)
    session = {"postgres": "rota.session", "sqlite": "rota_session"}[app.database.store.name]
    with app.transaction() as tx:
        tx.execute(f"ALTER TABLE {session} RENAME TO elsewhere")
    with pytest.raises(StoreError):
        drained(app, dask="here")
    assert [engine.left for engine in engines] == [True]


def test_no_cluster_there(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker whose cluster does not answer says so before it claims."""
    monkeypatch.setattr(dask, "TIMEOUT", 0.2)
    adopt(app, clustered.double)
    with pytest.raises(ConfigError, match="no Dask scheduler answers"):
        drained(app, dask="tcp://127.0.0.1:9")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dask": {"resources": {"GPU": 1}}}, "needs executor='dask'"),
        ({"dask": {"retries": 3}, "executor": "dask"}, "'retries' is not supported"),
    ],
)
def test_options_that_do_not_fit(app: Rota, options: dict[str, Any], said: str) -> None:
    """What is said for an engine goes with its executor, and has words that are passed on."""
    with pytest.raises(ConfigError, match=said):
        app.task(name="odd", **options)(clustered.double.function)


@pytest.mark.usefixtures("engines")
def test_a_resource_of_the_worker(app: Rota) -> None:
    """A handler on a cluster cannot be given what a lifespan yields."""
    adopt(app, clustered.needy)
    with pytest.raises(ConfigError, match="the nodes of a cluster have no lifespans"):
        drained(app, dask="here")


def test_a_nested_task(app: Rota) -> None:
    """A task inside a function is refused when the worker is made."""

    @app.task(name="inner", executor=Executor.DASK)
    def inner() -> None: ...

    with pytest.raises(ConfigError, match="top level of a module"):
        drained(app)


# A job's last turns --------------------------------------------------------------------------------


class Submitted:
    """A job on its way to an engine that holds it; `runner` waits for its answer.

    Attributes:
        passed: How often its time limit has passed.
    """

    def __init__(self, engine: Here) -> None:
        job = ClaimedJob(
            id=JobId(1), lease=LeaseId(1), task=clustered.double.name, args='{"number": 1}',
            queue="default", priority=0, attempt=1, max_attempts=1, timeout=0.0, enqueued_at=0.0,
        )  # fmt: skip
        order = Order.of(clustered.double, job, 0)
        remote: Any = SimpleNamespace(
            order=lambda _: order, lose=lambda _: None, value=lambda _, answer: answer.value()
        )
        self.events = Events()
        self.nodes = cluster.Cluster(
            engine,
            [clustered.double],
            remote,
            notes=Notes(print),
            events=self.events,
            changed=lambda: None,
        )
        self.passed: list[int] = []
        self.engine = engine
        runner: Any = None
        self.call = Call(runner)
        self.call.job, self.call.task = job, clustered.double
        self.limit = TimeLimit(0.0, lambda: self.passed.append(1))

    def submit(self) -> None:
        """Submit it."""
        self.runner = self.call.runner = asyncio.create_task(self._value())

    async def _value(self) -> None:
        self.value = await self.nodes.submit(self.call, self.limit)

    async def turns(self) -> None:
        """So many of the loop that everything has been done which does not have to wait."""
        for _ in range(5):
            await asyncio.sleep(0)

    def hear(self, **report: Any) -> None:
        """Hear what the node of the one bundle reports."""
        [load] = self.nodes._loads.values()
        self.nodes._hear(msgspec.json.encode(Report(load.key, **report)))

    def become(self, slots: int) -> None:
        """The cluster has so many slots, and jobs wait for none that is gone."""
        self.engine.slots = slots
        self.nodes._give_up()

    async def ended(self) -> bool:
        """Whether it was cancelled, once that is known; the bundle ends, too."""
        await asyncio.wait({self.runner})
        self.engine.let_go()
        await asyncio.gather(*self.nodes._running)
        await self.engine.close()
        return self.runner.cancelled()


@asynccontextmanager
async def submitted() -> AsyncIterator[Submitted]:
    """A job that has left."""
    engine = Here("here")
    one = Submitted(engine)
    await one.nodes.prepare()
    engine.hold()
    await one.turns()
    one.submit()
    await one.turns()
    assert engine.bundles == [1]
    yield one


def test_a_bundle_that_begins_too_late() -> None:
    """It begins no time limit: the runner of a job that was given up may have another one by then."""

    async def late() -> None:
        async with submitted() as one:
            one.nodes.cancel(one.call, Stop.LOST)
            assert await one.ended()
            assert not one.passed

    asyncio.run(late())


def test_an_answer_as_the_worker_stops() -> None:
    """An answer that is there is not thrown away: its job would run again."""

    async def answered() -> None:
        async with submitted() as one:
            one.hear(ran=[Ran(0, 0.0, Answer("returned", result="2"))])
            one.nodes.cancel(one.call, Stop.RELEASE)
            assert not await one.ended()
            assert one.value == "2"

    asyncio.run(answered())


def test_a_cancel_as_its_nodes_go() -> None:
    """A job that has not left and is to be cancelled is not left to other workers."""

    async def cancelled() -> None:
        async with submitted() as one:
            one.hear(withdrawn=[0])
            one.call.stop = Stop.CANCEL
            one.nodes.cancel(one.call, Stop.CANCEL)
            one.become(0)
            assert await one.ended()
            assert one.call.stop is Stop.CANCEL

    asyncio.run(cancelled())


def test_a_withdrawn_job_whose_nodes_are_gone() -> None:
    """It waits where other workers see it, as those do that had not left."""

    async def withdrawn() -> None:
        async with submitted() as one:
            one.become(0)
            assert one.nodes.lacking == {clustered.double.name}
            one.hear(withdrawn=[0])
            assert await one.ended()
            assert one.call.stop is Stop.UNABLE

    asyncio.run(withdrawn())


def test_a_job_that_comes_as_its_nodes_are_gone() -> None:
    """Likewise one that its middleware has held up."""

    async def late() -> None:
        one = Submitted(Here("here"))
        await one.nodes.prepare()
        one.become(0)
        one.submit()
        assert await one.ended()
        assert one.call.stop is Stop.UNABLE
        assert not one.engine.bundles

    asyncio.run(late())
