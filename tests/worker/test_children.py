"""Child processes: their lifespans, their resources, and when they are replaced."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from rota import ChildDied, ConfigError, JobFailed, LifespanFailed, Rota, State, WorkerConfig
from rota.events import ChildReplaced, LifespanOverdue, WorkerStarted
from rota.store.protocol import Store
from rota.worker import Worker
from rota.worker.executors.child import Setting, main
from tests.fixtures.workers import WorkerProcess, drained, until, working
from tests.worker import chores, equipped
from tests.worker.chores import adopt

MB = 1024**2


@pytest.fixture
def diary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[list[str]]]:
    """What children have written down so far, as words."""
    file = tmp_path / "diary"
    file.touch()
    monkeypatch.setenv(equipped.DIARY, str(file))
    return lambda: [line.split() for line in file.read_text(encoding="utf-8").splitlines()]


def for_children(app: Rota, *functions: Any, **options: Any) -> None:
    """Register lifespans for child processes."""
    for function in functions:
        app.lifespan(executor="process", **options)(function)


def did(diary: list[list[str]]) -> list[str]:
    """What was written down, without the processes."""
    return [" ".join(words[:-1]) for words in diary]


# The pipe ----------------------------------------------------------------------------------------


def test_a_worker_that_is_gone(capfd: pytest.CaptureFixture[str]) -> None:
    """A child whose worker has gone, with an answer unread, ends without a word."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=main, args=(theirs, "tests.worker.chores", Setting()))
    child.start()
    theirs.close()
    # It is ready, and what it said stays in the pipe: to the child the connection is reset.
    assert ours.poll(60)
    ours.close()
    child.join(60)
    assert (child.exitcode, capfd.readouterr().err) == (0, "")


# Lifespans ---------------------------------------------------------------------------------------


def test_once_per_child(app: Rota, diary: Callable[[], list[list[str]]]) -> None:
    """Entered once in each child, before the worker claims; left, in reverse, when the child ends."""
    for_children(app, equipped.model, equipped.cache)
    predict = adopt(app, equipped.predict)
    handles = [predict.enqueue(number) for number in range(3)]
    at_start: list[list[str]] = []
    app.on(WorkerStarted)(lambda _: at_start.append(did(diary())))
    drained(app, processes=1)
    results = [handle.result(timeout=0) for handle in handles]
    [child] = {pid for result in results for pid in result[1:]}
    assert child != os.getpid()
    assert [result[0] for result in results] == [0, 1, 2]
    assert at_start == [["enter model", "enter cache"]]
    assert did(diary()) == ["enter model", "enter cache", "leave cache", "leave model"]
    assert {pid for *_, pid in diary()} == {str(child)}


def test_the_context_of_a_child(app: Rota, diary: Callable[[], list[list[str]]]) -> None:
    """`ctx.resource` knows the resources of the child."""
    for_children(app, equipped.model, equipped.cache)
    handle = adopt(app, equipped.ask).enqueue()
    drained(app, processes=1)
    assert str(handle.result(timeout=0)) == diary()[0][-1]


def test_a_child_that_crashed(app: Rota, diary: Callable[[], list[list[str]]]) -> None:
    """The child that takes its place enters the lifespans anew."""
    for_children(app, equipped.model)
    crash = adopt(app, chores.crash, max_attempts=1)
    where = adopt(app, equipped.whereabouts)
    with working(app, processes=1):
        with pytest.raises(JobFailed):
            crash.enqueue("exit").result(timeout=20)
        child = where.enqueue().result(timeout=20)
    assert did(diary()) == ["enter model", "enter model", "leave model"]
    assert diary()[-1][-1] == str(child)


def test_an_error_at_entry(app: Rota, diary: Callable[[], list[list[str]]]) -> None:
    """It ends the worker before it claims, and says which lifespan it was; earlier ones are left."""
    for_children(app, equipped.model, equipped.broken)
    handle = adopt(app, equipped.whereabouts).enqueue()
    with (
        app.events.collect(WorkerStarted) as started,
        pytest.raises(LifespanFailed, match="child process: lifespan 'broken' failed: OSError"),
    ):
        drained(app, processes=1)
    assert (started, handle.status) == ([], State.AVAILABLE)
    assert did(diary()) == ["enter model", "enter broken", "leave model"]


def test_an_error_at_a_later_entry(app: Rota, diary: Callable[[], list[list[str]]]) -> None:
    """Where only a later child cannot enter, the attempt that waited for it has failed."""
    for_children(app, equipped.broken_later)
    crash = adopt(app, chores.crash, max_attempts=1)
    where = adopt(app, equipped.whereabouts, max_attempts=1)
    with working(app, processes=1):
        with pytest.raises(JobFailed):
            crash.enqueue("exit").result(timeout=20)
        handle = where.enqueue()
        with pytest.raises(JobFailed, match="lifespan 'broken_later' failed"):
            handle.result(timeout=20)
    assert handle.record().errors[0].exception == "rota.errors.LifespanFailed"
    assert did(diary()) == ["entered"]


def test_one_that_is_stuck(app: Rota, diary: Callable[[], list[list[str]]]) -> None:
    """A child that does not leave its lifespan in time is killed, and an event says so."""
    for_children(app, equipped.stuck, timeout=0.5)
    handle = adopt(app, equipped.whereabouts).enqueue()
    with app.events.collect(LifespanOverdue) as overdue:
        drained(app, processes=1)
    child = handle.result(timeout=0)
    assert overdue == [LifespanOverdue(f"stuck (child process {child})", 1.5)]
    assert not psutil.pid_exists(child)
    assert did(diary()) == ["leave stuck"]


def test_an_async_one_in_disguise(app: Rota) -> None:
    """What turns out to be async only in the child is refused there, before anything is claimed."""
    for_children(app, equipped.gives_async)
    adopt(app, equipped.whereabouts)
    with pytest.raises(ConfigError, match="'gives_async' is async, but a child"):
        drained(app, processes=1)


def test_a_stop_while_the_first_child_starts(
    app: Rota, diary: Callable[[], list[list[str]]]
) -> None:
    """A worker that is told to stop does not wait for a child's lifespans."""
    for_children(app, equipped.model, equipped.hangs)
    adopt(app, equipped.whereabouts)
    worker = Worker(app, WorkerConfig(processes=1))
    running = threading.Thread(target=worker.run)
    with app.events.collect(WorkerStarted) as started:
        running.start()
        until(lambda: "enter hangs" in did(diary()))
        worker.stop()
        running.join(10)
        assert not running.is_alive()
    assert started == []
    child = int(diary()[0][-1])
    until(lambda: not psutil.pid_exists(child))


# Resources ---------------------------------------------------------------------------------------


def test_a_missing_resource(app: Rota, diary: Callable[[], list[list[str]]]) -> None:
    """A child's handler that needs what no child lifespan yields ends the worker at its start."""
    for_children(app, equipped.model)
    handle = adopt(app, equipped.predict).enqueue(1)
    why = (
        r"task 'tests\.worker\.equipped\.predict': parameter `cache: Cache`: no lifespan of child "
        r"processes yields it; there are: model \(Model\)"
    )
    with pytest.raises(ConfigError, match=why):
        drained(app, processes=1)
    assert handle.status is State.AVAILABLE
    assert did(diary()) == ["enter model", "leave model"]


@pytest.mark.usefixtures("diary")
def test_a_resource_of_the_worker(app: Rota) -> None:
    """What a lifespan of the worker yields is not in its children, and the error says so."""
    app.lifespan(equipped.model)
    adopt(app, equipped.predict)
    with pytest.raises(ConfigError, match=r"no lifespan of child processes .*executor='process'"):
        drained(app, processes=1)


# Replacing ---------------------------------------------------------------------------------------


def test_max_jobs(app: Rota) -> None:
    """After so many jobs a child is replaced, and an event says so."""
    where = adopt(app, equipped.whereabouts)
    handles = [where.enqueue() for _ in range(5)]
    with app.events.collect(ChildReplaced) as replaced:
        drained(app, processes=1, max_jobs=2)
    pids = [handle.result(timeout=0) for handle in handles]
    assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [2, 2, 1]
    assert replaced == [ChildReplaced(pid, 2, None) for pid in list(dict.fromkeys(pids))[:2]]
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_max_memory(app: Rota) -> None:
    """A child that has more memory in use than it may is replaced, once its job has ended."""
    hold = adopt(app, chores.hold)
    handles = [hold.enqueue(size) for size in (1, 1, 300 * MB, 1)]
    with app.events.collect(ChildReplaced) as replaced:
        drained(app, processes=1, max_memory=250 * MB)
    pids = [handle.result(timeout=0) for handle in handles]
    assert pids[0] == pids[1] == pids[2] != pids[3]
    [event] = replaced
    assert (event.pid, event.jobs) == (pids[0], 3)
    assert event.memory is not None
    assert 300 * MB < event.memory < 500 * MB


def test_the_options_of_the_command(store: Store, store_url: str) -> None:
    """`rota worker --max-jobs --max-memory` does so with processes of its own; the log says why."""
    del store  # it made the tables
    with Rota(store_url) as app:
        where, hold = adopt(app, chores.whereabouts), adopt(app, chores.hold)
        handles = [where.enqueue() for _ in range(3)]
        large = hold.enqueue(300 * MB)
        after = where.enqueue()
        config = {"processes": 1, "concurrency": 1, "max_jobs": 3, "max_memory": "250MB"}
        with WorkerProcess(app.url, **config) as worker:
            [first] = {handle.result(timeout=20) for handle in handles}
            second = large.result(timeout=20)
            assert after.result(timeout=20) not in {first, second}
            assert first != second
            worker.signal()
            assert worker.ended() == 0
        assert f"child process {first} is replaced after 3 job(s); it has " in worker.said
        assert f"child process {second} is replaced after 1 job(s); it has 3" in worker.said


def test_a_replaced_child_leaves_its_lifespans(
    app: Rota, diary: Callable[[], list[list[str]]]
) -> None:
    """Each child enters, and leaves when it has run all it may."""
    for_children(app, equipped.model)
    where = adopt(app, equipped.whereabouts)
    handles = [where.enqueue() for _ in range(2)]
    drained(app, processes=1, max_jobs=1)
    for handle in handles:
        own = [words[:-1] for words in diary() if words[-1] == str(handle.result(timeout=0))]
        assert own == [["enter", "model"], ["leave", "model"]]
    assert len(diary()) == 4


def test_a_failed_attempt_counts(app: Rota) -> None:
    """`max_jobs` counts jobs however they end, and the error of the last one is not lost."""
    fail = adopt(app, chores.fail, max_attempts=1)
    handles = [fail.enqueue("oh") for _ in range(2)]
    with app.events.collect(ChildReplaced) as replaced:
        drained(app, processes=1, max_jobs=1)
    assert [event.jobs for event in replaced] == [1, 1]
    assert {handle.record().errors[0].message for handle in handles} == {"oh"}


def test_a_child_that_was_killed_from_outside(app: Rota) -> None:
    """A child that goes as its next job comes may cost an attempt; another one takes its place."""
    told: list[BaseException] = []

    def policy(_attempt: int, error: BaseException) -> float:
        told.append(error)
        return 0.0

    where = adopt(app, equipped.whereabouts, retry=policy)
    with working(app, processes=1):
        first = where.enqueue().result(timeout=20)
        os.kill(first, signal.SIGKILL)
        assert where.enqueue().result(timeout=20) != first
    assert all(isinstance(error, ChildDied) for error in told)


def test_an_idle_child_that_died(app: Rota) -> None:
    """It costs no job an attempt: the next one has another child."""
    where = adopt(app, chores.whereabouts, max_attempts=1)
    with working(app, processes=1):
        first = where.enqueue().result(timeout=20)
        os.kill(first, signal.SIGKILL)
        # It has ended, and is left for its parent to notice.
        os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
        assert where.enqueue().result(timeout=20) != first


@pytest.mark.parametrize("ends", [False, True])
def test_a_child_that_leaves_a_process_behind(app: Rota, tmp_path: Path, *, ends: bool) -> None:
    """Its time limit ends the job, or its own end does, though that process has the pipe."""
    file = tmp_path / "pid"
    fork = adopt(app, chores.fork, max_attempts=1, timeout=None if ends else 2.0)
    stuck = fork.enqueue(str(file), ends=ends)
    after = adopt(app, chores.whereabouts).enqueue()
    with working(app, processes=1):
        until(file.exists)
        try:
            until(lambda: stuck.record().state is State.DISCARDED)
            assert after.result(timeout=20)
        finally:
            os.kill(int(file.read_text(encoding="utf-8")), signal.SIGKILL)
    assert stuck.record().errors[0].exception == (
        "rota.ChildDied" if ends else "builtins.TimeoutError"
    )
