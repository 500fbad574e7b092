"""Handlers that return work which nothing has done: their jobs are not completed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any

import pytest

from rota import Backoff, JobHandle, Rota, State
from rota.model.job import AttemptError
from tests.fixtures.workers import drained
from tests.worker import chores
from tests.worker.chores import adopt

RAN: list[str] = []


async def _coroutine() -> None:
    RAN.append("coroutine")


def _generator() -> Iterator[int]:
    RAN.append("generator")
    yield 1


async def _async_generator() -> AsyncIterator[int]:
    RAN.append("async generator")
    yield 1


class _Lazy:
    """What some libraries return: it begins when it is awaited."""

    def __await__(self) -> Generator[Any, None, None]:
        RAN.append("awaitable")
        yield


def error_of(handle: JobHandle[Any]) -> AttemptError:
    """Why the only attempt of a job failed."""
    record = handle.record()
    assert record.state is State.DISCARDED
    [error] = record.errors
    return error


@pytest.mark.parametrize("store_result", [False, True])
@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async-def"])
@pytest.mark.parametrize(
    ("make", "what"),
    [
        (_coroutine, "a coroutine that was not awaited, so the job is not done; make the handler"),
        (_generator, "a generator that nothing has run, so the job is not done; loop over it"),
        (_async_generator, "a generator that nothing has run"),
        (_Lazy, "_Lazy that was not awaited"),
    ],
    ids=["coroutine", "generator", "async-generator", "awaitable"],
)
def test_what_is_undone(
    app: Rota, make: Callable[[], Any], what: str, *, is_async: bool, store_result: bool
) -> None:
    """A handler that returns a coroutine or the like has failed, and says so; no warning is left."""
    RAN.clear()

    def in_thread() -> Any:
        return make()

    async def on_loop() -> Any:
        return make()

    options: dict[str, Any] = {"name": "job", "max_attempts": 1, "store_result": store_result}
    handle = app.task(**options)(on_loop if is_async else in_thread).enqueue()
    drained(app)
    error = error_of(handle)
    assert error.exception == "rota.errors.TaskError"
    assert what in error.message
    assert RAN == []


def test_a_future_goes_no_further(app: Rota) -> None:
    """A task of the event loop that nothing awaits is ended, so that no second one runs beside it."""
    started: list[asyncio.Task[None]] = []
    ended: list[bool] = []

    @app.task(name="job", retry=Backoff(first=0, attempts=2))
    async def job() -> Any:
        ended.extend(task.cancelled() for task in started)
        started.append(asyncio.create_task(asyncio.sleep(3600)))
        return started[-1]

    handle = job.enqueue()
    drained(app)
    assert [
        "a future that was not awaited" in error.message for error in handle.record().errors
    ] == [
        True,
        True,
    ]
    assert ended == [True]


def test_in_a_child(app: Rota) -> None:
    """The same holds in a child process, where the coroutine is."""
    handle = adopt(app, chores.forgets, max_attempts=1).enqueue()
    drained(app)
    error = error_of(handle)
    assert error.exception == "rota.errors.TaskError"
    assert "a coroutine that was not awaited" in error.message


def test_in_a_batch(app: Rota) -> None:
    """A coroutine in the place of the list fails all jobs, one in the list fails its own."""

    @app.task(name="whole", batch=3, max_attempts=1)
    def whole(numbers: list[int]) -> Any:
        del numbers
        return _coroutine()

    @app.task(name="parts", batch=3, max_attempts=1)
    def parts(numbers: list[int]) -> list[Any]:
        return [_coroutine() if number == 1 else None for number in numbers]

    handles = [whole.enqueue(1), whole.enqueue(2), parts.enqueue(1)]
    fine = parts.enqueue(2)
    drained(app)
    for handle in handles:
        assert "a coroutine that was not awaited" in error_of(handle).message
    assert fine.record().state is State.COMPLETED


def test_a_handle_is_done(app: Rota) -> None:
    """A handler may end with an enqueue: the handle can be awaited, but its job is stored."""

    @app.task(name="second")
    def second() -> None: ...

    @app.task(name="first", max_attempts=1)
    def first() -> Any:
        return second.enqueue()

    handle = first.enqueue()
    drained(app)
    assert handle.record().state is State.COMPLETED
