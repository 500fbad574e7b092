"""How runs end: outcomes, exceptions, retries, and what cannot be run or stored."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota import (
    Backoff,
    Context,
    Discard,
    JobFailed,
    JobHandle,
    Retry,
    Rota,
    Snooze,
    State,
    WorkerConfig,
)
from rota.errors import RotaError
from rota.events import JobSettled, TaskUnknown
from rota.model.job import JobSpec, Order
from rota.model.states import Move
from tests.fixtures.workers import drained, until, working
from tests.worker import chores
from tests.worker.chores import adopt

AT_ONCE = Backoff(first=0, attempts=3)


def in_(handle: JobHandle[Any], *states: State) -> Any:
    """Wait until the job is in one of these states; its record."""

    def look() -> Any:
        record = handle.record()
        return record if record.state in states else None

    return until(look, f"job {handle.id} to be {states}")


def waits(handle: JobHandle[Any]) -> float:
    """Seconds that a waiting job still has to wait."""
    moment = handle.record().scheduled_at
    assert moment is not None
    return (moment - datetime.now(UTC)).total_seconds()


# Outcomes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_raising", [False, True], ids=["returned", "raised"])
@pytest.mark.parametrize("executor", ["loop", "thread", "process"])
def test_outcomes(app: Rota, executor: str, *, by_raising: bool) -> None:
    """Snooze, Retry and Discard mean the same returned and raised, in every executor."""

    def answer(kind: str, attempt: int) -> Any:
        if attempt > 1:
            return None
        said = {"discard": Discard("no use"), "retry": Retry("later", after=0)}.get(
            kind, Snooze(3600)
        )
        if by_raising:
            raise said
        return said

    task: Any
    if executor == "process":
        task = adopt(app, chores.outcome)
    elif executor == "thread":

        @app.task(name="in_thread")
        def in_thread(kind: str, *, by_raising: bool, ctx: Context | None = None) -> Any:
            del by_raising
            assert ctx is not None
            return answer(kind, ctx.attempt)

        task = in_thread
    else:

        @app.task(name="on_loop")
        async def on_loop(kind: str, *, by_raising: bool, ctx: Context | None = None) -> Any:
            del by_raising
            assert ctx is not None
            return answer(kind, ctx.attempt)

        task = on_loop
    snoozed, retried, discarded = (
        task.enqueue(kind, by_raising=by_raising) for kind in ("snooze", "retry", "discard")
    )
    with working(app):
        assert in_(retried, State.COMPLETED).attempt == 2
        [error] = retried.record().errors
        assert (error.attempt, error.message) == (1, "later")
        record = in_(discarded, State.DISCARDED)
        assert [error.message for error in record.errors] == ["no use"]
        with pytest.raises(JobFailed, match="no use"):
            discarded.result(timeout=0)
        record = in_(snoozed, State.SCHEDULED)
        assert record.attempt == 0
        assert record.errors == ()
        assert 3000 < waits(snoozed) <= 3600


def test_snoozed_again_and_again(app: Rota) -> None:
    """A snooze spends no attempt, however often it happens."""
    runs: list[int] = []

    @app.task(name="patient", max_attempts=1)
    async def patient(*, ctx: Context | None = None) -> Snooze | None:
        assert ctx is not None
        runs.append(ctx.attempt)
        return Snooze(0.01) if len(runs) < 4 else None

    handle = patient.enqueue()
    drained(app)
    assert runs == [1, 1, 1, 1]
    assert handle.record().state is State.COMPLETED


def test_a_retry_with_a_time(app: Rota) -> None:
    """`Retry(after=…)` overrules the task's policy."""

    @app.task(name="busy", retry=Backoff(first=5))
    async def busy() -> None:
        raise Retry("busy", after=timedelta(hours=1))

    handle = busy.enqueue()
    with working(app):
        in_(handle, State.RETRYABLE)
        assert 3500 < waits(handle) <= 3600


def test_the_last_retry(app: Rota) -> None:
    """A Retry in the last attempt discards the job."""

    @app.task(name="busy", max_attempts=1)
    async def busy() -> Retry:
        return Retry("busy", after=0)

    handle = busy.enqueue()
    with working(app), pytest.raises(JobFailed, match="busy"):
        handle.result(timeout=20)


# Exceptions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", ["loop", "thread"])
def test_exceptions_are_kept(app: Rota, executor: str) -> None:
    """Each failed attempt leaves its exception with a traceback that leads to the handler."""

    def explode(attempt: int) -> None:
        message = f"no luck {attempt}"
        raise LookupError(message)

    if executor == "loop":

        @app.task(name="handler", retry=AT_ONCE)
        async def handler(*, ctx: Context | None = None) -> None:
            assert ctx is not None
            if ctx.attempt < 3:
                explode(ctx.attempt)
    else:

        @app.task(name="handler", retry=AT_ONCE)
        def handler(*, ctx: Context | None = None) -> None:
            assert ctx is not None
            if ctx.attempt < 3:
                explode(ctx.attempt)

    handle = handler.enqueue()
    drained(app)
    record = handle.record()
    assert record.state is State.COMPLETED
    assert [(error.attempt, error.message) for error in record.errors] == [
        (1, "no luck 1"),
        (2, "no luck 2"),
    ]
    for error in record.errors:
        assert error.exception == "builtins.LookupError"
        assert "in explode" in error.traceback
        assert abs(error.at - datetime.now(UTC)) < timedelta(minutes=1)


def test_exceptions_of_a_child(app: Rota) -> None:
    """An exception in a child process is kept with the child's traceback."""
    handle = adopt(app, chores.fail, max_attempts=1).enqueue("it is\0broken \udc80".replace(
        "\0", "-").replace("\udc80", ""))  # fmt: skip
    with working(app), pytest.raises(JobFailed, match="it is-broken"):
        handle.result(timeout=20)
    [error] = handle.record().errors
    assert error.exception == "builtins.ValueError"
    assert "chores.py" in error.traceback


def test_messages_that_cannot_be_stored(app: Rota) -> None:
    """An exception's text with NUL and lone surrogates is kept readable; a broken one too."""

    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    @app.task(name="odd", max_attempts=1)
    async def odd(*, broken: bool) -> None:
        raise Broken if broken else ValueError("a\0b\udc80" + "x" * 100_000)

    one, two = odd.enqueue(broken=False), odd.enqueue(broken=True)
    with working(app):
        [error] = in_(one, State.DISCARDED).errors
        assert error.message.startswith("a\\0b\\udc80")
        assert len(error.message) < 20_000
        [error] = in_(two, State.DISCARDED).errors
        assert "Broken" in error.exception


def test_discarded_after_the_last_attempt(app: Rota) -> None:
    """A job that fails in all of its attempts is discarded, with all of its errors."""

    @app.task(name="broken", retry=AT_ONCE)
    async def broken() -> None:
        raise ValueError("broken")

    handle, short = broken.enqueue(), broken.using(max_attempts=2).enqueue()
    with working(app):
        record = in_(handle, State.DISCARDED)
        assert record.attempt == 3
        assert [error.attempt for error in record.errors] == [1, 2, 3]
        assert len(in_(short, State.DISCARDED).errors) == 2


# Policies ----------------------------------------------------------------------------------------


def test_backoff(app: Rota) -> None:
    """The wait between two attempts is what the task's Backoff says."""

    @app.task(name="broken", retry=Backoff(first=1000, factor=3, jitter=0, attempts=5))
    async def broken() -> None:
        raise ValueError

    handle = broken.enqueue()
    with working(app):
        in_(handle, State.RETRYABLE)
        assert 900 < waits(handle) <= 1000
        app.database.run(app.database.store.retry([handle.id]))
        in_(handle, State.RETRYABLE)
    assert handle.record().state is State.RETRYABLE


def test_backoff_grows(app: Rota) -> None:
    """Every further wait is longer by the factor."""
    delays: list[float] = []
    app.on(JobSettled)(lambda event: delays.append(event.settlement.delay))

    @app.task(name="broken", retry=Backoff(first=0.01, factor=4, cap=0.1, jitter=0, attempts=4))
    async def broken() -> None:
        raise ValueError

    broken.enqueue()
    drained(app)
    assert delays == [0.01, 0.04, 0.1, 0.0]


def test_a_policy_of_ones_own(app: Rota) -> None:
    """A function of attempt and exception says how long to wait, or that it is no use."""
    asked: list[tuple[int, str]] = []

    def policy(attempt: int, error: BaseException) -> float | None:
        asked.append((attempt, str(error)))
        return 0.001 if attempt < 3 else None

    @app.task(name="broken", retry=policy, max_attempts=10)
    async def broken(*, ctx: Context | None = None) -> None:
        assert ctx is not None
        raise ValueError(str(ctx.attempt))

    handle = broken.enqueue()
    with working(app):
        assert in_(handle, State.DISCARDED).attempt == 3
    assert asked == [(1, "1"), (2, "2"), (3, "3")]


@pytest.mark.parametrize("answer", ["raise", "soon", -1.0, float("nan")])
def test_a_policy_that_fails(app: Rota, answer: Any) -> None:
    """A broken policy costs no job: it waits as by default, and both errors are to be seen."""

    def policy(_attempt: int, _error: BaseException) -> float | None:
        if answer == "raise":
            raise ZeroDivisionError
        wait: float | None = answer
        return wait

    @app.task(name="broken", retry=policy)
    async def broken() -> None:
        raise LookupError("the job's own")

    handle = broken.enqueue()
    with working(app):
        record = in_(handle, State.RETRYABLE)
    assert record.scheduled_at is not None
    assert 0 < (record.scheduled_at - record.errors[0].at).total_seconds() < 10
    assert "the job's own" in record.errors[0].traceback


# What cannot be run or stored --------------------------------------------------------------------


def test_an_unknown_task(app: Rota) -> None:
    """A job of a task that this worker does not have goes back, and no attempt is spent."""

    @app.task(name="known", store_result=True)
    async def known() -> int:
        return 1

    [job] = app.database.run(app.database.store.enqueue(Order(JobSpec(task="not.here"), ["{}"])))
    with app.events.collect(TaskUnknown) as unknown, working(app, concurrency=1):
        until(lambda: unknown)
        assert known.enqueue().result(timeout=20) == 1
    record = app.job(job).record()
    assert (record.state, record.attempt, record.errors) == (State.AVAILABLE, 0, ())
    assert len(unknown) == 1


def test_a_thousand_jobs_of_an_unknown_task(app: Rota, caplog: pytest.LogCaptureFixture) -> None:
    """The log says it once, not a thousand times; another task is another line."""

    @app.task(name="known")
    async def known() -> None: ...

    for task in ("not.here", "nor.this"):
        app.database.run(app.database.store.enqueue(Order(JobSpec(task=task), ["{}"] * 50)))
    with app.events.collect(TaskUnknown) as unknown, working(app):
        until(lambda: len(unknown) == 100)
    said = [record.message for record in caplog.records if "no task named" in record.message]
    assert sorted(line.split("'")[1] for line in said) == ["nor.this", "not.here"]


def test_another_worker_knows_the_task(app: Rota) -> None:
    """What one worker gave back another one runs."""

    @app.task(name="old")
    async def old() -> None: ...

    with Rota(app.url) as newer:
        ran: list[int] = []

        @newer.task(name="new")
        async def new() -> None:
            ran.append(1)

        handle = new.enqueue()
        with app.events.collect(TaskUnknown) as unknown, working(app):
            until(lambda: unknown)
        drained(newer)
        assert ran == [1]
        assert handle.record().state is State.COMPLETED


@pytest.mark.parametrize("executor", ["loop", "process"])
def test_args_that_do_not_decode(app: Rota, executor: str) -> None:
    """Args that this version of the task cannot read are failed attempts with a clear reason."""

    @app.task(name="changed", retry=AT_ONCE)
    async def changed(number: int) -> None:
        del number

    task = changed if executor == "loop" else adopt(app, chores.add, retry=AT_ONCE)
    spec = JobSpec(task=task.name, max_attempts=2)
    [job] = app.database.run(app.database.store.enqueue(Order(spec, ['{"number":"four"}'])))
    with working(app):
        record = in_(app.job(job), State.DISCARDED)
    assert [error.exception for error in record.errors] == ["rota.errors.ArgsError"] * 2
    assert "another version of the task" in record.errors[0].message


@pytest.mark.parametrize("executor", ["loop", "thread", "process"])
def test_a_result_that_cannot_be_stored(app: Rota, executor: str) -> None:
    """The handler has run: its job is not run again, but discarded with a message that says so."""
    runs: list[int] = []
    task: Any
    if executor == "process":
        task = adopt(app, chores.unstorable)
    elif executor == "loop":

        @app.task(name="on_loop", store_result=True)
        async def on_loop() -> float:
            runs.append(1)
            return float("nan")

        task = on_loop
    else:

        @app.task(name="in_thread", store_result=True)
        def in_thread() -> int:
            runs.append(1)
            return "four"  # type: ignore[return-value]  # that is the point

        task = in_thread
    handle = task.enqueue()
    with working(app):
        record = in_(handle, State.DISCARDED)
    assert record.attempt == 1
    [error] = record.errors
    assert "the handler ran, but its result cannot be stored" in error.message
    # A mistake in the handler, and told as one: only Discard is logged as information.
    assert error.exception == "rota.errors.ArgsError"
    assert len(runs) == (0 if executor == "process" else 1)


def test_retention(app: Rota) -> None:
    """A task whose jobs are not kept leaves nothing behind."""

    @app.task(name="forgotten", retention=0)
    async def forgotten() -> None: ...

    handle = forgotten.enqueue()
    moves: list[Move] = []
    app.on(JobSettled)(lambda event: moves.append(event.settlement.move))
    drained(app)
    assert moves == [Move.COMPLETE]
    with pytest.raises(RotaError, match="does not exist"):
        handle.record()


def test_settled_soon(app: Rota) -> None:
    """A finished job is written within a moment, also next to a slow one of the same claim."""

    @app.task(name="quick")
    async def quick() -> None: ...

    @app.task(name="slow")
    def slow() -> None:
        until(lambda: first.record().state.finished)

    slow.enqueue()
    first = quick.enqueue()
    began = time.monotonic()
    drained(app)
    assert time.monotonic() - began < 10
    assert WorkerConfig().session_timeout > 10
