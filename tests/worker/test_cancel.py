"""Cancelling jobs that wait and jobs that run."""

import asyncio
import threading
from pathlib import Path

import psutil
import pytest

from rota import Backoff, Context, JobFailed, Rota, State
from tests.fixtures.workers import until, working
from tests.worker import chores
from tests.worker.chores import adopt

QUICK = 1.0
"""A session's timeout with which requests are heard within 0.2 seconds."""


def test_a_waiting_job(app: Rota) -> None:
    """A job that was cancelled while it waited is never started."""
    ran: list[int] = []

    @app.task(name="job")
    async def job(number: int) -> None:
        ran.append(number)

    one, two, three = job.enqueue(1), job.using(delay=0.1).enqueue(2), job.enqueue(3)
    assert one.cancel() is State.CANCELLED
    assert two.cancel() is State.CANCELLED
    with working(app):
        three.result(timeout=20)
        job.using(delay=0.2).enqueue(4).result(timeout=20)
    assert ran == [3, 4]
    assert (one.status, two.status) == (State.CANCELLED, State.CANCELLED)


def test_on_the_loop(app: Rota) -> None:
    """The CancelledError reaches a running async handler, and the job is cancelled."""
    began, reached = threading.Event(), threading.Event()

    @app.task(name="job", retry=Backoff(first=0))
    async def job() -> None:
        began.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            reached.set()
            raise

    handle = job.enqueue()
    with working(app, session_timeout=QUICK):
        assert began.wait(20)
        assert handle.cancel() is State.RUNNING
        with pytest.raises(JobFailed, match="cancelled"):
            handle.result(timeout=20)
    assert reached.is_set()
    assert handle.record().attempt == 1


def test_the_runner_goes_on(app: Rota) -> None:
    """After a cancelled job the same runner takes the next one."""
    began = threading.Event()

    @app.task(name="job", store_result=True)
    async def job(number: int) -> int:
        if number == 0:
            began.set()
            await asyncio.sleep(3600)
        await asyncio.sleep(0)
        return number

    first, *others = [job.enqueue(number) for number in range(5)]
    with working(app, session_timeout=QUICK, concurrency=1):
        assert began.wait(20)
        first.cancel()
        assert [handle.result(timeout=20) for handle in others] == [1, 2, 3, 4]
    assert first.status is State.CANCELLED


def test_a_handler_that_finishes_anyway(app: Rota) -> None:
    """A handler that catches the CancelledError and returns has completed its job."""
    began = threading.Event()

    @app.task(name="job", store_result=True)
    async def job() -> str:
        began.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return "finished"
        return "never"

    handle = job.enqueue()
    with working(app, session_timeout=QUICK):
        assert began.wait(20)
        handle.cancel()
        assert handle.result(timeout=20) == "finished"


def test_in_a_process(app: Rota, tmp_path: Path) -> None:
    """The child of a cancelled job is killed; the next job gets another one."""
    file = tmp_path / "pid"
    hang, add = adopt(app, chores.hang), adopt(app, chores.add)
    handle = hang.enqueue(str(file))
    with working(app, session_timeout=QUICK, processes=1):
        until(lambda: file.exists() and file.read_text(), "the child to begin")
        handle.cancel()
        with pytest.raises(JobFailed, match="cancelled"):
            handle.result(timeout=20)
        assert not psutil.pid_exists(int(file.read_text()))
        assert add.enqueue(1, 2).result(timeout=20) == 3


def test_one_that_waits_for_a_child(app: Rota, tmp_path: Path) -> None:
    """A job that waits for a free child can be cancelled too."""
    file = tmp_path / "pid"
    hang, add = adopt(app, chores.hang), adopt(app, chores.add)
    hanging, waiting = hang.enqueue(str(file)), add.enqueue(1, 2)
    with working(app, session_timeout=QUICK, processes=1):
        until(lambda: file.exists() and file.read_text(), "the child to begin")
        until(lambda: waiting.status is State.RUNNING)
        waiting.cancel()
        with pytest.raises(JobFailed, match="cancelled"):
            waiting.result(timeout=20)
        hanging.cancel()
        with pytest.raises(JobFailed, match="cancelled"):
            hanging.result(timeout=20)
        assert add.enqueue(3, 4).result(timeout=20) == 7


def test_in_a_thread_that_looks(app: Rota) -> None:
    """A thread that looks at its Context and returns is cancelled."""
    began = threading.Event()

    @app.task(name="job")
    def job(ctx: Context | None = None) -> None:
        assert ctx is not None
        assert not ctx.cancelled
        began.set()
        assert ctx.wait_cancelled(30)
        assert ctx.cancelled

    handle = job.enqueue()
    with working(app, session_timeout=QUICK):
        assert began.wait(20)
        assert handle.cancel() is State.RUNNING
        with pytest.raises(JobFailed, match="cancelled"):
            handle.result(timeout=20)


def test_in_a_thread_that_does_not_look(app: Rota) -> None:
    """A thread that does not look at its Context finishes, and its job has completed."""
    began, go = threading.Event(), threading.Event()
    contexts: list[Context] = []

    @app.task(name="job", store_result=True)
    def job(ctx: Context | None = None) -> str:
        assert ctx is not None
        contexts.append(ctx)
        began.set()
        go.wait(30)
        return "finished"

    handle = job.enqueue()
    with working(app, session_timeout=QUICK):
        assert began.wait(20)
        handle.cancel()
        # Not through `cancelled`, which would be the handler's look.
        until(contexts[0]._cancelled.is_set)
        go.set()
        assert handle.result(timeout=20) == "finished"


def test_cancelled_and_then_failing(app: Rota) -> None:
    """A cancelled handler that raises something else is not tried again."""
    began = threading.Event()
    runs: list[int] = []

    @app.task(name="job", retry=Backoff(first=0))
    async def job() -> None:
        runs.append(1)
        began.set()
        try:
            await asyncio.sleep(3600)
        finally:
            raise LookupError("cleaning up failed")

    handle = job.enqueue()
    with working(app, session_timeout=QUICK):
        assert began.wait(20)
        handle.cancel()
        with pytest.raises(JobFailed, match="cancelled"):
            handle.result(timeout=20)
    assert runs == [1]


def test_a_late_request_does_not_hit_the_next_run(app: Rota) -> None:
    """A request that comes when the job has finished is forgotten, also by this worker."""
    from rota.model.job import JobId
    from rota.worker.runners import Runners

    seen: list[Runners] = []
    made = Runners.cancel

    def spy(self: Runners, jobs: frozenset[JobId]) -> None:
        seen.append(self)
        made(self, jobs)

    @app.task(name="job", store_result=True)
    async def job() -> int:
        return 1

    blocker_began, go = threading.Event(), threading.Event()

    @app.task(name="blocker")
    def blocker() -> None:
        blocker_began.set()
        go.wait(30)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Runners, "cancel", spy)
        with working(app, session_timeout=QUICK):
            handle = job.enqueue()
            assert handle.result(timeout=20) == 1
            blocking = blocker.enqueue()
            assert blocker_began.wait(20)
            blocking.cancel()  # so that the worker's Runners are seen
            [runners, *_] = until(lambda: seen)
            runners._loop.call_soon_threadsafe(runners.cancel, frozenset({handle.id}))
            app.database.run(app.database.store.retry([handle.id]))
            until(lambda: handle.status.finished)
            go.set()
            assert handle.status is State.COMPLETED
