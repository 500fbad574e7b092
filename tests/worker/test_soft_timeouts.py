"""Soft timeouts: a handler learns that its time is nearly up, and may end in order."""

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from rota import BatchContext, ConfigError, Context, JobFailed, Rota, SoftTimeout, State
from tests.fixtures.workers import drained, until, working
from tests.worker import chores
from tests.worker.chores import adopt

FOREVER = 3600.0


def test_on_the_loop(app: Rota) -> None:
    """What an `async with` block waits for is cancelled, and the handler goes on with its end."""
    said: list[str] = []

    @app.task(name="report", soft_timeout=0.2, timeout=20, max_attempts=1)
    async def report(ctx: Context) -> None:
        said.append(f"hurry: {ctx.hurry}")
        try:
            async with ctx.in_time(), asyncio.TaskGroup() as group:
                group.create_task(work())
        except SoftTimeout:
            await asyncio.sleep(0)
            said.append(f"cleaned up, hurry: {ctx.hurry}, cancelled: {ctx.cancelled}")

    async def work() -> None:
        try:
            await asyncio.sleep(FOREVER)
        finally:
            said.append("work was cancelled")

    handle = report.enqueue()
    drained(app)
    assert handle.status is State.COMPLETED
    assert said == [
        "hurry: False", "work was cancelled", "cleaned up, hurry: True, cancelled: False",
    ]  # fmt: skip


def test_in_a_process(app: Rota) -> None:
    """A `with` block in a child is interrupted wherever it is; the next job of the child is not."""
    handle = adopt(app, chores.overstays, soft_timeout=0.3).enqueue()
    after = adopt(app, chores.add).enqueue(1, 2)
    drained(app, processes=1)
    assert handle.result(timeout=0) == ["SoftTimeout", True, "cleaned up"]
    assert after.result(timeout=0) == 3


def test_in_a_process_that_is_quick(app: Rota) -> None:
    """Nothing interrupts what comes after the block."""
    handle = adopt(app, chores.in_time, soft_timeout=0.3).enqueue()
    drained(app, processes=1)
    assert handle.result(timeout=0) == [False, True]


def test_in_a_thread(app: Rota) -> None:
    """A thread asks its context between its steps, or has it raise."""
    said: list[object] = []

    @app.task(name="report", soft_timeout=timedelta(seconds=0.2), max_attempts=1)
    def report(ctx: Context) -> None:
        ctx.check_time()
        until(lambda: ctx.hurry, seconds=5)
        said.append(ctx.cancelled)
        ctx.check_time()

    handle = report.enqueue()
    with working(app), pytest.raises(JobFailed, match="soft timeout has come"):
        handle.result(timeout=20)
    assert said == [False]
    assert handle.record().errors[0].exception == "rota.errors.SoftTimeout"


def test_a_block_in_a_thread(app: Rota) -> None:
    """A thread cannot be interrupted, so a block is refused there, and says what to do."""

    @app.task(name="report", soft_timeout=60, max_attempts=1)
    def report(ctx: Context) -> None:
        with ctx.in_time():
            pass

    handle = report.enqueue()
    with working(app), pytest.raises(JobFailed, match=r"check ctx\.hurry or call ctx\.check_time"):
        handle.result(timeout=20)


def test_nobody_catches_it(app: Rota) -> None:
    """An attempt that lets it pass has failed, and is followed by another one."""

    @app.task(name="report", soft_timeout=0.1, retry=lambda _a, _e: 0.0, store_result=True)
    async def report(ctx: Context) -> int:
        async with ctx.in_time():
            if ctx.attempt == 1:
                await asyncio.sleep(FOREVER)
        return ctx.attempt

    handle = report.enqueue()
    drained(app)
    assert handle.result(timeout=0) == 2


def test_errors_of_the_handlers_own(app: Rota) -> None:
    """A TimeoutError of the handler's own passes the block as it is."""
    seen: list[str] = []

    @app.task(name="report", soft_timeout=60, max_attempts=1)
    async def report(ctx: Context) -> None:
        try:
            async with ctx.in_time():
                await asyncio.wait_for(asyncio.sleep(FOREVER), 0.01)
        except TimeoutError as error:
            seen.append(type(error).__name__)

    report.enqueue()
    drained(app)
    assert seen == ["TimeoutError"]


def test_the_timeout_comes_anyway(app: Rota) -> None:
    """A handler that does not end in order is stopped by its timeout."""

    @app.task(name="report", soft_timeout=0.1, timeout=0.4, max_attempts=1)
    async def report(ctx: Context) -> None:
        try:
            async with ctx.in_time():
                await asyncio.sleep(FOREVER)
        except SoftTimeout:
            await asyncio.sleep(FOREVER)

    handle = report.enqueue()
    with working(app), pytest.raises(JobFailed, match=r"longer than 0\.4 seconds"):
        handle.result(timeout=20)


def test_batches(app: Rota) -> None:
    """A batch has one soft timeout, for the call."""
    done: list[int] = []

    @app.task(name="many", batch=10, within=0, soft_timeout=0.2)
    def many(numbers: list[int], ctx: BatchContext) -> None:
        assert not ctx.hurry
        until(lambda: ctx.hurry, seconds=5)
        assert ctx.jobs[0].hurry
        done.extend(numbers)

    many.enqueue_many([(1,), (2,)])
    drained(app)
    assert done == [1, 2]


def test_a_direct_call(app: Rota) -> None:
    """It has no soft timeout: the block does nothing."""

    @app.task(name="report", soft_timeout=0.001)
    def report(ctx: Context) -> bool:
        with ctx.in_time():
            threading.Event().wait(0.01)
            ctx.check_time()
            return ctx.hurry

    assert report() is False


def _plain() -> None: ...


def _with_context(ctx: Context) -> None: ...


@pytest.mark.parametrize(
    ("function", "options", "why"),
    [
        (_plain, {"soft_timeout": 5}, "the handler learns of it through a Context"),
        (_with_context, {"soft_timeout": 5, "timeout": 5}, "must come before the timeout of 5"),
        (_with_context, {"soft_timeout": -1}, "soft_timeout: must be between 0"),
    ],
)
def test_what_is_refused(
    app: Rota, function: Callable[..., Any], options: dict[str, Any], why: str
) -> None:
    """A soft timeout that could not do anything is refused where it is declared."""
    with pytest.raises(ConfigError, match=why):
        app.task(name="job", **options)(function)
