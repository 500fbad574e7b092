"""Driving an operation on a connection: two short loops, one blocking and one not.

`drive` and `adrive` know nothing of databases; what a request means on a connection is in the
backends' connections (Rota's own) and in `rota.database.adapters` (the callers').
"""

from collections.abc import Awaitable, Callable, Generator
from typing import ParamSpec, TypeVar

T = TypeVar("T")
Asked = TypeVar("Asked")
Given = TypeVar("Given")
P = ParamSpec("P")


def drive(
    steps: Generator[Asked, Given, T],
    execute: Callable[[Asked], Given],
    taken: Asked | None = None,
) -> T:
    """Run the steps of an operation to their end; errors of `execute` are thrown into them.

    Their first request may have been `taken` from them already.
    """
    try:
        request = next(steps) if taken is None else taken
        while True:
            try:
                given = execute(request)
            except BaseException as error:  # noqa: BLE001 - the steps decide what it means
                request = steps.throw(error)
            else:
                request = steps.send(given)
    except StopIteration as end:
        result: T = end.value
        return result


async def adrive(
    steps: Generator[Asked, Given, T], execute: Callable[[Asked], Awaitable[Given]]
) -> T:
    """`drive` where `execute` is a coroutine function."""
    try:
        request = next(steps)
        while True:
            try:
                given = await execute(request)
            except BaseException as error:  # noqa: BLE001 - the steps decide what it means
                request = steps.throw(error)
            else:
                request = steps.send(given)
    except StopIteration as end:
        result: T = end.value
        return result


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a blocking function without blocking the event loop."""
    # Imported here: it is a third of `import rota`, and many programs never await anything.
    import asyncio

    return await asyncio.to_thread(function, *args, **kwargs)
