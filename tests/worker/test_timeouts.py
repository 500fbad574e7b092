"""An attempt that takes too long: what stops, and what is recorded."""

import asyncio
import os
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from rota import Context, JobFailed, Rota, State
from tests.fixtures.workers import until, working
from tests.worker import chores
from tests.worker.chores import adopt

FOREVER = 3600.0


def test_on_the_loop(app: Rota) -> None:
    """An async handler is cancelled when its time is up, and the attempt has failed."""
    stopped: list[str] = []

    @app.task(name="slow", timeout=0.2, max_attempts=1)
    async def slow() -> None:
        try:
            await asyncio.sleep(FOREVER)
        except asyncio.CancelledError:
            stopped.append("cancelled")
            raise

    handle = slow.enqueue()
    with working(app), pytest.raises(JobFailed, match=r"longer than 0\.2 seconds"):
        handle.result(timeout=20)
    assert stopped == ["cancelled"]
    assert handle.record().errors[0].exception == "builtins.TimeoutError"


def test_a_timeout_of_the_handlers_own(app: Rota) -> None:
    """A TimeoutError that the handler raises itself is reported as it is."""

    @app.task(name="slow", timeout=60, max_attempts=1)
    async def slow() -> None:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(FOREVER)

    handle = slow.enqueue()
    with working(app), pytest.raises(JobFailed) as caught:
        handle.result(timeout=20)
    assert "TimeoutError" in str(caught.value)
    assert "longer than 60" not in str(caught.value)


def test_a_handler_that_ends_in_time_after_all(app: Rota) -> None:
    """An async handler that catches the cancellation and raises something fails with that."""

    @app.task(name="stubborn", timeout=0.1, max_attempts=1)
    async def stubborn() -> None:
        try:
            await asyncio.sleep(FOREVER)
        except asyncio.CancelledError:
            raise LookupError("cleaning up failed") from None

    handle = stubborn.enqueue()
    with working(app), pytest.raises(JobFailed, match=r"cleaning up failed|longer than"):
        handle.result(timeout=20)


def test_in_a_process(app: Rota, tmp_path: Path) -> None:
    """A child is killed when its time is up, and the attempt has failed; others go on."""
    file = tmp_path / "pid"
    hang, add = adopt(app, chores.hang, max_attempts=1, timeout=3), adopt(app, chores.add)
    handle = hang.enqueue(str(file))
    with working(app, processes=1):
        with pytest.raises(JobFailed, match=r"longer than 3(\.0)? seconds"):
            handle.result(timeout=20)
        assert not psutil.pid_exists(int(file.read_text()))
        assert add.enqueue(1, 2).result(timeout=20) == 3


def test_waiting_for_a_child_is_no_attempt(app: Rota) -> None:
    """The time that a job waits for a free child does not count."""
    nap = adopt(app, chores.nap, max_attempts=1, timeout=3)
    handles = [nap.enqueue(0.9) for _ in range(5)]
    with working(app, processes=1):
        for handle in handles:
            handle.result(timeout=20)
    assert {handle.record().state for handle in handles} == {State.COMPLETED}


def test_in_a_thread_that_looks(app: Rota) -> None:
    """A thread is told through its Context; if it listens, the attempt has failed by timeout."""

    @app.task(name="listens", timeout=0.2, max_attempts=1)
    def listens(ctx: Context | None = None) -> None:
        assert ctx is not None
        assert ctx.wait_cancelled(30)

    handle = listens.enqueue()
    with working(app), pytest.raises(JobFailed, match=r"longer than 0\.2 seconds"):
        handle.result(timeout=20)


def test_in_a_thread_that_does_not_look(app: Rota, caplog: pytest.LogCaptureFixture) -> None:
    """A thread that does not look goes on and what it returns counts; the log says so."""
    go = threading.Event()

    @app.task(name="deaf", timeout=0.1, store_result=True, max_attempts=1)
    def deaf() -> str:
        go.wait(30)
        return "done anyway"

    handle = deaf.enqueue()
    with working(app):
        until(lambda: "a thread cannot be stopped" in caplog.text)
        assert handle.status is State.RUNNING
        go.set()
        assert handle.result(timeout=20) == "done anyway"


def test_a_timeout_is_retried(app: Rota) -> None:
    """An attempt that took too long is followed by another one that may be quicker."""

    @app.task(name="warming_up", timeout=0.2, retry=lambda _attempt, _error: 0.0, store_result=True)
    async def warming_up(ctx: Context | None = None) -> int:
        assert ctx is not None
        if ctx.attempt == 1:
            await asyncio.sleep(FOREVER)
        return ctx.attempt

    handle = warming_up.enqueue()
    with working(app):
        assert handle.result(timeout=20) == 2


def test_the_timeout_of_one_job(app: Rota) -> None:
    """`using(timeout=…)` holds for its jobs alone."""
    began: dict[str, float] = {}

    @app.task(name="slow", max_attempts=1)
    async def slow(name: str) -> None:
        began[name] = time.monotonic()
        await asyncio.sleep(0.5)

    short, long = slow.using(timeout=0.1).enqueue("short"), slow.enqueue("long")
    with working(app):
        with pytest.raises(JobFailed, match=r"0\.1 seconds"):
            short.result(timeout=20)
        long.result(timeout=20)
    assert set(began) == {"short", "long"}


def test_the_worker_goes_on_after_a_timeout(app: Rota) -> None:
    """A runner whose job was stopped runs the next one as if nothing had happened."""
    done: list[Any] = []

    @app.task(name="job", max_attempts=1)
    async def job(number: int) -> None:
        if number % 2:
            await asyncio.sleep(FOREVER)
        await asyncio.sleep(0)
        done.append(number)

    ids = job.using(timeout=0.05).enqueue_many([(number,) for number in range(20)])
    with working(app, concurrency=2):
        until(
            lambda: all(one.state.finished for one in app.database.run(app.database.store.get(ids)))
        )
    assert sorted(done) == list(range(0, 20, 2))
    assert os.getpid() > 0
