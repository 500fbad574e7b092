"""Running single jobs, jobs in place, and what they tell."""

import pytest

from rota import (
    ConfigError,
    Context,
    Rota,
    State,
)
from rota.events import JobCompleted, JobFailed, JobsEnqueued, JobStarted
from rota.model.states import Move
from rota.testing import Kit


def test_progress_and_log(kit: Kit, app: Rota) -> None:
    """What a handler tells is kept, also of an attempt that failed."""

    @app.task(name="tell")
    def tell(ctx: Context) -> None:
        ctx.progress(0.25, "a quarter")
        ctx.log("begun")
        if ctx.attempt == 1:
            raise ValueError

    handle = tell.enqueue()
    kit.drain(raises=False, due="all")
    record = handle.record()
    assert record.progress is not None
    assert (record.progress.fraction, record.progress.attempt) == (0.25, 2)
    assert [line.message for line in record.log] == ["begun", "begun"]


def test_events(kit: Kit, app: Rota) -> None:
    """Events are told as in a worker; the args of what was enqueued can be had."""

    @app.task(name="fail")
    def fail(order: int) -> None:
        if order == 2:
            raise ValueError

    with (
        kit.collect(JobsEnqueued) as enqueued,
        kit.collect(JobStarted) as started,
        kit.collect(JobCompleted) as completed,
        kit.collect(JobFailed) as failed,
    ):
        fail.enqueue_many([(1,), (2,)])
        kit.drain(raises=False)
    assert [dict(kit.args(job)) for event in enqueued for job in event.jobs] == [
        {"order": 1},
        {"order": 2},
    ]
    assert (len(started), len(completed), len(failed)) == (2, 1, 1)
    assert failed[0].exception == "builtins.ValueError"


def test_run_makes_one_attempt(kit: Kit, app: Rota) -> None:
    """It enqueues and runs one job; with a delay, too. Others stay."""

    @app.task(name="ship", store_result=True)
    def ship(order: int) -> int:
        if order < 0:
            raise ValueError(order)
        return order + 1

    other = ship.enqueue(1)
    assert kit.run(ship, 41).result == 42
    assert kit.run(ship.using(delay=3600), order=1).completed
    with pytest.raises(ValueError, match="-1"):
        kit.run(ship, -1)
    run = kit.run(ship, -2, raises=False)
    assert (run.failed, run.move, str(run.error)) == (True, Move.RETRY, "-2")
    assert other.status is State.AVAILABLE


def test_run_on_a_paused_queue(kit: Kit, app: Rota) -> None:
    """A job that cannot run is an error that says why."""

    @app.task(name="ship")
    def ship() -> None: ...

    app.database.run(app.database.store.pause("default"))
    with pytest.raises(ConfigError, match="queue is paused"):
        kit.run(ship)


def test_inline(kit: Kit, app: Rota) -> None:
    """In the block a job runs as soon as it is enqueued; one that waits for its time does not."""
    ran: list[str] = []

    @app.task(name="inner")
    def inner() -> None:
        ran.append("inner")

    @app.task(name="outer")
    def outer() -> None:
        inner.enqueue()
        ran.append("outer")

    @app.task(name="fail")
    def fail() -> None:
        raise ValueError("inline")

    with kit.inline():
        assert outer.enqueue().status is State.COMPLETED
        assert ran == ["inner", "outer"]
        assert inner.using(delay=60).enqueue().status is State.SCHEDULED
        with pytest.raises(ValueError, match="inline"):
            fail.enqueue()
    assert outer.enqueue().status is State.AVAILABLE


def test_inline_without_end(kit: Kit, app: Rota) -> None:
    """A task that enqueues itself inside itself ends with an error."""

    @app.task(name="forever")
    def forever() -> None:
        forever.enqueue()

    with kit.inline(), pytest.raises(ConfigError, match="inside one another"):
        forever.enqueue()
