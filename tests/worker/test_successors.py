"""Successors: what follows a job that was completed, or discarded, and what it is given."""

import logging
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from rota import (
    Again,
    Backoff,
    BatchContext,
    ConfigError,
    Context,
    Discard,
    FinishedJob,
    Rota,
    Snooze,
    State,
    Task,
    Unique,
    WorkerConfig,
)
from rota.events import JobsEnqueued
from rota.worker import Worker
from tests.fixtures.workers import drained, records, until, working
from tests.store.factories import claim, open_session, rescued
from tests.worker import chores
from tests.worker.chores import adopt

pytestmark = pytest.mark.both

AT_ONCE = Backoff(first=0, factor=1, jitter=0, attempts=3)
PAST = datetime(2001, 9, 9, tzinfo=UTC)
TRACE = {"traceparent": "00-4bf9-00f0-01"}


def opened(app: Rota) -> Any:
    """A connection of a handler's own."""
    if app.database.store.name == "sqlite":
        return sqlite3.connect(app.url.removeprefix("sqlite:///"), check_same_thread=False)
    return psycopg.connect(app.url)


@pytest.fixture
def given() -> list[Any]:
    """What successors were given."""
    return []


@pytest.fixture
def on_success(app: Rota, given: list[Any]) -> Task[..., Any, Any]:
    """A task that takes a result."""

    @app.task(name="on_success", queue="after")
    async def on_success(result: int | None, note: str = "") -> None:
        given.append((result, note))

    return on_success


@pytest.fixture
def on_failure(app: Rota, given: list[Any]) -> Task[..., Any, Any]:
    """A task that takes all that is known."""

    @app.task(name="on_failure", queue="after")
    async def on_failure(job: FinishedJob) -> None:
        given.append(job)

    return on_failure


def run(app: Rota, **config: Any) -> None:
    """Run all jobs, successors too."""
    drained(app, queues=("default", "after"), **config)


@pytest.mark.table
@pytest.mark.parametrize("executor", ["loop", "thread", "process"])
@pytest.mark.parametrize("store_result", [True, False])
@pytest.mark.parametrize("middleware", [True, False])
@pytest.mark.usefixtures("on_success")
def test_the_result(
    app: Rota, given: list[Any], executor: str, *, store_result: bool, middleware: bool
) -> None:
    """The successor gets what the handler returned, wherever that ran, stored or not."""
    if executor == "process":
        function: Any = chores.add.function
    else:

        async def on_loop(one: int, two: int) -> int:
            return one + two

        def in_thread(one: int, two: int) -> int:
            return one + two

        function = on_loop if executor == "loop" else in_thread
    if middleware:

        @app.around_run
        async def around(ctx: Context | BatchContext, call_next: Any) -> Any:
            del ctx
            return await call_next()

    task = app.task(
        name="add", executor=executor, store_result=store_result, on_success="on_success"
    )(function)
    task.enqueue(1, two=2)
    run(app, processes=1)
    assert given == [(3, "")]


def test_only_the_end_counts(
    app: Rota, given: list[Any], on_success: Task[..., Any, Any], on_failure: Task[..., Any, Any]
) -> None:
    """Attempts that are followed by another one have no successor; the last one has one."""

    @app.task(name="work", on_success=on_success, on_failure=on_failure, retry=AT_ONCE)
    async def work(ctx: Context, how: str) -> Any:
        if ctx.attempt < 3:
            message = f"{how} {ctx.attempt}"
            raise OSError(message)
        if how == "fails":
            raise ValueError(how)
        return Snooze(3600) if how == "snoozes" else Again(after=3600) if how == "again" else 7

    jobs = {how: work.enqueue(how) for how in ("works", "snoozes", "again", "fails")}
    with working(app, queues=("default", "after")):
        until(lambda: len(given) == 2, "both successors")
        waiting = jobs["snoozes"], jobs["again"]
        until(lambda: {job.status for job in waiting} == {State.SCHEDULED}, "the others")
    [failed] = [job for job in given if isinstance(job, FinishedJob)]
    assert [job for job in given if job is not failed] == [(7, "")]
    assert (failed.id, failed.task, failed.queue) == (jobs["fails"].id, "work", "default")
    assert (failed.args, failed.attempt) == ({"how": "fails"}, 3)
    assert (failed.state, failed.result) == (State.DISCARDED, None)
    assert failed.error is not None
    assert (failed.error.attempt, failed.error.exception) == (3, "builtins.ValueError")
    assert "raise ValueError(how)" in failed.error.traceback


@pytest.mark.usefixtures("on_failure")
def test_discarded_at_once(app: Rota, given: list[Any]) -> None:
    """A job that is discarded before its attempts are spent has failed, too."""

    @app.task(name="work", on_failure="on_failure", discard_on=KeyError)
    async def work(how: str) -> None:
        if how == "says so":
            raise Discard(how)
        raise KeyError(how)

    work.enqueue("says so")
    work.enqueue("discard_on")
    run(app)
    errors = {job.args["how"]: job.error.exception for job in given}
    assert errors == {"says so": "rota.outcome.Discard", "discard_on": "builtins.KeyError"}
    assert {job.attempt for job in given} == {1}


@pytest.mark.usefixtures("on_failure", "on_success")
def test_cancelled(app: Rota, given: list[Any]) -> None:
    """A job that was cancelled, or expired, has not ended well and has not failed: nothing follows."""

    @app.task(name="work", on_failure="on_failure", on_success="on_success")
    async def work() -> None: ...

    work.enqueue().cancel()
    work.using(expires=PAST).enqueue()
    run(app)
    assert [job.state for job in records(app)] == [State.CANCELLED] * 2
    assert given == []


def test_chosen_at_the_enqueue(
    app: Rota, given: list[Any], on_success: Task[..., Any, Any], on_failure: Task[..., Any, Any]
) -> None:
    """An enqueue's choice overrides the task's; what takes it is given all that is known."""

    @app.task(name="work", store_result=True, on_success=on_success)
    async def work(number: int) -> list[int]:
        return [number]

    job = work.using(on_success=on_failure).enqueue(5)
    run(app)
    [finished] = given
    assert (finished.id, finished.state, finished.error) == (job.id, State.COMPLETED, None)
    assert (finished.result, finished.args) == ([5], {"number": 5})


@pytest.mark.asyncio
@pytest.mark.parametrize("conn", [True, False])
async def test_many_and_async(app: Rota, given: list[Any], conn: bool) -> None:  # noqa: FBT001
    """So it does for many jobs, in async code, and in the caller's transaction."""

    @app.task(name="last")
    async def last(number: int) -> None:
        given.append(number)

    @app.task(name="work")
    async def work(number: int) -> int:
        return number

    using = work.using(on_success="last")
    if conn:
        async with app.transaction() as tx:
            await using.aenqueue_many([(1,), (2,)], conn=tx)
    else:
        await using.aenqueue_many([(1,), (2,)])
    await Worker(app, WorkerConfig(drain=True)).arun(signals=False)
    assert sorted(given) == [1, 2]


def test_headers_travel(app: Rota) -> None:
    """The headers of users go along, Rota's own do not: an expiry, or a choice of successors."""

    @app.task(name="last", expires=600)
    async def last(ctx: Context) -> None: ...

    @app.task(name="work")
    async def work() -> None: ...

    work.using(headers=TRACE, expires=900, on_success=last, on_failure=last).enqueue()
    drained(app)
    headers = {job.task: dict(job.headers) for job in records(app)}
    own = headers["work"].keys() - TRACE.keys()
    assert own == {"rota.expires", "rota.on_success", "rota.on_failure"}
    expires = headers["last"].pop("rota.expires")
    assert headers["last"] == TRACE
    assert expires != headers["work"]["rota.expires"]


def test_a_chain_goes_on(app: Rota, given: list[Any]) -> None:
    """A successor has its own, and its own options: queue, priority, unique key, limits."""

    @app.task(name="first", on_success="second")
    async def first() -> int:
        return 1

    @app.task(name="second", queue="after", priority=7, on_success="third", unique="n:{number}")
    def second(number: int) -> int:
        return number + 1

    @app.task(name="third", unique=Unique(on_conflict="raise"), max_attempts=9)
    def third(number: int) -> None:
        given.append(number)

    first.enqueue_many([(), ()])
    run(app)
    found = {job.task: job for job in records(app)}
    assert given in ([2], [2, 2])
    assert (found["second"].queue, found["second"].priority) == ("after", 7)
    assert found["second"].unique_key == "n:1"
    assert found["third"].max_attempts == 9
    assert {job.state for job in records(app)} == {State.COMPLETED}


def test_a_key_that_is_taken(app: Rota) -> None:
    """Even if the successor's rule is to raise, the job completes: it has a successor already."""

    @app.task(name="last", unique=Unique(on_conflict="raise"), queue="nobody works here")
    async def last() -> None: ...

    @app.task(name="work", on_success="last")
    async def work() -> None: ...

    last.enqueue()
    work.enqueue()
    drained(app, queues=("default",))
    assert sorted(job.state for job in records(app)) == [State.AVAILABLE, State.COMPLETED]


@pytest.mark.usefixtures("on_success")
def test_batches(app: Rota, given: list[Any]) -> None:
    """Each job of a batch has its own successor; successors can be gathered into a batch."""

    @app.task(name="gather", batch=10)
    async def gather(numbers: list[int]) -> None:
        given.append(sorted(numbers))

    @app.task(name="alarm", batch=10)
    async def alarm(jobs: list[FinishedJob]) -> None:
        given.append(sorted(job.args["numbers"] for job in jobs))

    @app.task(name="many", batch=10, on_success="gather", on_failure="alarm")
    async def many(numbers: list[int]) -> list[Any]:
        return [Discard("even") if number % 2 == 0 else 10 * number for number in numbers]

    many.enqueue_many([(number,) for number in range(6)])
    run(app)
    assert sorted(given) == [[0, 2, 4], [10, 30, 50]]


@pytest.mark.parametrize("batch", [True, False])
def test_unknown_to_this_worker(app: Rota, given: list[Any], *, batch: bool) -> None:
    """A handler whose successor is unknown does not begin: the attempt fails, saying what to do."""

    async def single(number: int) -> None:
        given.append(number)

    async def several(numbers: list[int]) -> None:
        given.extend(numbers)

    options: Any = {"batch": 5} if batch else {}
    work: Any = app.task(name="work", max_attempts=2, retry=AT_ONCE, retry_on=OSError, **options)(
        several if batch else single
    )
    job = work.using(on_success="elsewhere").enqueue(1)
    other = work.enqueue(2)
    drained(app)
    assert given == [2]
    assert (job.status, other.status) == (State.DISCARDED, State.COMPLETED)
    errors = job.record().errors
    assert [error.exception for error in errors] == ["rota.errors.SuccessorNotFound"] * 2
    assert "successor 'elsewhere' is not registered in this worker; import" in errors[0].message

    @app.task(name="elsewhere")
    async def elsewhere() -> None: ...

    app.jobs.retry(job.id)
    drained(app)
    assert sorted(given) == [1, 2]
    assert [found.task for found in records(app)].count("elsewhere") == 1


def test_a_result_that_does_not_fit(app: Rota, given: list[Any]) -> None:
    """The handler ran and its successor cannot take the result: the job is discarded, and says so."""

    @app.task(name="last")
    async def last(number: int) -> None:
        given.append(number)

    @app.task(name="alarm")
    async def alarm(job: FinishedJob) -> None:
        given.append(job.error and job.error.message)

    @app.task(name="work", on_success=last, on_failure=alarm)
    async def work() -> str:
        return "no number"

    job = work.enqueue()
    drained(app)
    assert job.status is State.DISCARDED
    [message] = given
    assert "the handler ran, but its successor cannot be enqueued: args of task 'last'" in message


@pytest.mark.table
@pytest.mark.parametrize("form", ["async", "blocking"])
@pytest.mark.parametrize("end", ["commit", "fail", "refuse"])
@pytest.mark.parametrize("store_result", [True, False])
def test_job_transactions(
    app: Rota, given: list[Any], form: str, end: str, *, store_result: bool
) -> None:
    """What a handler writes, its job's completion and the successor commit together, or none does."""

    @app.task(name="last", queue="after")
    async def last(number: int) -> None:
        given.append(number)

    def finish(tx: Any) -> None:
        tx.result("no number" if end == "refuse" else 7)
        if end == "fail":
            message = "no luck"
            raise OSError(message)

    async def in_loop(ctx: Context) -> Any:
        async with ctx.transaction() as tx:
            finish(tx)

    def in_thread(ctx: Context) -> Any:
        with ctx.transaction() as tx:
            finish(tx)

    declare = app.task(name="work", on_success=last, max_attempts=1, store_result=store_result)
    job = declare(in_loop if form == "async" else in_thread).enqueue()
    with app.events.collect(JobsEnqueued) as told:
        run(app)
    assert given == ([7] if end == "commit" else [])
    assert [event.task for event in told] == (["last"] if end == "commit" else [])
    assert job.status is (State.COMPLETED if end == "commit" else State.DISCARDED)


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_in_doubt(app: Rota, given: list[Any], end: str) -> None:
    """A completion that its handler leaves to the caller: one of both successors follows, and once."""

    @app.task(name="last")
    async def last(job: FinishedJob) -> None:
        given.append(job.state)

    @app.task(name="work", on_success=last, on_failure=last, max_attempts=1)
    def work(ctx: Context) -> None:
        with closing(opened(app)) as conn:
            with ctx.transaction(conn, commit=False):
                pass
            getattr(conn, end)()

    work.enqueue()
    drained(app)
    assert given == [State.COMPLETED if end == "commit" else State.DISCARDED]


@pytest.mark.usefixtures("on_failure")
@pytest.mark.parametrize("chosen", [True, False])
def test_a_worker_that_died(app: Rota, given: list[Any], *, chosen: bool) -> None:
    """A job whose worker dies in its last attempt has its successor by who takes it over."""
    declared = None if chosen else "on_failure"

    @app.task(name="work", max_attempts=1, on_failure=declared)
    async def work(number: int) -> None: ...

    (work.using(on_failure="on_failure", headers=TRACE) if chosen else work).enqueue(7)
    store = app.database.store
    with closing(store.connect()) as connection:
        session = open_session(store, connection, timeout=0.02)
        [job] = claim(store, connection, session)
    with app.events.collect(JobsEnqueued) as told:
        for _ in range(400):
            drained(app, queues=("default",))
            if told:
                break
    [event] = told
    assert (event.task, event.queue) == ("on_failure", "after")
    drained(app, queues=("after",))
    [failed] = given
    assert (failed.id, failed.state, failed.args) == (job.id, State.DISCARDED, {"number": 7})
    assert failed.error.exception == "rota.WorkerDied"
    [last] = [found for found in records(app) if found.task == "on_failure"]
    assert last.headers == (TRACE if chosen else {})


def test_a_worker_that_died_among_strangers(
    app: Rota, given: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Where that worker does not know the successor, its log says so."""
    from rota.app.successor import of_discarded

    @app.task(name="work", max_attempts=1)
    async def work() -> None: ...

    work.using(on_failure="elsewhere").enqueue()
    store = app.database.store
    with closing(store.connect()) as connection:
        session = open_session(store, connection, timeout=0.02)
        claim(store, connection, session)
        rescued(store, connection, session)
    assert given == []
    with caplog.at_level(logging.ERROR, logger="rota"):
        assert of_discarded(app.tasks, records(app)) == []
    assert "its on_failure 'elsewhere' is not registered here; enqueue it by hand" in caplog.text


def test_told(app: Rota, on_success: Task[..., Any, Any]) -> None:
    """`JobsEnqueued` tells of successors as of other jobs."""

    @app.task(name="work", on_success=on_success)
    async def work() -> None: ...

    work.enqueue_many([(), ()])
    with app.events.collect(JobsEnqueued) as told:
        run(app)
    assert {(event.task, event.queue) for event in told} == {("on_success", "after")}
    ids = {job.id for job in records(app) if job.task == "on_success"}
    assert {job for event in told for job in event.jobs} == ids
    assert len(ids) == 2


# Refused ------------------------------------------------------------------------------------------


def nothing() -> None:
    """Take nothing."""


def two(one: int, other: int) -> None:
    """Take too much."""


def number(one: int) -> None:
    """Take a result."""


@pytest.mark.parametrize(
    ("option", "function", "why"),
    [
        ("on_success", two, "gets at most one argument, and 'next' needs `one`, `other`"),
        (
            "on_failure",
            number,
            "has no result for `one` of 'next'; annotate it with rota.FinishedJob",
        ),
    ],
)
@pytest.mark.parametrize("by_name", [True, False])
def test_what_takes_too_much(
    app: Rota, option: str, function: Any, why: str, *, by_name: bool
) -> None:
    """A task that takes what no successor is given is refused where it is named."""
    following = app.task(name="next")(function)
    options: Any = {option: "next" if by_name else following}
    with pytest.raises(ConfigError, match=why):
        app.task(name="work", **options)(nothing)
    with pytest.raises(ConfigError, match=why):
        app.task(name="other")(nothing).using(**options)


def test_refused(app: Rota) -> None:
    """So is what is no task, one of another app, and options that would be lost."""
    following, work = app.task(name="next")(nothing), app.task(name="work")(nothing)
    wrong: list[tuple[Any, str]] = [
        (7, "must be a task or its name, not 7"),
        ("", "must be a task or its name, not ''"),
        (nothing, "must be a task or its name, not <function"),
        (" next", "a name of 1 to 200 printable characters"),
        (chores.add, "'tests.worker.chores.add' is a task of another app"),
        (following.using(delay=5), "only the name of 'next' is stored"),
    ]
    for given, why in wrong:
        with pytest.raises(ConfigError, match=why):
            work.using(on_success=given)
        with pytest.raises(ConfigError, match=why):
            app.task(name="third", on_failure=given)(nothing)


def test_declared_and_not_there(app: Rota) -> None:
    """A name that no task has is refused where the worker begins; one that comes later is fine."""

    @app.task(name="work", on_success="later")
    def work() -> None: ...

    with pytest.raises(ConfigError, match="task 'work': its on_success names 'later', and no such"):
        Worker(app)
    app.task(name="later")(two)
    with pytest.raises(ConfigError, match="task 'work', on_success: a successor gets at most one"):
        Worker(app)


def test_adopted(app: Rota) -> None:
    """A task without successors says so."""
    task = adopt(app, chores.add)
    assert not task.chained
