"""Driving an operation on a connection: two short loops, one blocking and one not.

`drive` and `adrive` know nothing of databases; what a request means on a connection is in the
backends' connections (Rota's own) and in `callers` (the callers').
"""

from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from rota.store.operation import Request, Rows, Steps

T = TypeVar("T")
P = ParamSpec("P")


def drive(steps: Steps[T], execute: Callable[[Request], Rows]) -> T:
    """Run the steps of an operation to their end; errors of `execute` are thrown into them."""
    try:
        request = next(steps)
        while True:
            try:
                rows = execute(request)
            except Exception as error:  # noqa: BLE001 - the operation decides what it means
                request = steps.throw(error)
            else:
                request = steps.send(rows)
    except StopIteration as end:
        result: T = end.value
        return result


async def adrive(steps: Steps[T], execute: Callable[[Request], Awaitable[Rows]]) -> T:
    """`drive` where `execute` is a coroutine function."""
    try:
        request = next(steps)
        while True:
            try:
                rows = await execute(request)
            except Exception as error:  # noqa: BLE001 - the operation decides what it means
                request = steps.throw(error)
            else:
                request = steps.send(rows)
    except StopIteration as end:
        result: T = end.value
        return result


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a blocking function without blocking the event loop."""
    # Imported here: it is a third of `import rota`, and many programs never await anything.
    import asyncio

    return await asyncio.to_thread(function, *args, **kwargs)
