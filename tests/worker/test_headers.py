"""Headers, from the enqueue to the handler; and jobs that came too late to begin."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota import BatchContext, ConfigError, Context, EnqueueCall, Rota, State
from rota.events import JobExpired, JobSettled, JobStarted
from rota.model.headers import LARGEST
from tests.fixtures.workers import drained, records
from tests.worker import chores
from tests.worker.chores import adopt

PAST = datetime(2001, 9, 9, tzinfo=UTC)
TRACE = {"traceparent": "00-4bf9-00f0-01"}


def nothing() -> None:
    """Do nothing."""


@pytest.mark.parametrize("executor", ["loop", "thread", "process"])
def test_in_a_handler(app: Rota, executor: str) -> None:
    """It reads them from its context, wherever it runs."""
    if executor == "process":
        task: Any = adopt(app, chores.headers)
    else:

        async def on_loop(ctx: Context) -> dict[str, str]:
            return ctx.headers

        def in_thread(ctx: Context) -> dict[str, str]:
            return ctx.headers

        function: Any = on_loop if executor == "loop" else in_thread
        task = app.task(name="read", store_result=True)(function)
    told, untold = task.using(headers=TRACE, expires=600).enqueue(), task.enqueue()
    drained(app, processes=1)
    assert (told.result(timeout=0), untold.result(timeout=0)) == (TRACE, {})
    assert told.record().headers.keys() == {"traceparent", "rota.expires"}


def test_of_a_batch(app: Rota) -> None:
    """Each job of a batch has its own."""

    @app.task(name="read", batch=10, store_result=True)
    async def read(numbers: list[int], ctx: BatchContext) -> list[dict[str, str]]:
        del numbers
        return [job.headers for job in ctx.jobs]

    told, untold = read.using(headers=TRACE).enqueue(1), read.enqueue(2)
    drained(app)
    assert (told.result(timeout=0), untold.result(timeout=0)) == (TRACE, {})


def test_from_middleware(app: Rota) -> None:
    """Middleware adds some to those of the caller."""

    @app.around_enqueue
    def trace(call: EnqueueCall, call_next: Any) -> Any:
        return call_next(call.using(headers={**(call.options.headers or {}), **TRACE}))

    @app.task(name="read", store_result=True)
    async def read(ctx: Context) -> dict[str, str]:
        return ctx.headers

    job = read.using(headers={"tenant": "a"}).enqueue()
    drained(app)
    assert job.result(timeout=0) == {"tenant": "a", **TRACE}


def test_a_direct_call(app: Rota) -> None:
    """It has none."""

    @app.task(name="read")
    def read(ctx: Context) -> dict[str, str]:
        return ctx.headers

    assert read() == {}


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ([("a", "b")], "must be a mapping from names to texts, not list"),
        ({1: "a"}, "a name must be a text"),
        ({"": "a"}, "a name must be a text"),
        ({"rota.expires": "now"}, "Rota's own headers"),
        ({"a": 1}, "must be a text without NUL, not int"),
        ({"a": None}, "must be a text without NUL, not NoneType"),
        ({"a": "\0"}, "must be a text without NUL"),
        ({"a": "\ud800"}, "surrogate"),
        ({"a": "x" * LARGEST}, f"the limit is {LARGEST}"),
    ],
)
def test_refused(app: Rota, headers: Any, why: str) -> None:
    """What cannot be stored is refused at once."""
    task = app.task(name="t")(nothing)
    with pytest.raises(ConfigError, match=why):
        task.using(headers=headers)


@pytest.mark.parametrize(
    "expires", [PAST, 0.000_001, timedelta(microseconds=1)], ids=["moment", "seconds", "timedelta"]
)
@pytest.mark.parametrize("batch", [None, 10])
def test_too_late(app: Rota, expires: Any, batch: int | None) -> None:
    """The job does not begin: it is cancelled, which an event tells. Others beside it run."""

    async def one(number: int) -> None: ...

    async def many(numbers: list[int]) -> None: ...

    options: Any = {"batch": batch} if batch else {}
    count: Any = app.task(name="count", **options)(many if batch else one)
    late, other = count.using(expires=expires).enqueue(1), count.using(expires=600).enqueue(2)
    with (
        app.events.collect(JobExpired) as expired,
        app.events.collect(JobStarted) as started,
        app.events.collect(JobSettled) as settled,
    ):
        drained(app)
    assert [event.job.id for event in expired] == [late.id]
    assert [event.job.id for event in started] == [other.id]
    assert {event.job.id for event in settled} == {late.id, other.id}
    assert (late.status, other.status) == (State.CANCELLED, State.COMPLETED)


def test_of_a_task(app: Rota) -> None:
    """A task's `expires` counts from each enqueue, and a caller's comes before it."""
    task = app.task(name="t", expires=600)(nothing)
    first, last = task.enqueue(), task.using(expires=PAST).enqueue()
    ends = {job.id: datetime.fromisoformat(job.headers["rota.expires"]) for job in records(app)}
    wait = ends[first.id] - first.record().enqueued_at
    assert timedelta(seconds=590) < wait < timedelta(seconds=610)
    assert ends[last.id] == PAST


@pytest.mark.parametrize("expires", [0, -1, "soon", datetime(2030, 1, 1)])  # noqa: DTZ001 - refused
def test_no_time(app: Rota, expires: Any) -> None:
    """A time that cannot be is refused."""
    task = app.task(name="t")(nothing)
    with pytest.raises(ConfigError, match="expires: "):
        task.using(expires=expires)
