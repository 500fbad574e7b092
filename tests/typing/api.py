"""What type checkers know of the public API: mypy runs on this file, nothing else does.

Each `type: ignore` names the error that the line must have: with `warn_unused_ignores` (part of
`--strict`) it would be an error of its own if the wrong call were accepted.
"""

from typing import TYPE_CHECKING, Any, assert_type

from rota import Context, Enqueued, JobHandle, Rota, State, Task

if TYPE_CHECKING:
    from collections.abc import Coroutine

rota = Rota("sqlite:///never-opened.db")


@rota.task
def double(number: int) -> int:
    """A task without options."""
    return 2 * number


@rota.task(queue="mail", store_result=True)
async def send_receipt(order: int, *, locale: str = "en") -> str:
    """An async task with options."""
    return f"{order} {locale}"


@rota.task(executor="process")
def render(path: str, ctx: Context | None = None) -> None:
    """A task that has a context."""


def direct_calls() -> None:
    """A task called like a function is the function."""
    assert_type(double(2), int)
    one: Coroutine[Any, Any, str] = send_receipt(1, locale="it")
    double("2")  # type: ignore[arg-type]
    double()  # type: ignore[call-arg]
    other = send_receipt(1, "it")  # type: ignore[call-arg]
    del one, other


def enqueueing() -> None:
    """`enqueue` has the function's parameters, and the handle knows the result."""
    assert_type(double.enqueue(2), JobHandle[int])
    assert_type(send_receipt.enqueue(1, locale="it"), JobHandle[str])
    assert_type(render.enqueue("a.png"), JobHandle[None])
    assert_type(double.enqueue(2).result(timeout=5), int)
    assert_type(send_receipt.enqueue(1).result(), str)
    assert_type(double.enqueue(2).status, State)
    double.enqueue("2")  # type: ignore[arg-type]
    double.enqueue()  # type: ignore[call-arg]
    double.enqueue(1, 2)  # type: ignore[call-arg]
    double.enqueue(colour=2)  # type: ignore[call-arg]
    send_receipt.enqueue("1")  # type: ignore[arg-type]
    send_receipt.enqueue(1, locale=2)  # type: ignore[arg-type]


async def in_async_code() -> None:
    """The async twins are checked alike."""
    assert_type(await send_receipt.aenqueue(1), JobHandle[str])
    assert_type(await (await send_receipt.aenqueue(1)).aresult(), str)
    assert_type(await double.aenqueue_many([(1,), {"number": 2}]), Enqueued)
    await double.aenqueue("2")  # type: ignore[arg-type]
    await send_receipt.aenqueue()  # type: ignore[call-arg]


def with_options(conn: object) -> None:
    """`using` keeps the types of the task."""
    assert_type(double.using(priority=-5, delay=30).enqueue(2), JobHandle[int])
    assert_type(send_receipt.using(conn=conn).enqueue(1), JobHandle[str])
    double.using(queue="mail").enqueue("2")  # type: ignore[arg-type]
    double.using(priority="high")  # type: ignore[arg-type]
    double.using(at=7)  # type: ignore[arg-type]


def many() -> None:
    """`enqueue_many` gives ids."""
    assert_type(double.enqueue_many([(1,), (2,)]), Enqueued)
    double.enqueue_many(7)  # type: ignore[arg-type]


def declaring() -> None:
    """Options of a task are checked."""
    task: Task[[int], int, int] = rota.task(double.function)
    other: Task[[str], int, int] = rota.task(double.function)  # type: ignore[arg-type, assignment]
    del task, other
    rota.task(queue=7)  # type: ignore[call-overload]
    rota.task(colour="red")  # type: ignore[call-overload]
    assert_type(rota.job(7), JobHandle[Any])


@rota.task
def export(ctx: Context, rows: int) -> int:
    """Takes a context first."""
    return rows + ctx.attempt


def context_first() -> None:
    """A leading Context is no argument of enqueue, nor of a direct call."""
    assert_type(export.enqueue(7), JobHandle[int])
    assert_type(export(7), int)
    export.enqueue("7")  # type: ignore[arg-type]
