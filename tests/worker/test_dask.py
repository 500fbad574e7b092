"""Handlers on a real Dask cluster of two processes.

`test_dask_engine` and `test_cluster` have what needs none.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import distributed
import pytest

from rota import Backoff, ConfigError, JobFailed, Rota, State
from rota.events import ClusterChanged
from rota.worker.executors import cluster as ours
from rota.worker.executors import dask as engine
from tests.fixtures.workers import ROOT, drained, records, until, working
from tests.worker import clustered
from tests.worker.engines import adopt

Client: Any = distributed.Client
LocalCluster: Any = distributed.LocalCluster
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
AT_ONCE = Backoff(first=0, factor=1, jitter=0)
PATIENT = 60.0
"""Seconds after which a test has waited in vain: Dask's processes need seconds to begin."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster of two processes with a thread each."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(silence_logs=60, **options) as cluster:
        yield cluster


def pids(cluster: Any) -> set[int]:
    """The processes of its nodes."""
    with Client(cluster, set_as_default=False) as client:
        return {*client.run(os.getpid).values()}


def test_across_processes(app: Rota, cluster: Any) -> None:
    """Handlers run in the cluster's processes; results and errors come back, short jobs together."""
    double, where = adopt(app, clustered.double), adopt(app, clustered.whereabouts)
    failed = adopt(app, clustered.fail, max_attempts=1).enqueue("broken")
    places = [where.enqueue() for _ in range(4)]
    ids = double.enqueue_many([(number,) for number in range(50)])
    drained(app, within=PATIENT, dask=cluster.scheduler_address)
    assert {place.result(timeout=0) for place in places} <= pids(cluster) - {os.getpid()}
    assert [app.job(each).result(timeout=0) for each in ids[:3]] == [0, 2, 4]
    assert {record.state for record in records(app)} == {State.COMPLETED, State.DISCARDED}
    assert failed.record().errors[0].message == "broken"


@pytest.mark.large
def test_what_travels(app: Rota, cluster: Any, tmp_path: Path) -> None:
    """Progress, lines, requests to cancel, and the time's end go to and fro."""
    tell = adopt(app, clustered.tell).enqueue(str(tmp_path))
    linger = adopt(app, clustered.linger, max_attempts=1)
    cancelled = linger.enqueue(str(tmp_path), 1)
    with working(app, dask=cluster.scheduler_address, session_timeout=1.0):
        until(lambda: tell.record().progress is not None)
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


@pytest.mark.large
def test_a_transaction(app: Rota, cluster: Any, tmp_path: Path) -> None:
    """A handler's transaction is on a connection of its node's, and completes the job."""
    with app.transaction() as tx:
        tx.execute("CREATE TABLE effect (number integer)")
    for name in ("go", "end"):
        clustered.note(str(tmp_path), name)
    write = adopt(app, clustered.write)
    with Client(cluster, set_as_default=False) as client:
        client.run(clustered.use, app.url)
    handles = [write.enqueue(str(tmp_path), number) for number in range(20)]
    drained(app, within=PATIENT, dask=cluster.scheduler_address)
    assert [handle.result(timeout=0) for handle in handles] == ["attempt 1"] * 20
    with app.transaction() as tx:
        found = tx.execute("SELECT number FROM effect").fetchall()
    assert sorted(number for (number,) in found) == list(range(20))


@pytest.mark.large
def test_a_killed_node(app: Rota, cluster: Any, tmp_path: Path) -> None:
    """Its job is a failed attempt that says so, and Dask does not run it again; Rota does."""
    deaf = adopt(app, clustered.linger, retry=AT_ONCE)
    handle = deaf.enqueue(str(tmp_path), 1)
    with working(app, dask=cluster.scheduler_address):
        until((tmp_path / "began-1-1").exists, seconds=PATIENT)
        os.kill(int((tmp_path / "began-1-1").read_text(encoding="utf-8")), signal.SIGKILL)
        until((tmp_path / "began-1-2").exists, seconds=PATIENT)
        clustered.note(str(tmp_path), "go")
        assert handle.wait(timeout=PATIENT).state is State.COMPLETED
    record = handle.record()
    assert [error.exception for error in record.errors] == ["rota.NodeLost"]
    assert "was lost during this job" in record.errors[0].message
    assert record.attempt == 2


def become(status: str, pid: int, dask_worker: Any) -> None:
    """Let a node pause, or go on; it does so by itself where its memory is full, or free again."""
    if os.getpid() == pid:
        dask_worker.memory_manager.memory_pause_fraction = False
        dask_worker.status = distributed.Status[status]


@pytest.mark.large
def test_a_node_that_pauses(app: Rota, cluster: Any, tmp_path: Path) -> None:
    """It ends what it runs, and other nodes run what comes."""
    linger, double = adopt(app, clustered.linger, max_attempts=1), adopt(app, clustered.double)
    handle = linger.enqueue(str(tmp_path), 1)
    with (
        app.events.collect(ClusterChanged) as changes,
        working(app, dask=cluster.scheduler_address),
        Client(cluster, set_as_default=False) as client,
    ):
        until((tmp_path / "began-1-1").exists, seconds=PATIENT)
        pid = int((tmp_path / "began-1-1").read_text(encoding="utf-8"))
        client.run(become, "paused", pid)
        until(lambda: changes[-1].slots == 1, seconds=PATIENT)
        assert double.enqueue(1).result(timeout=PATIENT) == 2
        clustered.note(str(tmp_path), "go")
        assert handle.wait(timeout=PATIENT).state is State.COMPLETED
        client.run(become, "running", pid)
        until(lambda: changes[-1].slots == 2, seconds=PATIENT)


@pytest.mark.large
def test_a_resource(app: Rota, cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job waits for a node that has what it asks for, and runs there."""
    monkeypatch.setattr(ours, "PATIENCE", 0.01)
    on_gpu = adopt(app, clustered.on_gpu)

    async def start() -> Any:
        return await distributed.Worker(
            cluster.scheduler_address, resources={"GPU": 1}, nthreads=1, dashboard=False
        )

    with (
        app.events.collect(ClusterChanged) as changes,
        working(app, dask=cluster.scheduler_address, session_timeout=1.0),
    ):
        handle = on_gpu.enqueue()
        until(lambda: changes and changes[0].lacking)
        # The first claim may take it, and gives it back.
        until(lambda: handle.record().state is State.AVAILABLE)
        node = cluster.sync(start)
        try:
            assert handle.result(timeout=PATIENT) == os.getpid()
        finally:
            cluster.sync(node.close)


NODE = ("--no-nanny", "--nthreads", "1", "--no-dashboard")


@contextmanager
def begun(*words: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A process of Dask's."""
    with subprocess.Popen(
        [sys.executable, "-m", "dask", *words],
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
        env=ENVIRONMENT,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def processes(port: int) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """A scheduler, and a worker of Dask's without a nanny."""
    address = f"tcp://127.0.0.1:{port}"
    with (
        begun("scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard") as first,
        begun("worker", address, *NODE) as second,
    ):
        yield [first, second]


def free_port() -> int:
    """One that nobody has."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@pytest.mark.large
def test_a_killed_scheduler(app: Rota, tmp_path: Path) -> None:
    """What it ran is a failed attempt; the worker finds the next scheduler at the same address.

    It hears what runs there.
    """
    port = free_port()
    deaf, tell = adopt(app, clustered.deaf, max_attempts=1), adopt(app, clustered.tell)
    lost = deaf.enqueue(str(tmp_path), 1)
    with processes(port) as first, working(app, dask=f"tcp://127.0.0.1:{port}"):
        until((tmp_path / "began-1").exists, seconds=PATIENT)
        first[0].kill()
        with pytest.raises(JobFailed, match="Dask"):
            lost.result(timeout=PATIENT)
        first[0].wait()
        with processes(port):
            told = tell.enqueue(str(tmp_path))
            until(lambda: told.record().progress is not None, seconds=PATIENT)
            clustered.note(str(tmp_path), "go")
            assert told.result(timeout=PATIENT) == "told"


@pytest.mark.large
def test_a_frozen_scheduler(app: Rota, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same where it does not answer for a while; its nodes run the next jobs once it does."""
    port = free_port()
    deaf, double = adopt(app, clustered.deaf, max_attempts=1), adopt(app, clustered.double)
    lost = deaf.enqueue(str(tmp_path), 1)
    with processes(port) as both, working(app, dask=f"tcp://127.0.0.1:{port}"):
        until((tmp_path / "began-1").exists, seconds=PATIENT)
        monkeypatch.setattr(engine, "TIMEOUT", 1.0)
        both[0].send_signal(signal.SIGSTOP)
        with pytest.raises(JobFailed, match="was lost during this job"):
            lost.result(timeout=PATIENT)
        clustered.note(str(tmp_path), "go")
        monkeypatch.setattr(engine, "TIMEOUT", PATIENT)
        both[0].send_signal(signal.SIGCONT)
        assert double.enqueue(4).result(timeout=PATIENT) == 8


@pytest.mark.large
def test_a_frozen_node(app: Rota, tmp_path: Path) -> None:
    """A job there fails when its time is up, other nodes go on, and the worker can stop."""
    port = free_port()
    deaf, double = adopt(app, clustered.deaf, max_attempts=1), adopt(app, clustered.double)
    address = f"tcp://127.0.0.1:{port}"
    with (
        processes(port) as both,
        app.events.collect(ClusterChanged) as changes,
        working(app, dask=address, grace=0.1),
    ):
        lost = deaf.using(timeout=2).enqueue(str(tmp_path), 1)
        until((tmp_path / "began-1").exists, seconds=PATIENT)
        both[1].send_signal(signal.SIGSTOP)
        with pytest.raises(JobFailed, match="longer than"):
            lost.result(timeout=PATIENT)
        with begun("worker", address, *NODE):
            until(lambda: changes[-1].slots == 2, seconds=PATIENT)
            assert double.enqueue(4).result(timeout=PATIENT) == 8


@pytest.mark.large
def test_a_module_that_is_not_there(app: Rota, cluster: Any) -> None:
    """A handler that a node cannot import is a failed attempt that says so."""
    task = adopt(app, clustered.double, max_attempts=1)
    task.function.__module__, before = "no_such_module", task.function.__module__
    try:
        handle = task.enqueue(1)
        with (
            working(app, dask=cluster.scheduler_address),
            pytest.raises(JobFailed, match="No module named 'no_such_module'"),
        ):
            handle.result(timeout=PATIENT)
    finally:
        task.function.__module__ = before


def test_without_the_package(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker without Dask says what to install."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    adopt(app, clustered.double)
    with pytest.raises(ConfigError, match="pip install 'rota\\[dask\\]'"):
        drained(app, dask="tcp://127.0.0.1:1")
