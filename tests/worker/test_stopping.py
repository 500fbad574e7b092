"""Stopping a worker: in order, in a hurry, and with handlers that do not want to."""

import asyncio
import signal
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from rota import JobHandle, Rota, State, Task, WorkerConfig
from rota.events import PausedLeft, UnknownLeft, WorkerStopped, WorkerStopping
from rota.model.job import JobId, JobSpec, Order, SessionInfo
from rota.store.migrate import migrate
from rota.store.operation import Operation
from rota.worker import Worker
from rota.worker.drain import left_over
from tests.fixtures.postgres import LOCKS
from tests.fixtures.workers import WorkerProcess, drained, records, until, working
from tests.worker import chores
from tests.worker.chores import adopt

pytestmark = pytest.mark.both

Handles = list[JobHandle[Any]]


def ask(app: Rota, chore: Any, folder: Path, count: int) -> Handles:
    """Jobs that run until the folder has a file `go`."""
    task = adopt(app, chore)
    return [app.job(job) for job in task.enqueue_many((str(folder), n) for n in range(count))]


def started(folder: Path) -> list[str]:
    """Which jobs have begun."""
    return sorted(file.name for file in folder.glob("started-*"))


def finished(folder: Path) -> list[str]:
    """Which jobs have come to their end."""
    return sorted(file.name for file in folder.glob("finished-*"))


def given_back(handles: Handles) -> bool:
    """Whether jobs are available, and no attempt was spent."""
    found = [handle.record() for handle in handles]
    return [(one.state, one.attempt, one.errors) for one in found] == [
        (State.AVAILABLE, 0, ())
    ] * len(handles)


@pytest.mark.parametrize("chore", [chores.await_file, chores.thread_file, chores.process_file],
                         ids=["loop", "thread", "process"])  # fmt: skip
def test_sigterm(app: Rota, tmp_path: Path, chore: Any) -> None:
    """After SIGTERM what runs is finished and recorded; what did not start is given back."""
    handles = ask(app, chore, tmp_path, 5)
    with WorkerProcess(app.url, concurrency=2, processes=2) as worker:
        until(lambda: len(started(tmp_path)) == 2)
        worker.signal(signal.SIGTERM)
        until(lambda: "worker stopping" in worker.said)
        more = adopt_again(app, chore).enqueue(str(tmp_path), 7)
        (tmp_path / "go").touch()
        assert worker.ended() == 0
    assert len(finished(tmp_path)) == 2
    assert [one.status for one in handles].count(State.COMPLETED) == 2
    assert given_back([one for one in handles if one.status is not State.COMPLETED] + [more])


def test_sigint(app: Rota, tmp_path: Path) -> None:
    """SIGINT is heard like SIGTERM."""
    [handle] = ask(app, chores.await_file, tmp_path, 1)
    with WorkerProcess(app.url) as worker:
        until(lambda: started(tmp_path))
        worker.signal(signal.SIGINT)
        (tmp_path / "go").touch()
        assert worker.ended() == 0
    assert handle.status is State.COMPLETED


@pytest.mark.parametrize("chore", [chores.await_file, chores.thread_file, chores.process_file],
                         ids=["loop", "thread", "process"])  # fmt: skip
def test_sigterm_twice(app: Rota, tmp_path: Path, chore: Any) -> None:
    """A second SIGTERM ends the process at once; everything is given back."""
    handles = ask(app, chore, tmp_path, 5)
    with WorkerProcess(app.url, concurrency=2, processes=2) as worker:
        until(lambda: len(started(tmp_path)) == 2)
        children = psutil.Process(worker.process.pid).children(recursive=True)
        worker.signal()
        # Two signals at once are one for the kernel.
        until(lambda: "worker stopping" in worker.said)
        began = time.monotonic()
        worker.signal()
        assert worker.ended(8) == 0
        assert time.monotonic() - began < 6
        until(lambda: not any(psutil.pid_exists(child.pid) for child in children))
    assert given_back(handles)
    assert finished(tmp_path) == []


def test_the_grace_is_over(app: Rota, tmp_path: Path) -> None:
    """An async job that outlasts the grace period is cancelled and given back."""
    [handle] = ask(app, chores.await_file, tmp_path, 1)
    with WorkerProcess(app.url, grace=0.3) as worker:
        until(lambda: started(tmp_path))
        worker.signal()
        assert worker.ended() == 0
    assert (tmp_path / "cancelled-0").exists()
    assert given_back([handle])


def test_the_grace_is_over_for_a_thread(app: Rota, tmp_path: Path) -> None:
    """A thread that outlasts the grace period does not keep the process from ending."""
    [handle] = ask(app, chores.thread_file, tmp_path, 1)
    with WorkerProcess(app.url, grace=0.3) as worker:
        until(lambda: started(tmp_path))
        worker.signal()
        assert worker.ended(10) == 0
    assert given_back([handle])


def test_a_process_that_was_killed(app: Rota, tmp_path: Path) -> None:
    """The jobs of a worker that was killed run elsewhere, and none is to blame; children die."""
    handles = ask(app, chores.process_file, tmp_path, 2)
    with WorkerProcess(app.url, session_timeout=1.0, processes=2) as worker:
        until(lambda: len(started(tmp_path)) == 2)
        children = psutil.Process(worker.process.pid).children(recursive=True)
        worker.signal(signal.SIGKILL)
        worker.ended()
        (tmp_path / "go").touch()
        with working(app, processes=1):
            for handle in handles:
                handle.result(timeout=20)
        until(lambda: not any(psutil.pid_exists(child.pid) for child in children))
    assert [handle.record().attempt for handle in handles] == [1, 1]


# In this process ---------------------------------------------------------------------------------


def test_stop_gives_back(app: Rota, caplog: pytest.LogCaptureFixture) -> None:
    """`stop()` from another thread finishes what runs; what did not start stays for others."""
    caplog.set_level("INFO", "rota")
    began, go = threading.Event(), threading.Event()
    stopped: list[int] = []
    app.on(WorkerStopped)(lambda event: stopped.append(event.released))

    @app.task(name="job")
    def job() -> None:
        began.set()
        assert go.wait(20)

    handles = [app.job(one) for one in job.enqueue_many([()] * 4)]
    with working(app, concurrency=1) as worker:
        assert began.wait(20)
        worker.stop()
        until(lambda: "worker stopping: 1 running job(s) have 30 seconds left" in caplog.text)
        go.set()
    assert handles[0].status is State.COMPLETED
    assert given_back(handles[1:])
    assert len(stopped) == 1


def test_a_drained_worker_has_nothing_to_wait_for(
    app: Rota, caplog: pytest.LogCaptureFixture
) -> None:
    """A worker that ends because no job is left does not speak of jobs that have time left."""
    caplog.set_level("INFO", "rota")

    @app.task(name="job")
    def job() -> None: ...

    job.enqueue()
    with app.events.collect(WorkerStopping) as stopping:
        drained(app)
    assert stopping == [WorkerStopping(30.0, running=0)]
    assert "worker stopped" in caplog.text
    assert "worker stopping" not in caplog.text


@pytest.mark.parametrize("heeds", [True, False])
def test_stop_while_the_server_waits(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, *, heeds: bool
) -> None:
    """A lock that others hold does not keep a worker; nor does a server that heeds no request."""
    monkeypatch.setattr("rota.worker.loop.PATIENCE", 0.3)
    if not heeds:
        monkeypatch.setattr(psycopg.Connection, "cancel_safe", lambda *_, **__: None)
    waiting = f"SELECT count(*) FROM {LOCKS} WHERE relation = 'rota.lane'::regclass AND NOT granted"
    with (
        Rota(postgres_url) as app,
        closing(app.database.store.connect()) as connection,
        psycopg.connect(postgres_url) as holder,
    ):
        migrate(app.database.store, connection)
        app.task(name="job")(lambda: None)
        with working(app, poll=0.1) as worker:
            holder.execute("LOCK TABLE rota.lane IN ACCESS EXCLUSIVE MODE")
            # Claimer and upkeep.
            until(lambda: holder.execute(waiting).fetchone() == (2,))
            worker.stop()
        names = {thread.name for thread in threading.enumerate()}
        assert not names & {"rota-claimer", "rota-upkeep", "rota-session"}
        if heeds:
            # What was cancelled does not wait on in the server.
            assert holder.execute(waiting).fetchone() == (0,)


def test_a_quick_job_at_the_stop_is_written(app: Rota) -> None:
    """Whatever has run when the worker stops is recorded: nothing of it runs again."""
    ran: list[int] = []

    @app.task(name="job")
    async def job(number: int) -> None:
        await asyncio.sleep(0)
        ran.append(number)

    handles = job.enqueue_many([(number,) for number in range(3000)])
    with working(app, concurrency=8) as worker:
        until(lambda: len(ran) > 300)
        worker.stop()
    found = app.database.run(app.database.store.get(handles))
    done = sorted(n for n, one in enumerate(found) if one.state is State.COMPLETED)
    assert done == sorted(ran)
    rest = [one for one in found if one.state is not State.COMPLETED]
    assert {(one.state, one.attempt) for one in rest} <= {(State.AVAILABLE, 0)}
    drained(app)
    assert sorted(ran) == list(range(3000))


def test_drain_leaves_paused_queues(app: Rota) -> None:
    """Draining does not wait for jobs that nobody may take, and says how many are left."""
    ran = []

    @app.task(name="job")
    def job(number: int) -> None:
        ran.append(number)

    app.database.run(app.database.store.pause("mail"))
    job.using(queue="mail").enqueue_many([(1,), (2,)])
    job.using(queue="mail", delay=3600).enqueue(3)
    job.enqueue(4)
    with app.events.collect(PausedLeft) as seen:
        drained(app, queues=("default", "mail"))
    assert seen == [PausedLeft("mail", 3)]
    app.database.run(app.database.store.resume("mail"))
    app.database.run(app.database.store.retry([one.id for one in records(app, State.SCHEDULED)]))
    drained(app, queues=("default", "mail"))
    assert sorted(ran) == [1, 2, 3, 4]


def unknown(app: Rota, task: str, queue: str = "default") -> list[JobId]:
    """Two jobs of a task that the app does not have."""
    order = Order(JobSpec(task=task, queue=queue), ["{}"] * 2)
    return app.database.run(app.database.store.enqueue(order))


def test_drain_leaves_tasks_that_nobody_knows(app: Rota) -> None:
    """Draining does not await jobs of tasks that no worker has, and counts those left by task."""
    ran = []
    job = app.task(name="job")(lambda: ran.append(1))
    lost = [*unknown(app, "lost"), *unknown(app, "gone", "mail")]
    job.enqueue()
    with app.events.collect(UnknownLeft) as seen:
        drained(app, queues=("default", "mail"))
    assert seen == [UnknownLeft("default", "lost", 2), UnknownLeft("mail", "gone", 2)]
    assert ran == [1]
    assert {app.job(one).status for one in lost} == {State.AVAILABLE}


def test_drain_waits_for_a_worker_that_knows_the_task(app: Rota) -> None:
    """Jobs another living worker of the queue can run are awaited, not left, like running jobs."""
    app.task(name="ours")(lambda: None)
    unknown(app, "theirs")
    with app.events.collect(UnknownLeft) as seen:
        drained(app)
    store, run = app.database.store, app.database.run
    assert seen == [UnknownLeft("default", "theirs", 2)]
    elsewhere = SessionInfo("here", 1, ("mail",), 60.0, ("theirs",))
    here = SessionInfo("here", 2, ("default",), 60.0, ("theirs",))
    run(store.open_session(elsewhere))
    assert left_over(app.database, ("default",), app.tasks) == seen
    session = run(store.open_session(here))
    assert left_over(app.database, ("default",), app.tasks) is None
    run(store.close_session(session))
    assert left_over(app.database, ("default",), app.tasks) == seen


def test_drain_looks_again(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that comes between the looks is not taken for one of those that are left."""
    job = app.task(name="job")(lambda: None)
    unknown(app, "lost")
    drained(app)
    passed_on = app.database.store.passed_on

    def meanwhile() -> Any:
        job.enqueue()
        return passed_on()

    assert left_over(app.database, ("default",), app.tasks) == [UnknownLeft("default", "lost", 2)]
    monkeypatch.setattr(app.database.store, "passed_on", meanwhile)
    assert left_over(app.database, ("default",), app.tasks) is None


def test_the_end_is_one_look(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether any of many queues has a job left is one question, however many there are."""
    job = app.task(name="job")(lambda: None)
    names = [f"queue-{number}" for number in range(20)]
    jobs = [job.using(queue=name).enqueue() for name in names]
    asked: list[Operation[Any]] = []
    run = app.database.run

    def counted(operation: Operation[Any]) -> Any:
        asked.append(operation)
        return run(operation)

    monkeypatch.setattr(app.database, "run", counted)
    assert left_over(app.database, ("queue-*",), app.tasks) is None
    for one in jobs:
        one.cancel()
    asked.clear()
    assert left_over(app.database, ("queue-*",), app.tasks) == []
    assert len(asked) == 1


def test_stop_before_the_start(app: Rota) -> None:
    """A worker that was stopped before it ran ends at once."""
    app.task(name="job")(lambda: None)
    worker = Worker(app)
    worker.stop()
    asyncio.run(asyncio.wait_for(worker.arun(signals=False), 10))


def test_run_in_a_thread(app: Rota) -> None:
    """It works where no signal can reach it, and ends by `stop`."""
    ran = threading.Event()
    app.task(name="job")(ran.set).enqueue()
    worker = Worker(app)
    thread = threading.Thread(target=worker.run)
    thread.start()
    assert ran.wait(20)
    worker.stop()
    thread.join(20)
    assert not thread.is_alive()


def test_stop_after_the_end(app: Rota) -> None:
    """Stopping a worker that has ended is nothing to complain about."""
    app.task(name="job")(lambda: None)
    worker = Worker(app, WorkerConfig(drain=True))
    asyncio.run(asyncio.wait_for(worker.arun(signals=False), 10))
    worker.stop()
    worker.abort()


def test_abort(app: Rota) -> None:
    """`abort()` cancels what runs and gives it back without waiting for the grace period."""
    began = threading.Event()

    @app.task(name="job")
    async def job() -> None:
        began.set()
        await asyncio.sleep(3600)

    handle = job.enqueue()
    with working(app) as worker:
        assert began.wait(20)
        worker.abort()
    assert given_back([handle])


def test_a_cancelled_arun(app: Rota) -> None:
    """Cancelling the coroutine winds the worker down; running jobs are finished."""
    began = asyncio.Event()

    @app.task(name="job")
    async def job() -> None:
        began.set()
        await asyncio.sleep(0.1)

    handle = job.enqueue()

    async def main() -> None:
        running = asyncio.create_task(Worker(app).arun(signals=False))
        await asyncio.wait_for(began.wait(), 20)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert handle.status is State.COMPLETED


def adopt_again(app: Rota, chore: Any) -> Task[..., Any, Any]:
    """The task that `ask` made."""
    return app.find_task(chore.name)
