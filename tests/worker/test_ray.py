"""Handlers on a real Ray cluster of two processes; `test_ray_engine` has what needs no Ray."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from rota import Backoff, ConfigError, JobFailed, Rota, State, Task
from rota.worker.executors import ray as ours
from tests.fixtures.workers import ROOT, drained, records, until, working
from tests.worker import clustered
from tests.worker.engines import adopt

# A cluster takes ten seconds of processor time.
pytestmark = pytest.mark.large

AT_ONCE = Backoff(first=0, factor=1, jitter=0)
PATIENT = 40.0


class Head:
    """A cluster, and its processes when it began."""

    def __init__(self, process: "subprocess.Popen[str]", address: str) -> None:
        self.address = address
        main = psutil.Process(process.pid)
        self._processes = [main, *main.children(recursive=True)]

    def stop(self) -> None:
        """Freeze them."""
        for each in self._processes:
            each.suspend()

    def kill(self) -> None:
        """Kill them."""
        for each in self._processes:
            with suppress(psutil.NoSuchProcess):
                each.kill()


@contextmanager
def started() -> Iterator[Head]:
    """A cluster of its own."""
    # Sockets are in it, whose paths must be short.
    folder = tempfile.mkdtemp(prefix="ray")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.worker.ray_head", folder],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address, "Ray did not start"
            head = Head(process, address)
            yield head
        finally:
            head.kill()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module", autouse=True)
def _token() -> Iterator[None]:
    """The clusters of these tests are for them alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        yield


@pytest.fixture(scope="module")
def head() -> Iterator[Head]:
    """A cluster of two processes."""
    with started() as head:
        yield head


def on_ray(app: Rota, task: Task[..., Any, Any], **options: Any) -> Task[..., Any, Any]:
    """The task of another app, on Ray."""
    return adopt(app, task, executor="ray", **options)


def with_effects(app: Rota) -> dict[str, Any]:
    """A table, and what a task's nodes must know to write to it."""
    with app.transaction() as tx:
        tx.execute("CREATE TABLE effect (number integer)")
    return {"runtime_env": {"env_vars": {clustered.URL: app.url}}}


def effects(app: Rota) -> list[int]:
    """What is in it."""
    with app.transaction() as tx:
        return sorted(number for (number,) in tx.execute("SELECT number FROM effect").fetchall())


def read(file: Path) -> str:
    """What a handler has written, if it has."""
    return file.read_text(encoding="utf-8") if file.exists() else ""


def test_across_processes(app: Rota, head: Head) -> None:
    """Handlers run in the cluster's processes; results and errors come back, short jobs together."""
    double, where = on_ray(app, clustered.double), on_ray(app, clustered.whereabouts)
    failed = on_ray(app, clustered.fail, max_attempts=1).enqueue("broken")
    places = [where.enqueue() for _ in range(10)]
    ids = double.enqueue_many([(number,) for number in range(500)])
    drained(app, within=PATIENT, ray=head.address)
    assert os.getpid() not in {place.result(timeout=0) for place in places}
    assert [app.job(each).result(timeout=0) for each in ids[:3]] == [0, 2, 4]
    assert {record.state for record in records(app)} == {State.COMPLETED, State.DISCARDED}
    assert failed.record().errors[0].message == "broken"


def test_what_travels(app: Rota, head: Head, tmp_path: Path) -> None:
    """Progress, lines, requests to cancel, and the time's end go to and fro."""
    tell = on_ray(app, clustered.tell).enqueue(str(tmp_path))
    linger = on_ray(app, clustered.linger, max_attempts=1)
    cancelled = linger.enqueue(str(tmp_path), 1)
    with working(app, ray=head.address, session_timeout=1.0):
        until(lambda: tell.record().progress is not None, seconds=PATIENT)
        assert [line.message for line in tell.record().log] == ["half-way"]
        until((tmp_path / "began-1-1").exists, seconds=PATIENT)
        cancelled.cancel()
        assert cancelled.wait(timeout=PATIENT).state is State.CANCELLED
        until((tmp_path / "stopped-1").exists)
        late = linger.using(timeout=0.3).enqueue(str(tmp_path), 2)
        with pytest.raises(JobFailed, match="longer than"):
            late.result(timeout=PATIENT)
        until((tmp_path / "stopped-2").exists)
        clustered.note(str(tmp_path), "go")
        assert tell.result(timeout=PATIENT) == "told"


def test_a_transaction(app: Rota, head: Head, tmp_path: Path) -> None:
    """A handler's transaction is on a connection of its node's, and completes the job."""
    for name in ("go", "end"):
        clustered.note(str(tmp_path), name)
    write = on_ray(app, clustered.write, ray=with_effects(app))
    handles = [write.enqueue(str(tmp_path), number) for number in range(20)]
    drained(app, within=PATIENT, ray=head.address)
    assert [handle.result(timeout=0) for handle in handles] == ["attempt 1"] * 20
    assert effects(app) == list(range(20))


def test_killed_nodes(app: Rota, head: Head, tmp_path: Path) -> None:
    """Under load, attempts fail that say so, no job is lost, and effects are there exactly once."""
    write = on_ray(app, clustered.write, ray=with_effects(app), retry=AT_ONCE, max_attempts=20)
    for name in ("go", "end"):
        clustered.note(str(tmp_path), name)
    linger = on_ray(app, clustered.linger, retry=AT_ONCE, max_attempts=20)
    held = linger.enqueue(str(tmp_path / "held"), 1)
    (tmp_path / "held").mkdir()
    with working(app, ray=head.address):
        for attempt in range(1, 4):
            write.enqueue_many([(str(tmp_path), 100 * attempt + n) for n in range(100)])
            began = tmp_path / "held" / f"began-1-{attempt}"
            until(partial(read, began), seconds=PATIENT)
            os.kill(int(read(began)), signal.SIGKILL)
        clustered.note(str(tmp_path / "held"), "go")
        assert held.wait(timeout=PATIENT).state is State.COMPLETED
        until(lambda: len(records(app, State.COMPLETED)) == 301, seconds=PATIENT)
    assert effects(app) == sorted(100 * attempt + n for attempt in range(1, 4) for n in range(100))
    errors = held.record().errors
    assert {error.exception for error in errors} == {"rota.NodeLost"}
    assert len(errors) == 3
    assert "lost the process of this job" in errors[0].message


@pytest.mark.parametrize("fault", ["kill", "stop"])
def test_a_head_that_is_gone(
    app: Rota, tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attempt there failed, saying so; the worker goes on with its other jobs, and can stop."""
    monkeypatch.setattr(ours, "SILENCE", 4.0)
    deaf = on_ray(app, clustered.deaf, max_attempts=1)

    @app.task(name="beside")
    async def beside() -> None: ...

    lost = deaf.enqueue(str(tmp_path), 1)
    with started() as head, working(app, ray=head.address):
        until((tmp_path / "began-1").exists, seconds=PATIENT)
        getattr(head, fault)()
        with pytest.raises(JobFailed, match="the Ray cluster"):
            lost.result(timeout=PATIENT)
        assert beside.enqueue().wait(timeout=PATIENT).state is State.COMPLETED
        waits = deaf.enqueue(str(tmp_path), 2)
        until(lambda: waits.record().state is State.AVAILABLE, seconds=PATIENT)
    assert [error.exception for error in lost.record().errors] == ["rota.NodeLost"]


def test_a_resource(app: Rota, head: Head) -> None:
    """A job waits where other workers see it as long as no machine has what it asks for."""
    on_gpu = on_ray(app, clustered.on_gpu, ray={"num_gpus": 1})
    half = on_ray(app, clustered.whereabouts, ray={"num_cpus": 0.5})
    with working(app, ray=head.address):
        handle = on_gpu.enqueue()
        assert half.enqueue().result(timeout=PATIENT) != os.getpid()
        assert handle.record().state is State.AVAILABLE


def test_a_module_that_is_not_there(app: Rota, head: Head) -> None:
    """A handler that a node cannot import is a failed attempt that says so."""
    task = on_ray(app, clustered.double, max_attempts=1)
    task.function.__module__, before = "no_such_module", task.function.__module__
    try:
        handle = task.enqueue(1)
        with (
            working(app, ray=head.address),
            pytest.raises(JobFailed, match="No module named 'no_such_module'"),
        ):
            handle.result(timeout=PATIENT)
    finally:
        task.function.__module__ = before


def test_the_command(app: Rota, head: Head, tmp_path: Path) -> None:
    """`rota worker --ray` stops in order at SIGTERM, which Ray would seize: what runs may end."""
    handle = on_ray(app, clustered.linger_on_ray).enqueue(str(tmp_path), 1)
    words = ["-m", "rota", "worker", "tests.worker.clustered:rota", "--ray", head.address]
    with subprocess.Popen(
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, clustered.URL: app.url},
        stderr=subprocess.PIPE,
        text=True,
    ) as worker:
        try:
            until((tmp_path / "began-1-1").exists, seconds=PATIENT)
            worker.send_signal(signal.SIGTERM)
            clustered.note(str(tmp_path), "go")
            _, said = worker.communicate(timeout=PATIENT)
        finally:
            worker.kill()
    assert worker.returncode == 0
    assert "worker stopped" in said
    assert "SIGTERM received" not in said
    assert handle.record().state is State.COMPLETED


def test_a_wrong_address(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker whose cluster does not answer says so before it claims."""
    monkeypatch.setattr(ours, "TIMEOUT", 3.0)
    on_ray(app, clustered.double)
    with pytest.raises(ConfigError, match="no Ray cluster answers at localhost:9"):
        drained(app, ray="localhost:9")
