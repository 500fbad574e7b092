"""The thread's side of a thread executor."""

from collections.abc import Callable
from contextvars import Context
from typing import Any


def contained(variables: Context, call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Call with these context variables; an exception comes back as a value.

    A future cannot carry every exception: StopIteration would leave it pending for ever.
    """
    try:
        return variables.run(call), None
    except BaseException as error:  # noqa: BLE001 - raised again where the result is awaited
        return None, error
