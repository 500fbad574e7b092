"""Where handlers run: on the loop, in threads, in child processes."""

import asyncio
import os
import threading
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import pytest

from rota import ChildDied, ConfigError, Context, JobFailed, Rota, RotaError, State, WorkerConfig
from rota.worker import Worker
from rota.worker.call import Call, Stop
from rota.worker.executors.seam import TimeLimit
from rota.worker.executors.thread import Threads
from tests.fixtures.workers import drained, until, working
from tests.worker import chores
from tests.worker.chores import adopt

VAR = ContextVar("VAR", default="clean")


def test_on_the_loop(app: Rota) -> None:
    """An async handler runs, and what it returns is stored."""

    @app.task(name="double", store_result=True)
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number

    handles = [double.enqueue(number) for number in range(20)]
    with working(app):
        assert [handle.result(timeout=20) for handle in handles] == [2 * n for n in range(20)]
    assert {handle.record().attempt for handle in handles} == {1}


def test_in_threads(app: Rota) -> None:
    """A plain handler runs in a thread that is not the loop's."""

    @app.task(name="name", store_result=True)
    def name(number: int) -> str:
        del number
        return threading.current_thread().name

    handles = [name.enqueue(number) for number in range(20)]
    with working(app):
        for handle in handles:
            assert handle.result(timeout=20).startswith("rota-handler")


def test_in_processes(app: Rota) -> None:
    """A handler of the process executor runs in a child, and its result comes back."""
    add, whereabouts = adopt(app, chores.add), adopt(app, chores.whereabouts)
    sums = [add.enqueue(number, two=1) for number in range(10)]
    place = whereabouts.enqueue()
    with working(app, processes=2):
        assert [handle.result(timeout=20) for handle in sums] == list(range(1, 11))
        assert place.result(timeout=20) != os.getpid()


def test_without_a_stored_result(app: Rota) -> None:
    """What a handler returns is not stored unless the task asks for it."""

    @app.task(name="talk")
    async def talk() -> str:
        return "much"

    handle = talk.enqueue()
    drained(app)
    assert handle.record().result is None
    assert handle.record().state is State.COMPLETED


@pytest.mark.parametrize("how", ["exit", "kill"])
def test_a_crashed_child(app: Rota, how: str) -> None:
    """A child that dies costs the attempt it was running; others, and later ones, go on."""
    crash, add = adopt(app, chores.crash, max_attempts=1), adopt(app, chores.add)
    crashed = [crash.enqueue(how) for _ in range(3)]
    fine = [add.enqueue(number, 1) for number in range(6)]
    with working(app, processes=2):
        assert [handle.result(timeout=20) for handle in fine] == [1, 2, 3, 4, 5, 6]
        for handle in crashed:
            with pytest.raises(JobFailed):
                handle.result(timeout=20)
        assert add.enqueue(1, 2).result(timeout=20) == 3
    [error] = crashed[0].record().errors
    assert error.exception == "rota.ChildDied"
    assert ("exit status 3" if how == "exit" else "signal 9") in error.message


def test_a_policy_for_crashes(app: Rota) -> None:
    """A retry policy can tell a child that died from an exception of the handler."""
    told: list[BaseException] = []

    def policy(_attempt: int, error: BaseException) -> float | None:
        told.append(error)
        return 0.0 if isinstance(error, ChildDied) else None

    handle = adopt(app, chores.crash, retry=policy, max_attempts=2).enqueue("exit")
    drained(app)
    assert [error.exception for error in handle.record().errors] == ["rota.ChildDied"] * 2
    [error] = told
    assert isinstance(error, RotaError)
    assert "exit status 3" in str(error)


def test_a_nested_task_cannot_be_found(app: Rota) -> None:
    """A process task inside a function is refused when the worker is made."""

    @app.task(name="inner", executor="process")
    def inner() -> None: ...

    with pytest.raises(ConfigError, match="top level of a module"):
        Worker(app, WorkerConfig())


def test_nothing_to_run(app: Rota) -> None:
    """A worker without tasks and queues has nothing to do, and says so."""
    with pytest.raises(ConfigError, match="no tasks"):
        Worker(app)


def test_the_context(app: Rota) -> None:
    """The context tells a handler about its job, in a thread and on the loop."""
    seen: list[tuple[Any, ...]] = []

    def look(ctx: Context) -> None:
        seen.append(
            (ctx.job_id, ctx.task, ctx.queue, ctx.priority, ctx.attempt, ctx.max_attempts,
             ctx.timeout, ctx.cancelled)
        )  # fmt: skip

    @app.task(name="on-loop", priority=3, timeout=60)
    async def on_loop(*, ctx: Context | None = None) -> None:
        assert ctx is not None
        look(ctx)

    @app.task(name="in-thread", max_attempts=2)
    def in_thread(*, ctx: Context | None = None) -> None:
        assert ctx is not None
        look(ctx)

    first, second = on_loop.enqueue().id, in_thread.enqueue().id
    drained(app)
    assert sorted(seen) == [
        (first, "on-loop", "default", 3, 1, 5, 60.0, False),
        (second, "in-thread", "default", 0, 1, 2, None, False),
    ]


@pytest.mark.parametrize("concurrency", [1, 10])
def test_context_variables_on_the_loop(app: Rota, concurrency: int) -> None:
    """What an async handler puts into a context variable is not there for the next job."""
    seen: list[str] = []

    @app.task(name="mark")
    async def mark() -> None:
        seen.append(VAR.get())
        VAR.set("dirty")

    mark.enqueue_many([()] * 10)
    drained(app, concurrency=concurrency)
    assert seen == ["clean"] * 10


def test_context_variables_in_threads(app: Rota) -> None:
    """What a handler in a thread puts into a context variable is not there for the next job."""
    seen: list[str] = []

    @app.task(name="mark")
    def mark() -> None:
        seen.append(VAR.get())
        VAR.set("dirty")

    mark.enqueue_many([()] * 10)
    drained(app, concurrency=1)
    assert seen == ["clean"] * 10


def test_context_variables_in_processes(app: Rota) -> None:
    """The jobs of one child do not see each other's context variables either."""
    mark = adopt(app, chores.marked)
    handles = [mark.enqueue() for _ in range(3)]
    drained(app, processes=1)
    assert [handle.result(timeout=0) for handle in handles] == ["clean"] * 3


def test_stop_iteration(app: Rota) -> None:
    """A StopIteration, which a future cannot carry, is a failed attempt like any other."""

    @app.task(name="first", max_attempts=1)
    def first() -> None:
        next(iter([]))

    handle = first.enqueue()
    with working(app), pytest.raises(JobFailed, match="StopIteration"):
        handle.result(timeout=10)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_exits_are_failures(app: Rota, error: type[BaseException]) -> None:
    """A handler that wants to end the process ends only its attempt."""

    @app.task(name="in_thread", max_attempts=1)
    def in_thread() -> None:
        raise error

    @app.task(name="on_loop", max_attempts=1)
    async def on_loop() -> None:
        raise error

    @app.task(name="fine", store_result=True)
    async def fine() -> int:
        return 1

    bad = [in_thread.enqueue(), on_loop.enqueue()]
    with working(app):
        for handle in bad:
            with pytest.raises(JobFailed, match=error.__name__):
                handle.result(timeout=10)
        assert fine.enqueue().result(timeout=10) == 1


def test_a_handler_that_cancels_itself(app: Rota) -> None:
    """A handler that cancels the asyncio task it runs in fails its attempt; the worker goes on."""

    @app.task(name="odd", max_attempts=1)
    async def odd() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    @app.task(name="fine", store_result=True)
    async def fine() -> int:
        return 1

    bad = [odd.enqueue() for _ in range(4)]
    with working(app, concurrency=2):
        for handle in bad:
            with pytest.raises(JobFailed, match="Cancelled"):
                handle.result(timeout=10)
        assert fine.enqueue().result(timeout=10) == 1


def test_a_handler_that_cancels_itself_and_returns(app: Rota) -> None:
    """A cancellation that a handler has asked for too late does not hit the next job."""

    @app.task(name="odd")
    async def odd() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    @app.task(name="fine", store_result=True, max_attempts=1)
    async def fine() -> int:
        await asyncio.sleep(0)
        return 1

    handles = []
    for _ in range(5):
        odd.enqueue()
        handles.append(fine.enqueue())
    with working(app, concurrency=1):
        assert [handle.result(timeout=10) for handle in handles] == [1] * 5


def test_a_handler_that_raises_cancelled(app: Rota) -> None:
    """A CancelledError that nobody asked for is a failed attempt."""

    @app.task(name="odd", max_attempts=1)
    async def odd() -> None:
        raise asyncio.CancelledError

    handle = odd.enqueue()
    with working(app), pytest.raises(JobFailed, match="Cancelled"):
        handle.result(timeout=10)


def test_threads_run_side_by_side(app: Rota) -> None:
    """As many threads run at once as the concurrency says."""
    together = threading.Barrier(4)

    @app.task(name="meet")
    def meet() -> None:
        together.wait(10)

    ids = meet.enqueue_many([()] * 8)
    with working(app, concurrency=4):
        until(
            lambda: all(job.state.finished for job in app.database.run(app.database.store.get(ids)))
        )
    assert {job.state for job in app.database.run(app.database.store.get(ids))} == {State.COMPLETED}


def test_a_thread_that_has_no_place_yet() -> None:
    """A handler that waits for a place does not begin once its worker has lost its session."""
    begun: list[int] = []
    go = threading.Event()

    async def both() -> None:
        loop, first = asyncio.get_running_loop(), asyncio.Event()

        def handler(number: int) -> None:
            begun.append(number)
            loop.call_soon_threadsafe(first.set)
            go.wait(20)

        arguments: Any = SimpleNamespace(of=lambda call: ((call.job,), {}))
        events: Any = None
        threads = Threads(1, arguments, events, asyncio.Semaphore(1))
        calls: list[Call] = []

        async def run(number: int) -> None:
            task = asyncio.current_task()
            assert task is not None
            call: Any = Call(task)
            call.job, call.task = number, SimpleNamespace(function=handler)
            call.home = SimpleNamespace(around_threads=())
            calls.append(call)
            await threads.submit(call, TimeLimit(None, go.set))

        runs = [asyncio.ensure_future(run(number)) for number in (1, 2)]
        await first.wait()
        for call in calls:
            threads.cancel(call, Stop.LOST)
        await asyncio.wait({runs[1]}, timeout=1)
        go.set()
        await asyncio.wait(runs)
        assert (runs[0].cancelled(), runs[1].cancelled()) == (False, True)

    asyncio.run(both())
    assert begun == [1]
