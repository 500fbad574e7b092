"""What can be a handler: a task that cannot do what it says is refused where it is declared."""

import inspect

from rota.errors import TaskError

LAMBDA = "<lambda>"
"""What the qualified name of a lambda ends with."""

LOCALS = "<locals>"
"""What is in the qualified name of a function that was made inside another one."""


def check_handler(function: object, *, named: bool) -> None:
    """Refuse what would complete without having run, or what no worker could find by its name.

    Raises:
        TaskError: It is no function, a generator function, or has no name that stays the same.
    """
    own = getattr(function, "__qualname__", None)
    if not callable(function) or own is None:
        message = (
            f"a task is made of a function, not of {type(function).__name__}; "
            "write a def, and give options by name: @rota.task(queue=…)"
        )
        raise TaskError(message)
    if fault := _fault(function) or ("" if named else _nameless(function, own)):
        message = f"{own} cannot be a task: {fault}"
        raise TaskError(message)


def _fault(function: object) -> str:
    if isinstance(function, type):
        return "it is a class, so a job would only make an object; write a def that uses it"
    if hasattr(function, "enqueue"):
        return "it is already a task; make another task from its .function"
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return (
            "it yields, so calling it only makes a generator, and its code never "
            "runs; remove yield, or write a def that loops over it"
        )
    return ""


def _nameless(function: object, own: str) -> str:
    if own.endswith(LAMBDA):
        return "a lambda has no name of its own; write a def, or give it a name="
    if LOCALS in own:
        return (
            "it is defined inside a function, so no worker could import it by that name; "
            "move it to the top level of its module, or give it a name="
        )
    if inspect.isbuiltin(function):
        return "it is built in and belongs to no app; write a def that calls it, or give it a name="
    return ""
