"""Jobs that need only a call of their handler, until that waits, raises or returns something."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

import pytest

from rota import Context, Rota, State, Unique
from rota.events import JobCompleted, JobsClaimed, JobStarted
from rota.model.job import JobId
from tests.fixtures.workers import drained, records, until, working

VAR = ContextVar("VAR", default="clean")


def state_of(app: Rota, job: JobId) -> State | None:
    """The state of a job, while it is there."""
    found = app.database.run(app.database.store.get([job]))
    return found[0].state if found else None


@pytest.mark.parametrize("waits", ["", "a moment", "long", "twice"])
def test_a_handler_goes_on(app: Rota, waits: str) -> None:
    """Where it has waited for something, with what it has waited for."""
    seen: list[str] = []

    @app.task(name="wait")
    async def wait(name: str) -> None:
        if waits == "a moment":
            await asyncio.sleep(0)
        elif waits:
            seen.append(await asyncio.sleep(0.001, name))
        if waits == "twice":
            seen.append(await asyncio.wait_for(asyncio.sleep(0.001, name), 10))
        seen.append(name)

    wait.enqueue_many([(str(number),) for number in range(20)])
    drained(app)
    each = {"": 1, "a moment": 1, "long": 2, "twice": 3}[waits]
    assert sorted(seen) == sorted(str(number) for number in range(20) for _ in range(each))
    assert len(records(app, State.COMPLETED)) == 20


@pytest.mark.parametrize("waits", [False, True])
def test_a_handler_raises(app: Rota, waits: bool) -> None:  # noqa: FBT001
    """Before or after it waited: its attempt failed, and its traceback begins with the handler."""

    @app.task(name="fail", max_attempts=1)
    async def fail() -> None:
        if waits:
            await asyncio.sleep(0)
        message = "no luck"
        raise LookupError(message)

    handle = fail.enqueue()
    drained(app)
    [error] = handle.record().errors
    assert (error.exception, error.message) == ("builtins.LookupError", "no luck")
    assert error.traceback.splitlines()[1].endswith("in fail")


def test_args_that_do_not_fit(app: Rota) -> None:
    """Of such a job the attempt has failed, and the ones behind it run."""
    seen: list[int] = []

    @app.task(name="count", max_attempts=1)
    async def count(number: int) -> None:
        seen.append(number)

    @app.task(name="words", max_attempts=1)
    async def words(number: str) -> None:
        raise AssertionError(number)

    old = words.enqueue("one")
    count.enqueue(2)
    words.codec = count.codec
    drained(app)
    assert old.record().state is State.DISCARDED
    assert seen == [2]


def test_a_cancel_is_heeded(app: Rota) -> None:
    """A handler that waits can be cancelled, and may have something to do first."""
    begun, cleared = threading.Event(), []

    @app.task(name="linger")
    async def linger() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            cleared.append(await asyncio.sleep(0.001, "cleared"))

    with working(app, session_timeout=1.0):
        handle = linger.enqueue()
        assert begun.wait(20)
        handle.cancel()
        until(lambda: handle.record().state is State.CANCELLED, "the end")
    assert cleared == ["cleared"]


def test_a_cancel_may_be_ignored(app: Rota) -> None:
    """A handler that goes on after it was cancelled completes its job."""
    begun = threading.Event()

    @app.task(name="stubborn", store_result=False)
    async def stubborn() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return

    with working(app, session_timeout=1.0):
        handle = stubborn.enqueue()
        assert begun.wait(20)
        handle.cancel()
        until(lambda: handle.record().state.finished, "the end")
    assert handle.record().state is State.COMPLETED


def test_a_variable_before_a_wait(app: Rota) -> None:
    """A context variable that a handler sets before it waits is unset for those that begin then."""
    seen: list[str] = []

    @app.task(name="mark")
    async def mark() -> None:
        seen.append(VAR.get())
        VAR.set("dirty")
        await asyncio.sleep(0.001)
        seen.append(VAR.get())

    mark.enqueue_many([()] * 10)
    drained(app, concurrency=10)
    assert sorted(seen) == ["clean"] * 10 + ["dirty"] * 10


def test_it_cancels_its_own_task(app: Rota) -> None:
    """That is no concern of the next job."""
    seen: list[int] = []

    @app.task(name="leave")
    async def leave(number: int) -> None:
        task = asyncio.current_task()
        assert task is not None
        if number == 0:
            task.cancel()
        else:
            await asyncio.sleep(0)
        seen.append(number)

    leave.enqueue_many([(number,) for number in range(3)])
    drained(app, concurrency=10)
    assert sorted(seen) == [0, 1, 2]
    assert [record.attempt for record in records(app, State.COMPLETED)] == [1, 1, 1]


def test_completed_before_the_next_one_blocks(app: Rota) -> None:
    """A job is settled while the handler of the next one keeps the loop busy."""
    seen: list[State | None] = []

    @app.task(name="quick")
    async def quick() -> None:
        pass

    @app.task(name="blocks")
    async def blocks(job: int) -> None:
        deadline = time.monotonic() + 5
        while state_of(app, JobId(job)) is State.RUNNING and time.monotonic() < deadline:
            time.sleep(0.001)  # noqa: ASYNC251 - that is what it shows
        seen.append(state_of(app, JobId(job)))

    first = quick.enqueue()
    blocks.enqueue(first.id)
    drained(app, concurrency=10)
    assert seen == [State.COMPLETED]


def test_the_loop_has_its_turn(app: Rota) -> None:
    """However many jobs wait, whatever else runs on the loop goes on."""
    ticks = 0
    at: list[int] = []

    @app.task(name="begin")
    async def begin() -> None:
        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(tick())
        tasks.append(task)

    @app.task(name="spin")
    async def spin() -> None:
        time.sleep(0.001)  # noqa: ASYNC251 - it takes its time
        at.append(ticks)

    tasks: list[asyncio.Task[None]] = []
    begin.enqueue()
    spin.enqueue_many([()] * 100)
    drained(app, concurrency=200)
    assert len(set(at)) > 5


def test_a_key_is_free_again(app: Rota) -> None:
    """A unique job that has completed makes room for the next one."""
    seen: list[int] = []

    @app.task(name="single", unique=Unique())
    async def single(number: int) -> None:
        seen.append(number)

    for _ in range(2):
        single.enqueue(7)
        drained(app)
    assert seen == [7, 7]


def test_one_waits_for_many(app: Rota) -> None:
    """While one handler waits, the worker claims as many others as have ended, without a poll."""
    ran = 0
    enough = asyncio.Event()

    @app.task(name="linger")
    async def linger() -> None:
        await enough.wait()

    @app.task(name="quick")
    async def quick() -> None:
        nonlocal ran
        ran += 1
        if ran == 300:
            enough.set()

    linger.enqueue()
    quick.enqueue_many([()] * 300)
    drained(app, concurrency=2, poll=60.0)
    assert len(records(app, State.COMPLETED)) == 301


def test_claims_go_on_during_a_turn(app: Rota) -> None:
    """The claimer hears of places that have become free while the loop has no time for anything else."""
    claimed: list[int] = []
    ran = 0

    def note(event: JobsClaimed) -> None:
        if event.count:  # the claimer may look again, and find nothing
            claimed.append(event.count)

    @app.task(name="quick")
    async def quick() -> None:
        nonlocal ran
        ran += 1
        deadline = time.monotonic() + 10
        while ran == 100 and len(claimed) == 1 and time.monotonic() < deadline:
            time.sleep(0.001)  # noqa: ASYNC251 - that is what it shows
        if ran == 100:
            seen.append(len(claimed))

    seen: list[int] = []
    app.events.subscribe(JobsClaimed, note)
    quick.enqueue_many([()] * 151)  # one is left for the second claim, hence none for a third
    drained(app, concurrency=150)
    assert claimed[0] == 150
    assert seen == [2]


def test_none_is_a_result(app: Rota) -> None:
    """Where results are stored, and a successor comes after it."""
    seen: list[str] = []

    @app.task(name="after")
    async def after() -> None:
        seen.append("after")

    @app.task(name="nothing", store_result=True)
    async def nothing() -> None:
        pass

    @app.task(name="before", on_success=after)
    async def before() -> None:
        seen.append("before")

    handle = nothing.enqueue()
    before.enqueue()
    drained(app)
    assert handle.record().result == "null"
    assert seen == ["before", "after"]


def test_middleware_around_each(app: Rota) -> None:
    """Also around runs that wait for nothing."""
    seen: list[str] = []

    @app.around_run
    async def around(job: Context, call_next: Callable[[], Awaitable[object]]) -> object:
        seen.append(job.task)
        return await call_next()

    @app.task(name="quick")
    async def quick() -> None:
        seen.append("ran")

    quick.enqueue_many([()] * 2)
    drained(app)
    assert seen == ["quick", "ran"] * 2


def test_too_late(app: Rota) -> None:
    """A job that has expired does not run, though it would wait for nothing."""
    seen: list[int] = []

    @app.task(name="quick")
    async def quick(number: int) -> None:
        seen.append(number)

    quick.using(expires=0.000_001).enqueue(1)
    quick.enqueue(2)
    drained(app)
    assert seen == [2]


def test_events_of_each(app: Rota) -> None:
    """Whoever listens hears of each start and each end."""
    seen: list[str] = []

    @app.task(name="quick")
    async def quick() -> None:
        seen.append("ran")

    app.events.subscribe(JobStarted, lambda _: seen.append("started"))
    app.events.subscribe(JobCompleted, lambda _: seen.append("completed"))
    quick.enqueue_many([()] * 3)
    drained(app)
    assert seen == ["started", "ran", "completed"] * 3


def test_what_runs_is_told(app: Rota) -> None:
    """A worker whose handler keeps the loop busy says that a job runs."""
    begun, enough = threading.Event(), threading.Event()

    @app.task(name="blocks")
    async def blocks() -> None:
        begun.set()
        enough.wait(20)

    with working(app) as worker:
        blocks.enqueue()
        assert begun.wait(20)
        running = worker.health().running
        enough.set()
    assert running == 1
