"""Middleware around running jobs, wherever the handler runs."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import pytest

from rota import BatchContext, Context, Discard, JobFailed, Rota, Snooze, State
from rota.worker.call import Call
from rota.worker.calls import Calls
from tests.fixtures.workers import drained, until, working
from tests.worker import chores
from tests.worker.chores import adopt

REQUEST = ContextVar("REQUEST", default="none")

ANext = Callable[[], Awaitable[Any]]
Next = Callable[[], Any]


def adder(app: Rota, executor: str) -> Any:
    """A task that adds, where it is wanted."""
    if executor == "process":
        return adopt(app, chores.add)

    async def on_loop(one: int, two: int) -> int:
        return one + two

    def in_thread(one: int, two: int) -> int:
        return one + two

    function: Any = on_loop if executor == "loop" else in_thread
    return app.task(name="add", store_result=True, max_attempts=1)(function)


EVERYWHERE = pytest.mark.parametrize("executor", ["loop", "thread", "process"])


@EVERYWHERE
def test_async_around_every_handler(app: Rota, executor: str) -> None:
    """An async one sees each job and its result, whatever the executor, on the event loop."""
    seen: list[tuple[str, int, dict[str, Any], Any, str]] = []

    @app.around_run
    async def watch(job: Context, call_next: ANext) -> Any:
        value = await call_next()
        seen.append((job.task, job.attempt, job.args, value, threading.current_thread().name))
        return value

    task = adder(app, executor)
    handle = task.enqueue(1, 2)
    drained(app, processes=1)
    assert handle.result(timeout=0) == 3
    [(name, attempt, args, value, thread)] = seen
    assert (name, attempt, args, value) == (task.name, 1, {"one": 1, "two": 2}, 3)
    assert not thread.startswith("rota-")


@pytest.mark.parametrize("executor", ["loop", "thread"])
def test_one_context(app: Rota, executor: str) -> None:
    """All the way in there is one context: who asks for a stop is heard by middleware, too."""
    seen: set[int] = set()
    contexts: list[Context] = []

    @app.around_run
    async def outer(job: Context, call_next: ANext) -> Any:
        contexts.append(job)
        return await call_next()

    @app.around_run
    def inner(job: Context, call_next: Next) -> Any:
        contexts.append(job)
        return call_next()

    async def on_loop(ctx: Context) -> None:
        contexts.append(ctx)

    def in_thread(ctx: Context) -> None:
        contexts.append(ctx)

    function: Any = on_loop if executor == "loop" else in_thread
    app.task(name="job")(function).enqueue()
    drained(app)
    seen.update(id(one) for one in contexts)
    assert len(contexts) == (2 if executor == "loop" else 3)
    assert len(seen) == 1


def test_sync_in_the_thread_of_the_handler(app: Rota) -> None:
    """A plain function runs in the handler's thread, inside the async ones, and only there."""
    order: list[str] = []
    threads: set[str] = set()

    @app.around_run
    def inner(_: Context, call_next: Next) -> Any:
        threads.add(threading.current_thread().name)
        order.append("sync in")
        value = call_next()
        order.append("sync out")
        return value

    @app.around_run
    async def outer(_: Context, call_next: ANext) -> Any:
        order.append("async in")
        value = await call_next()
        order.append("async out")
        return value

    @app.task(name="thread")
    def in_thread() -> None:
        threads.add(threading.current_thread().name)
        order.append("handler")

    @app.task(name="loop")
    async def on_loop() -> None:
        order.append("handler on the loop")

    in_thread.enqueue()
    drained(app)
    assert order == ["async in", "sync in", "handler", "sync out", "async out"]
    assert len(threads) == 1
    order.clear()
    on_loop.enqueue()
    drained(app)
    assert order == ["async in", "handler on the loop", "async out"]


def test_the_first_is_the_outermost(app: Rota) -> None:
    """Middleware nests in the order of its registration."""
    order: list[str] = []

    def named(name: str) -> None:
        @app.around_run
        async def around(_: Context, call_next: ANext) -> Any:
            order.append(name)
            return await call_next()

        @app.around_run
        def around_thread(_: Context, call_next: Next) -> Any:
            order.append(f"{name} in thread")
            return call_next()

    named("one")
    named("two")

    @app.task(name="job")
    def job() -> None: ...

    job.enqueue()
    drained(app)
    assert order == ["one", "two", "one in thread", "two in thread"]


@EVERYWHERE
def test_another_result(app: Rota, executor: str) -> None:
    """What the middleware returns is the result."""

    @app.around_run
    async def double(_: Context, call_next: ANext) -> Any:
        return 2 * await call_next()

    handle = adder(app, executor).enqueue(1, 2)
    drained(app, processes=1)
    assert handle.result(timeout=0) == 6


@EVERYWHERE
def test_a_result_that_does_not_fit(app: Rota, executor: str) -> None:
    """A result that cannot be stored discards the job, as if the handler had given it."""

    @app.around_run
    async def spoil(_: Context, call_next: ANext) -> Any:
        await call_next()
        return "three"

    handle = adder(app, executor).enqueue(1, 2)
    drained(app, processes=1)
    record = handle.record()
    assert (record.state, record.attempt) == (State.DISCARDED, 1)
    assert "cannot be stored" in record.errors[0].message


@EVERYWHERE
@pytest.mark.parametrize("how", ["raised", "returned"])
def test_an_outcome(app: Rota, executor: str, how: str) -> None:
    """An outcome of the middleware is the job's, and the handler need not be called."""

    @app.around_run
    async def later(_: Context, __: ANext) -> Any:
        if how == "raised":
            raise Snooze(3600)
        return Discard("not today")

    handle = adder(app, executor).enqueue(1, 2)
    with working(app, processes=1):
        until(lambda: handle.status in {State.SCHEDULED, State.DISCARDED})
    assert handle.status is (State.SCHEDULED if how == "raised" else State.DISCARDED)


@pytest.mark.parametrize("executor", ["loop", "thread"])
def test_what_the_handler_raises(app: Rota, executor: str) -> None:
    """Middleware sees the exception; what it raises instead is the failure, what it returns counts."""
    seen: list[str] = []

    @app.around_run
    async def translate(job: Context, call_next: ANext) -> Any:
        try:
            return await call_next()
        except ZeroDivisionError as error:
            seen.append(type(error).__name__)
            if job.args["b"] is None:
                return "saved"
            raise LookupError("instead") from error

    def divide(b: int | None) -> str:
        raise ZeroDivisionError(b)

    async def adivide(b: int | None) -> str:
        raise ZeroDivisionError(b)

    function: Any = divide if executor == "thread" else adivide
    task = app.task(name="divide", store_result=True, max_attempts=1)(function)
    failed, saved = task.enqueue(0), task.enqueue(None)
    drained(app)
    assert seen == ["ZeroDivisionError"] * 2
    assert failed.record().errors[0].exception == "builtins.LookupError"
    with pytest.raises(JobFailed, match="instead"):
        failed.result(timeout=0)
    assert saved.result(timeout=0) == "saved"


def test_sync_middleware_that_raises(app: Rota) -> None:
    """A plain function may change the result and raise outcomes like an async one."""

    @app.around_run
    def strict(job: Context, call_next: Next) -> Any:
        if job.args["number"] < 0:
            raise Discard("negative")
        return 10 * call_next()

    @app.task(name="job", store_result=True)
    def job(number: int) -> int:
        return number

    good, bad = job.enqueue(4), job.enqueue(-4)
    drained(app)
    assert good.result(timeout=0) == 40
    assert bad.record().errors[0].message == "negative"


@pytest.mark.parametrize("executor", ["loop", "thread"])
def test_context_variables(app: Rota, executor: str) -> None:
    """What async middleware sets, the handler sees, in a thread too, and no other job does."""

    @app.around_run
    async def name_it(job: Context, call_next: ANext) -> Any:
        if job.args["name"] is not None:
            REQUEST.set(job.args["name"])
        return await call_next()

    async def on_loop(name: str | None) -> str:
        del name
        return REQUEST.get()

    def in_thread(name: str | None) -> str:
        del name
        return REQUEST.get()

    function: Any = on_loop if executor == "loop" else in_thread
    task = app.task(name="name", store_result=True)(function)
    ids = task.enqueue_many([("one",), (None,), ("two",), (None,)])
    drained(app, concurrency=1)
    assert [app.job(one).record().result for one in ids] == ['"one"', '"none"', '"two"', '"none"']


@pytest.mark.parametrize("executor", ["loop", "thread"])
def test_one_call_for_a_batch(app: Rota, executor: str) -> None:
    """Around a batch it is called once, with the context of all its jobs."""
    seen: list[tuple[int, str]] = []

    @app.around_run
    async def watch(batch: BatchContext, call_next: ANext) -> Any:
        seen.append((len(batch.jobs), "async"))
        value = await call_next()
        return [*value[:-1], Discard("the last one")]

    @app.around_run
    def watch_thread(batch: BatchContext, call_next: Next) -> Any:
        seen.append((len(batch.jobs), "sync"))
        return call_next()

    async def on_loop(numbers: list[int]) -> list[int]:
        return numbers

    def in_thread(numbers: list[int]) -> list[int]:
        return numbers

    function: Any = on_loop if executor == "loop" else in_thread
    task: Any = app.task(name="batch", batch=10, within=0.01, store_result=True)(function)
    ids = task.enqueue_many([(n,) for n in range(3)])
    drained(app)
    assert seen == [(3, "async"), (3, "sync")][: 1 if executor == "loop" else 2]
    states = [app.job(one).status for one in ids]
    assert states == [State.COMPLETED, State.COMPLETED, State.DISCARDED]


def test_timeouts_reach_it(app: Rota) -> None:
    """The handler's timeout comes out of `call_next` as the exception that it is."""
    seen: list[str] = []

    @app.around_run
    async def watch(_: Context, call_next: ANext) -> Any:
        try:
            return await call_next()
        except TimeoutError:
            seen.append("timeout")
            raise

    @app.task(name="slow", timeout=0.05, max_attempts=1)
    async def slow() -> None:
        await asyncio.sleep(3600)

    handle = slow.enqueue()
    drained(app)
    assert seen == ["timeout"]
    assert handle.status is State.DISCARDED


def test_cancelling_goes_through_it(app: Rota) -> None:
    """A cancelled job unwinds its middleware, and is cancelled."""
    began = threading.Event()
    unwound: list[bool] = []

    @app.around_run
    async def watch(_: Context, call_next: ANext) -> Any:
        try:
            return await call_next()
        finally:
            unwound.append(True)

    @app.task(name="slow")
    async def slow() -> None:
        began.set()
        await asyncio.sleep(3600)

    handle = slow.enqueue()
    with working(app, session_timeout=1.0):
        assert began.wait(20)
        handle.cancel()
        until(lambda: handle.status is State.CANCELLED)
    assert unwound == [True]


def test_without_middleware_nothing_is_called(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none is registered, a job takes the way that it always took."""
    called: list[str] = []
    made = Calls._call_through

    async def spy(self: Calls, call: Call) -> Any:
        called.append(call.task.name)
        return await made(self, call)

    monkeypatch.setattr(Calls, "_call_through", spy)

    @app.task(name="job")
    async def job() -> None: ...

    job.enqueue_many([()] * 5)
    drained(app)
    assert called == []

    @app.around_run
    async def watch(_: Context, call_next: ANext) -> Any:
        return await call_next()

    job.enqueue()
    drained(app)
    assert called == [job.name]
