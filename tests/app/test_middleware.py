"""Middleware around enqueueing: what it sees, changes and refuses."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rota import ArgsError, ConfigError, EnqueueCall, JobId, JobRecord, Rota
from rota.events import JobsEnqueued
from rota.model.job import JobFilter

Next = Callable[[EnqueueCall], list[JobId]]
ANext = Callable[[EnqueueCall], Awaitable[list[JobId]]]


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    """A SQLite file: nothing here differs between the stores."""
    return f"sqlite:///{tmp_path}/rota.db"


def jobs(app: Rota) -> list[JobRecord]:
    """Every job that is stored, in the order of its enqueue."""
    return app.database.run(app.database.store.list_jobs(JobFilter(limit=1000)))[::-1]


def register(app: Rota, change: Callable[[EnqueueCall], EnqueueCall]) -> None:
    """Middleware of both kinds that changes the call."""

    @app.around_enqueue
    def blocking(call: EnqueueCall, call_next: Next) -> list[JobId]:
        return call_next(change(call))

    @app.around_enqueue
    async def not_blocking(call: EnqueueCall, call_next: ANext) -> list[JobId]:
        return await call_next(change(call))


async def enqueue(task: Any, how: str, *args: object, **kwargs: object) -> list[int]:
    """One of the four ways to enqueue."""
    match how:
        case "enqueue":
            return [task.enqueue(*args, **kwargs).id]
        case "aenqueue":
            return [(await task.aenqueue(*args, **kwargs)).id]
        case "enqueue_many":
            return list(task.enqueue_many([args or kwargs]))
        case _:
            return list(await task.aenqueue_many([args or kwargs]))


WAYS = pytest.mark.parametrize("how", ["enqueue", "aenqueue", "enqueue_many", "aenqueue_many"])


@WAYS
@pytest.mark.asyncio
async def test_what_it_sees(app: Rota, how: str) -> None:
    """It sees the task, the options and the arguments as they were passed."""
    seen: list[EnqueueCall] = []

    def look(call: EnqueueCall) -> EnqueueCall:
        seen.append(call)
        return call

    register(app, look)

    @app.task(name="send", queue="mail")
    def send(order: int, locale: str = "en") -> None: ...

    await enqueue(send.using(priority=3), how, 42)
    [call] = seen
    assert call.task.name == send.name
    assert (call.options.queue, call.options.priority) == ("mail", 3)
    assert call.jobs == (((42,), {}),)
    assert (call.many, call.conn) == (how.endswith("many"), None)
    assert [(job.args, job.priority) for job in jobs(app)] == [('{"order":42}', 3)]


@WAYS
@pytest.mark.asyncio
async def test_what_it_changes(app: Rota, how: str) -> None:
    """Changed options and added arguments are what is stored."""
    register(app, lambda call: call.using(queue="slow", delay=60).passing(locale="it", order=1))

    @app.task(name="send")
    def send(order: int, locale: str = "en") -> None: ...

    await enqueue(send, how, order=42)
    await enqueue(send, how, 42)
    one, two = jobs(app)
    assert (one.args, one.queue, one.state) == ('{"order":42,"locale":"it"}', "slow", "scheduled")
    assert two.args == one.args


@WAYS
@pytest.mark.asyncio
async def test_it_may_refuse(app: Rota, how: str) -> None:
    """Where it raises, nothing is stored, and the caller gets that exception."""

    def refuse(call: EnqueueCall) -> EnqueueCall:
        message = f"not {call.jobs[0][0]}"
        raise PermissionError(message)

    register(app, refuse)

    @app.task(name="send")
    def send(order: int) -> None: ...

    with app.events.collect(JobsEnqueued) as seen, pytest.raises(PermissionError, match="not"):
        await enqueue(send, how, 42)
    assert jobs(app) == []
    assert seen == []


@WAYS
@pytest.mark.asyncio
async def test_args_are_checked_within(app: Rota, how: str) -> None:
    """Args that do not fit are refused inside the middleware, whoever passed them."""
    faults: list[str] = []

    @app.around_enqueue
    def blocking(call: EnqueueCall, call_next: Next) -> list[JobId]:
        try:
            return call_next(call)
        except ArgsError as error:
            faults.append(str(error))
            raise

    @app.around_enqueue
    async def not_blocking(call: EnqueueCall, call_next: ANext) -> list[JobId]:
        try:
            return await call_next(call)
        except ArgsError as error:
            faults.append(str(error))
            raise

    @app.task(name="send")
    def send(order: int) -> None: ...

    with pytest.raises(ArgsError, match="order"):
        await enqueue(send, how, "x")
    assert faults[0].startswith("job 0 of enqueue_many") is how.endswith("many")
    assert jobs(app) == []


def test_the_first_is_the_outermost(app: Rota) -> None:
    """Middleware nests in the order of its registration, and gets the ids on the way back."""
    order: list[str] = []

    def named(name: str) -> Callable[[EnqueueCall, Next], list[JobId]]:
        def around(call: EnqueueCall, call_next: Next) -> list[JobId]:
            order.append(f"{name} in")
            ids = call_next(call)
            order.append(f"{name} out {len(ids)}")
            return ids

        return around

    app.around_enqueue(named("outer"))
    app.around_enqueue(named("inner"))

    @app.task(name="send")
    def send(order: int) -> None: ...

    ids = send.enqueue_many([(1,), {"order": 2}])
    assert order == ["outer in", "inner in", "inner out 2", "outer out 2"]
    assert [job.id for job in jobs(app)] == ids


@pytest.mark.asyncio
async def test_no_way_round(app: Rota) -> None:
    """With middleware of one kind alone, the other way of enqueueing is refused."""

    @app.task(name="send")
    def send(order: int) -> None: ...

    @app.around_enqueue
    def guard(call: EnqueueCall, call_next: Next) -> list[JobId]:
        return call_next(call)

    send.enqueue(1)
    with pytest.raises(ConfigError, match=r"guard\) does not fit aenqueue, which needs an async"):
        await send.aenqueue(2)
    app.middleware.enqueueing.clear()

    @app.around_enqueue
    async def async_guard(call: EnqueueCall, call_next: ANext) -> list[JobId]:
        return await call_next(call)

    await send.aenqueue_many([(3,)])
    with pytest.raises(ConfigError, match=r"async_guard\) does not fit enqueue, which needs a def"):
        send.enqueue_many([(4,)])
    assert [job.args for job in jobs(app)] == ['{"order":1}', '{"order":3}']


@pytest.mark.parametrize("how", ["enqueue", "aenqueue"])
@pytest.mark.parametrize("stored", [1, 0])
@pytest.mark.parametrize("answer", [None, [], [JobId(1), JobId(2)], 7, [JobId(12345678)], [[1]]])
@pytest.mark.asyncio
async def test_it_gives_back_the_ids(app: Rota, answer: Any, stored: int, how: str) -> None:
    """Middleware that gives back anything but the ids is told so, and what is stored."""

    @app.around_enqueue
    def forgetful(call: EnqueueCall, call_next: Next) -> Any:
        if stored:
            call_next(call)
        return answer

    @app.around_enqueue
    async def async_forgetful(call: EnqueueCall, call_next: ANext) -> Any:
        if stored:
            await call_next(call)
        return answer

    @app.task(name="send")
    def send(order: int) -> None: ...

    with pytest.raises(ConfigError, match="return what call_next returns") as raised:
        await enqueue(send, how, 1)
    ids = ", ".join(str(job.id) for job in jobs(app))
    done = f"1 job(s) were stored all the same ({ids})" if stored else "Nothing was stored"
    assert done in str(raised.value)


def test_it_may_call_several_times(app: Rota) -> None:
    """Middleware may store the jobs of one call by several, and give back a list of its own."""

    @app.around_enqueue
    def one_by_one(call: EnqueueCall, call_next: Next) -> list[JobId]:
        return [call_next(replace(call, jobs=(job,)))[0] for job in call.jobs]

    @app.task(name="send")
    def send(order: int) -> None: ...

    assert send.enqueue_many([(1,), (2,)]) == [job.id for job in jobs(app)]


@pytest.mark.parametrize("wrong", [lambda: None, lambda call: call, lambda _a, _b, _c: None, 7])
def test_what_is_no_middleware(app: Rota, wrong: Any) -> None:
    """Something that does not take two arguments is refused when it is registered."""
    with pytest.raises(ConfigError, match="two parameters"):
        app.around_enqueue(wrong)
    with pytest.raises(ConfigError, match="two parameters"):
        app.around_run(wrong)
    assert app.middleware.enqueueing == app.middleware.running == []
    assert app.middleware.running_in_threads == []


def test_in_a_transaction(app: Rota) -> None:
    """Jobs that went through middleware join the caller's transaction, and vanish with it."""
    register(app, lambda call: call)

    @app.task(name="send")
    def send(order: int) -> None: ...

    def rolled_back() -> None:
        with app.transaction() as tx:
            send.using(conn=tx).enqueue(1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        rolled_back()
    assert jobs(app) == []
    with app.transaction() as tx:
        send.using(conn=tx).enqueue(2)
    assert len(jobs(app)) == 1


def test_unknown_options(app: Rota) -> None:
    """Middleware that sets an option which does not exist gets a clear error."""
    register(app, lambda call: call.using(prioritty=1))

    @app.task(name="send")
    def send(order: int) -> None: ...

    with pytest.raises(ConfigError, match="unknown option prioritty"):
        send.enqueue(1)


def test_a_timeout_for_a_batch(app: Rota) -> None:
    """What `using` refuses, middleware cannot do either."""
    register(app, lambda call: call.using(timeout=5))

    @app.task(name="index", batch=5)
    def index(words: list[str]) -> None: ...

    with pytest.raises(ConfigError, match="one call serves many jobs"):
        index.enqueue("a")
    assert jobs(app) == []


def test_another_connection(app: Rota) -> None:
    """Middleware may choose the transaction that the jobs join."""
    with app.transaction() as tx:
        register(app, lambda call: call.using(conn=tx))

        @app.task(name="send")
        def send(order: int) -> None: ...

        send.enqueue(1)
        assert jobs(app) == []
    assert len(jobs(app)) == 1


def test_elements_of_batches(app: Rota) -> None:
    """A batch task's jobs go through middleware one element each."""
    register(app, lambda call: call.using(priority=len(call.jobs)))

    @app.task(name="index", batch=5)
    def index(words: list[str]) -> None: ...

    index.enqueue("a")
    index.enqueue_many([("b",), ("c",)])
    assert [(job.args, job.priority) for job in jobs(app)] == [
        ('{"words":"a"}', 1),
        ('{"words":"b"}', 2),
        ('{"words":"c"}', 2),
    ]
