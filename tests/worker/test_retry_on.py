"""`retry_on` and `discard_on`: which exceptions cost a job an attempt, and which the job."""

import asyncio
from typing import Any

import pytest

from rota import Backoff, ConfigError, Discard, Retry, Rota, Snooze, State
from tests.fixtures.workers import drained
from tests.worker import chores
from tests.worker.chores import adopt

TWICE = Backoff(first=0, attempts=2)


class Throttled(ConnectionError):
    """Finer than what a task names."""


RAISED: dict[str, tuple[Any, int]] = {
    "finer": (Throttled, 2),
    "gone": (FileNotFoundError, 1),
    "other": (ValueError, 1),
    "outcome": (lambda _: Retry("busy", after=0), 2),
    "discard": (lambda _: Discard("no use"), 1),
}


@pytest.mark.parametrize("kind", RAISED)
@pytest.mark.parametrize("executor", ["loop", "thread"])
def test_only_these_are_retried(app: Rota, executor: str, kind: str) -> None:
    """Subclasses are, all others discard the job at once; outcomes come first, `discard_on` next."""
    make, attempts = RAISED[kind]
    options: dict[str, Any] = {"retry_on": OSError, "discard_on": (FileNotFoundError,)}

    async def on_loop() -> None:
        raise make(kind)

    def in_thread() -> None:
        raise make(kind)

    function: Any = on_loop if executor == "loop" else in_thread
    handle = app.task(name="picky", retry=TWICE, **options)(function).enqueue()
    drained(app)
    record = handle.record()
    assert (record.state, record.attempt) == (State.DISCARDED, attempts)
    assert len(record.errors) == attempts


@pytest.mark.parametrize(
    ("kind", "attempts"), [("busy", 2), ("gone", 1), ("wrong", 1), ("exit", 2)]
)
def test_in_child_processes(app: Rota, kind: str, attempts: int) -> None:
    """The child decides by the class; a child that died follows the attempts' rules."""
    task = adopt(app, chores.pick, retry=TWICE, retry_on=OSError, discard_on=FileNotFoundError)
    handle = task.enqueue(kind)
    drained(app, processes=1)
    record = handle.record()
    assert (record.state, record.attempt) == (State.DISCARDED, attempts)
    if kind != "exit":
        assert record.errors[-1].message == kind


@pytest.mark.parametrize(("retried", "attempts"), [(TimeoutError, 2), (KeyError, 1)])
def test_a_handlers_time_out(app: Rota, retried: type[Exception], attempts: int) -> None:
    """It is a `TimeoutError`."""

    @app.task(name="slow", timeout=0.05, retry=TWICE, retry_on=retried)
    async def slow() -> None:
        await asyncio.Event().wait()

    handle = slow.enqueue()
    drained(app)
    assert (handle.status, handle.record().attempt) == (State.DISCARDED, attempts)


def test_a_policy_of_its_own(app: Rota) -> None:
    """A function is asked about what is retried, and about no other exception."""
    asked: list[str] = []

    def policy(attempt: int, error: BaseException) -> float | None:
        asked.append(f"{attempt} {error}")
        return 0 if attempt == 1 else None

    @app.task(name="asks", retry=policy, retry_on=(KeyError, OSError))
    async def asks(*, known: bool) -> None:
        raise OSError("away") if known else ValueError("wrong")

    handles = [asks.enqueue(known=known) for known in (True, False)]
    drained(app)
    assert asked == ["1 away", "2 away"]
    assert [handle.record().attempt for handle in handles] == [2, 1]


def test_snoozing_is_no_exception(app: Rota) -> None:
    """A `Snooze` that is raised is not looked for among them."""
    runs: list[str] = []

    @app.task(name="sleeps", retry_on=KeyError)
    async def sleeps() -> None:
        runs.append("run")
        if len(runs) == 1:
            raise Snooze(0)

    handle = sleeps.enqueue()
    drained(app)
    assert (handle.status, len(runs), handle.record().attempt) == (State.COMPLETED, 2, 1)


def test_batches(app: Rota) -> None:
    """What one job of a batch raised is judged by itself."""

    @app.task(name="many", batch=2, within=0, retry=TWICE, retry_on=OSError)
    async def many(items: list[int]) -> list[Any]:
        return [OSError("away") if item else ValueError("wrong") for item in items]

    handles = [many.enqueue(number) for number in (0, 1)]
    drained(app)
    assert [handle.record().attempt for handle in handles] == [1, 2]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("TimeoutError", "'TimeoutError'"),
        ((OSError, "KeyError"), "'KeyError'"),
        ([OSError], "a tuple of them"),
        (OSError(), "an exception class"),
        (int, "class 'int'"),
        ((), "leave {} out"),
        (Retry, "is an outcome"),
    ],
)
@pytest.mark.parametrize("option", ["retry_on", "discard_on"])
def test_what_is_no_class_of_exceptions(app: Rota, option: str, given: Any, said: str) -> None:
    """It is refused where the task is declared, with what to write."""
    with pytest.raises(ConfigError) as refused:
        app.task(name="never", **{option: given})(lambda: None)
    assert option in str(refused.value)
    assert said.format(f"{option}=") in str(refused.value)
