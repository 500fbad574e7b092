"""Async subscribers in a worker: on its loop, and in time for its end."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rota import Rota, State, subscribers
from rota.events import (
    Event,
    JobCompleted,
    JobsEnqueued,
    LifespanRaised,
    WorkerStarted,
    WorkerStopped,
)
from tests.fixtures.workers import ROOT, drained


def test_on_the_loop_of_the_worker(app: Rota) -> None:
    """They run on the loop of the handlers; all that happens until the worker's end is told to them."""
    said: list[object] = []
    loops: set[int] = set()

    @app.on(Event)
    async def listen(event: Event) -> None:
        await asyncio.sleep(0.01)
        loops.add(id(asyncio.get_running_loop()))
        if isinstance(event, WorkerStarted | JobCompleted | WorkerStopped):
            said.append(type(event))

    @app.task(name="job")
    async def job() -> None:
        loops.add(id(asyncio.get_running_loop()))

    job.enqueue_many([()] * 3)
    app.close()
    loops.clear()
    drained(app)
    assert said == [WorkerStarted, JobCompleted, JobCompleted, JobCompleted, WorkerStopped]
    assert len(loops) == 1


def test_before_the_lifespans_are_left(app: Rota) -> None:
    """What lifespans have opened is open for as long as subscribers are waited for."""
    said: list[str] = []

    @app.lifespan
    async def client() -> AsyncIterator[None]:
        yield
        said.append("closed")

    @app.on(WorkerStopped)
    async def listen(_event: WorkerStopped) -> None:
        await asyncio.sleep(0.05)
        said.append("told")

    app.task(name="job")(lambda: None)
    drained(app)
    assert said == ["told", "closed"]


def test_as_the_lifespans_are_left(app: Rota) -> None:
    """What happens then is told before the worker's end, too, on the same loop."""
    said: list[str] = []

    @app.lifespan
    async def client() -> AsyncIterator[None]:
        yield
        raise OSError("closed already")

    @app.on(LifespanRaised)
    async def listen(event: LifespanRaised) -> None:
        await asyncio.sleep(0.05)
        said.append(f"{event.error} in {threading.current_thread().name}")

    app.task(name="job")(lambda: None)
    drained(app)
    assert said == [f"closed already in {threading.current_thread().name}"]


def test_one_that_hangs(
    app: Rota, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It keeps neither the jobs nor the worker's end, but for a time."""
    monkeypatch.setattr(subscribers, "PATIENCE", 0.3)

    @app.on(JobCompleted)
    async def listen(_event: JobCompleted) -> None:
        await asyncio.Event().wait()

    job = app.task(name="job")(lambda: None)
    handles = [job.enqueue() for _ in range(3)]
    began = time.monotonic()
    drained(app)
    assert time.monotonic() - began < 10
    assert [handle.status for handle in handles] == [State.COMPLETED] * 3
    assert (
        "listen took too long; it was stopped, and 2 event(s) were not delivered to it"
        in caplog.text
    )


def test_in_a_process_that_only_enqueues(app: Rota) -> None:
    """There they have a thread; `close` waits for them."""
    seen: list[tuple[str, int]] = []

    @app.on(JobsEnqueued)
    async def listen(event: JobsEnqueued) -> None:
        await asyncio.sleep(0.05)
        seen.append((threading.current_thread().name, len(event.jobs)))

    job = app.task(name="job")(lambda: None)
    job.enqueue()
    job.enqueue_many([()] * 2)
    assert len(seen) < 2
    app.close()
    assert seen == [("rota-events", 1), ("rota-events", 2)]


SCRIPT = """
import asyncio
from rota import Rota
from rota.events import JobsEnqueued

rota = Rota("sqlite:///rota.db")

@rota.task(name="job")
def job(): ...

@rota.on(JobsEnqueued)
async def listen(event):
    await asyncio.sleep(0.1)
    print("told")

job.enqueue()
"""


def test_at_the_end_of_a_process(tmp_path: Path) -> None:
    """A process that ends without `close` waits for them, too."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True,
        timeout=30, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("told\n", "")
