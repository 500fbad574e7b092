"""Steps, sleeps and signals in real workers: a handler goes on where an earlier run has ended."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota import (
    Again,
    ArgsError,
    ConfigError,
    Context,
    JobEnded,
    JobHandle,
    JobNotFound,
    LeaseLost,
    Retry,
    Rota,
    SignalTimeout,
    State,
    Worker,
    WorkerConfig,
)
from rota.model.settlement import released
from tests.fixtures.workers import until, working


class Charge(msgspec.Struct, frozen=True):
    """What a step returns."""

    id: int
    cents: int


def drain(app: Rota) -> None:
    """Run what can run now."""
    Worker(app, WorkerConfig(drain=True)).run()


def fall_asleep(app: Rota, *jobs: JobHandle[Any]) -> None:
    """Run these jobs until they sleep."""
    with working(app):
        for job in jobs:
            until(lambda job=job: job.status is State.SCHEDULED, "the job to sleep")  # type: ignore[misc]


def errors(job: JobHandle[Any]) -> list[str]:
    return [f"{error.exception}: {error.message}" for error in job.record().errors]


def waiting(job: JobHandle[Any], *names: str) -> Callable[[], bool]:
    """Whether the job sleeps, and waits for these."""
    return lambda: (
        {one.name for one in job.steps() if one.state == "waiting"} >= set(names)
        and (job.record().state is State.SCHEDULED)
    )


def test_a_step_runs_once(app: Rota) -> None:
    """A later attempt gets the result of the first one, of the type that the function says."""
    ran: list[object] = []

    async def pay(cents: int) -> Charge:
        ran.append("pay")
        return Charge(7, cents)

    @app.task(name="order", store_result=True)
    async def order(ctx: Context, cents: int) -> int:
        charge = await ctx.step("charge", pay, cents)
        ran.append(charge)
        if ctx.attempt < 3:
            raise Retry(after=0)
        return charge.cents

    job = order.enqueue(400)
    drain(app)
    assert job.result(0) == 400
    assert ran == ["pay", *[Charge(7, 400)] * 3]


def test_steps_of_a_blocking_handler(app: Rota) -> None:
    """In a thread everything is a plain call."""
    ran: list[str] = []

    def pay(*, cents: int) -> Charge:
        ran.append("pay")
        return Charge(7, cents)

    @app.task(name="order", store_result=True)
    def order(ctx: Context) -> int:
        charge = ctx.step("charge", pay, cents=5)
        ctx.sleep(0.01)
        ran.append("slept")
        try:
            ctx.wait_for("approved", timeout=0.01)
        except SignalTimeout:
            ran.append("late")
        if ctx.attempt == 1:
            raise Retry(after=0)
        return charge.cents

    job = order.enqueue()
    with working(app):
        assert job.result(20) == 5
    assert ran.count("pay") == 1
    assert ran[-2:] == ["slept", "late"]
    assert job.record().attempt == 2


def test_names_count_and_not_places(app: Rota) -> None:
    """New code may ask for other steps, in another order: what is not asked for is left alone."""
    ran: list[str] = []

    async def say(what: str) -> str:
        ran.append(what)
        return what

    @app.task(name="order", store_result=True)
    async def order(ctx: Context) -> list[str]:
        if ctx.attempt == 1:
            for name in ("a", "gone", "b"):
                await ctx.step(name, say, name)
            raise Retry(after=0)
        return [await ctx.step(name, say, f"new {name}") for name in ("b", "c", "a")]

    job = order.enqueue()
    drain(app)
    assert job.result(0) == ["b", "new c", "a"]
    assert ran == ["a", "gone", "b", "new c"]


def test_a_name_that_comes_again(app: Rota) -> None:
    """Each time it is another step; a step that failed has not been its turn."""
    ran: list[int] = []

    async def count(number: int) -> int:
        ran.append(number)
        if number == 2 and ran.count(2) == 1:
            raise OSError
        return number

    @app.task(name="order", store_result=True)
    async def order(ctx: Context) -> list[int]:
        found = []
        for number in (1, 2, 3):
            try:
                found.append(await ctx.step("page", count, number))
            except OSError:
                found.append(await ctx.step("page", count, number))
        if ctx.attempt == 1:
            raise Retry(after=0)
        return found

    job = order.enqueue()
    drain(app)
    assert job.result(0) == [1, 2, 3]
    assert ran == [1, 2, 2, 3]
    assert [one.name for one in job.steps()] == ["page", "page#2", "page#3"]


def test_steps_at_the_same_time(app: Rota) -> None:
    """Steps of different names may be gathered, in whatever order they end."""
    ran: list[str] = []

    @app.task(name="order", store_result=True)
    async def order(ctx: Context) -> list[str]:
        first = asyncio.Event()

        async def late() -> str:
            await first.wait()
            ran.append("late")
            return "late"

        async def early() -> str:
            first.set()
            ran.append("early")
            return "early"

        pair = [ctx.step("a", late), ctx.step("b", early)]
        found = await asyncio.gather(*(reversed(pair) if ctx.attempt == 2 else pair))
        if ctx.attempt == 1:
            raise Retry(after=0)
        return found

    job = order.enqueue()
    drain(app)
    assert job.result(0) == ["early", "late"]
    assert ran == ["early", "late"]


@pytest.mark.parametrize("kind", ["step", "sleep", "wait"])
def test_one_name_for_two_things_at_once(app: Rota, kind: str) -> None:
    """It is refused, since nothing would tell which is which; and so is a name with a number."""

    async def nothing() -> None:
        await asyncio.sleep(0)

    @app.task(name="order", max_attempts=1)
    async def order(ctx: Context) -> None:
        match kind:
            case "step":
                await asyncio.gather(ctx.step("a", nothing), ctx.step("a", nothing))
            case "sleep":
                async with asyncio.TaskGroup() as group:
                    group.create_task(_awaited(ctx.sleep(60)))
                    group.create_task(_awaited(ctx.sleep(60)))
            case _:
                await asyncio.gather(ctx.wait_for("go"), ctx.wait_for("go"))

    async def _awaited(what: Any) -> None:
        await what

    job = order.enqueue()
    drain(app)
    record = job.record()
    assert record.state is State.DISCARDED
    assert "already under way" in record.errors[0].traceback


def test_bad_names_and_functions(app: Rota) -> None:
    """Each is refused by itself, before anything is called or stored."""
    told: list[str] = []

    async def fine() -> None: ...

    def blocking() -> None: ...

    async def large() -> str:
        return "x" * 1_000_001

    async def wrong() -> int:
        return "x"  # type: ignore[return-value]

    @app.task(name="order")
    async def order(ctx: Context) -> None:
        for attempt in (
            lambda: ctx.step("", fine),
            lambda: ctx.step("a#2", fine),
            lambda: ctx.step("a", blocking),
            lambda: ctx.step("a", large),
            lambda: ctx.step("a", wrong),
            lambda: ctx.sleep(-1),
            lambda: ctx.wait_for("go", timeout=-1),
            lambda: ctx.wait_for("#"),
        ):
            try:
                await attempt()  # type: ignore[misc]
            except (ConfigError, ArgsError) as error:
                told.append(str(error))

    job = order.enqueue()
    drain(app)
    assert job.record().state is State.COMPLETED
    assert len(told) == 8
    assert "the limit is 1,000,000" in told[3]
    assert "has run, but its result cannot be remembered: the value " in told[4]
    assert job.steps() == []


def test_what_no_longer_fits(app: Rota) -> None:
    """A result that the function's annotation of today does not allow says so."""
    results: list[Callable[..., Any]] = []

    async def number() -> int:
        return 7

    async def text() -> str:
        return "7"

    results += [number, text]

    @app.task(name="order", max_attempts=2)
    async def order(ctx: Context) -> None:
        await ctx.step("a", results[ctx.attempt - 1])
        raise Retry(after=0)

    job = order.enqueue()
    drain(app)
    assert "if it has changed, give it a new name" in errors(job)[1]


def test_a_sleep_holds_nothing(app: Rota) -> None:
    """A sleeping job is scheduled and holds no place of its worker; it does not sleep again."""
    began: list[str] = []

    @app.task(name="sleeper")
    async def sleeper(ctx: Context) -> None:
        began.append("run")
        await ctx.sleep(timedelta(days=3))
        began.append("slept")
        await ctx.sleep(timedelta(days=3), name="again")

    jobs = [sleeper.enqueue() for _ in range(3)]
    fall_asleep(app, *jobs)
    for job in jobs:
        record = job.record()
        assert (record.state, record.attempt) == (State.SCHEDULED, 0)
        [step] = job.steps()
        assert (step.kind, step.state) == ("sleep", "asleep")
        assert step.until == record.scheduled_at
    # Woken by hand it sleeps on, until the same time.
    end = jobs[0].steps()[0].until
    assert app.jobs.retry(jobs[0].id)
    fall_asleep(app, jobs[0])
    assert jobs[0].steps()[0].until == end
    assert began == ["run"] * 4


@pytest.mark.parametrize("way", ["gather", "group"])
def test_several_sleeps_at_once(app: Rota, way: str) -> None:
    """They all begin with the first run: the second one does not begin when the first is over."""

    async def doze(ctx: Context, seconds: float) -> None:
        await ctx.sleep(seconds, name=f"{seconds}")

    @app.task(name="sleeper")
    async def sleeper(ctx: Context) -> None:
        if way == "gather":
            await asyncio.gather(doze(ctx, 60), doze(ctx, 90))
        else:
            async with asyncio.TaskGroup() as group:
                group.create_task(doze(ctx, 60))
                group.create_task(doze(ctx, 90))

    job = sleeper.enqueue()
    fall_asleep(app, job)
    record = job.record()
    assert (record.state, record.errors) == (State.SCHEDULED, ())
    short, long = job.steps()
    assert record.scheduled_at == short.until
    assert short.until is not None
    assert long.until is not None
    assert (long.until - short.until).total_seconds() == pytest.approx(30, abs=1)


def test_no_handler_catches_its_sleep(app: Rota) -> None:
    """What ends the run is no exception that a handler means."""

    @app.task(name="sleeper")
    async def sleeper(ctx: Context) -> None:
        try:
            await ctx.wait_for("go", timeout=60)
        except Exception:  # noqa: BLE001 - that is the point
            await ctx.step("refund", asyncio.sleep, 0)

    job = sleeper.enqueue()
    fall_asleep(app, job)
    assert [one.name for one in job.steps()] == ["go"]


def test_signals_from_outside(app: Rota) -> None:
    """It wakes the job that waits for it, and one that came before is not lost."""

    @app.task(name="order", store_result=True)
    async def order(ctx: Context) -> list[Any]:
        early = await ctx.wait_for("early")
        late = await ctx.wait_for("late", timeout=timedelta(days=7))
        # The handler may be awake before the second signal is sent.
        return [early, late, await ctx.wait_for("late", timeout=timedelta(days=7))]

    job = order.enqueue()
    job.signal("early", {"by": "Ada"}, id="1")
    job.signal("early", {"by": "Ada"}, id="1")
    with working(app):
        until(waiting(job, "late"), "the job to wait")
        job.signal("late", 1)
        job.signal("late", 2)
        assert job.result(20) == [{"by": "Ada"}, 1, 2]


def test_a_signal_from_async_code(app: Rota) -> None:
    """The twins do the same."""

    @app.task(name="order", store_result=True)
    async def order(ctx: Context) -> Any:
        return await ctx.wait_for("go")

    async def send() -> JobHandle[Any]:
        job = await order.aenqueue()
        await job.asignal("go", [1])
        [step] = await job.asteps()
        assert (step.kind, step.state, step.result) == ("signal", "unread", "[1]")
        return job

    job = asyncio.run(send())
    drain(app)
    assert job.result(0) == [1]


def test_a_signal_of_a_transaction(app: Rota) -> None:
    """It comes with the commit, and not after a rollback."""

    @app.task(name="order", store_result=True)
    async def order(ctx: Context) -> Any:
        return await ctx.wait_for("go")

    job = order.enqueue()

    def fail() -> None:
        with app.transaction() as tx:
            job.signal("go", 1, conn=tx)
            raise OSError("no")

    with pytest.raises(OSError, match="no"):
        fail()
    assert job.steps() == []
    with working(app):
        until(waiting(job, "go"), "the job to wait")
        with app.transaction() as tx:
            job.signal("go", 2, conn=tx)
        assert job.result(20) == 2


def test_signals_that_are_refused(app: Rota) -> None:
    """To jobs that have ended or never were, of names and payloads that cannot be."""

    @app.task(name="order")
    def order() -> None: ...

    job = order.enqueue()
    calls: tuple[tuple[Callable[[], None], type[Exception], str], ...] = (
        (lambda: job.signal(""), ConfigError, "a name of 1 to"),
        (lambda: job.signal("a#2"), ConfigError, "a name cannot contain #"),
        (lambda: job.signal("a", id=""), ConfigError, "id of a signal"),
        (lambda: job.signal("a", object()), ArgsError, "its payload cannot be stored: the value "),
        (lambda: job.signal("a", "x" * 1_000_001), ArgsError, "the limit is 1,000,000"),
        (lambda: app.job(job.id + 1).signal("a"), JobNotFound, "does not exist"),
        (lambda: app.job(-1).signal("a"), JobNotFound, "no job can have this id"),
    )
    for call, error, message in calls:
        with pytest.raises(error, match=message):
            call()
    assert job.steps() == []
    drain(app)
    with pytest.raises(JobEnded, match="was completed: it takes no more signals"):
        job.signal("a")


def test_a_timeout_is_remembered(app: Rota) -> None:
    """A wait whose time was up does not wait again, whatever comes later."""
    times: list[int] = []

    @app.task(name="order", store_result=True)
    async def order(ctx: Context) -> str:
        try:
            await ctx.wait_for("go", timeout=0)
        except SignalTimeout:
            times.append(ctx.attempt)
            if ctx.attempt == 1:
                app.job(ctx.job_id).signal("go", 1)
                raise Retry(after=0) from None
            return "too late"
        return "in time"

    job = order.enqueue()
    drain(app)
    assert (job.result(0), times) == ("too late", [1, 2])


def test_a_new_round_remembers_nothing(app: Rota) -> None:
    """Again begins anew, with its steps."""
    ran: list[int] = []

    async def count() -> int:
        ran.append(len(ran))
        return ran[-1]

    @app.task(name="rounds", store_result=True)
    async def rounds(ctx: Context) -> int | Again:
        number = await ctx.step("count", count)
        if ctx.attempt == 1:
            raise Retry(after=0)
        if number < 2:
            return Again(after=0)
        return number

    job = rounds.enqueue()
    drain(app)
    assert (job.result(0), ran) == (2, [0, 1, 2])


def test_nothing_is_remembered_in_the_jobs_transaction(app: Rota) -> None:
    """A step in it would be there though the transaction is rolled back."""

    async def nothing() -> None: ...

    @app.task(name="order", max_attempts=1)
    async def order(ctx: Context) -> None:
        async with ctx.transaction():
            await ctx.step("a", nothing)

    job = order.enqueue()
    drain(app)
    assert "use ctx.step_transaction()" in errors(job)[0]


def test_direct_calls_and_children_have_no_steps(app: Rota) -> None:
    """They say so."""

    @app.task(name="order")
    async def order(ctx: Context) -> None:
        await ctx.sleep(1)

    with pytest.raises(ConfigError, match="neither in another process"):
        asyncio.run(order())


def test_a_thread_that_was_given_back(app: Rota) -> None:
    """A run whose job is not held any more remembers nothing."""
    told: list[str] = []

    async def nothing() -> None: ...

    @app.task(name="order")
    async def order(ctx: Context) -> None:
        store = app.database.store
        steps = ctx._remembering("step")
        holder = steps.completion
        app.database.run(store.settle(holder.session, [released(holder.job)]))
        try:
            await ctx.step("a", nothing)
        except LeaseLost as error:
            told.append(str(error))
            app.jobs.cancel(ctx.job_id)

    job = order.enqueue()
    drain(app)
    assert "taken over by another worker" in told[0]
    assert job.steps() == []
