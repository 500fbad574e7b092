"""What a task's function says of itself: where it is, and what it returns."""

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints


def module_of(function: Callable[..., Any]) -> str:
    """The module's name as a worker will know it, also for a file that is run as a script."""
    if function.__module__ != "__main__":
        return function.__module__
    script = sys.modules["__main__"]
    spec = getattr(script, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    return Path(getattr(script, "__file__", None) or "__main__").stem


def result_annotation(function: Callable[..., object]) -> object:
    """What a handler says it returns; anything, if it does not say so."""
    try:
        return get_type_hints(function, include_extras=True).get("return", Any)
    except NameError:
        return Any


def without_outcomes(annotation: object) -> object:
    """The annotation of the results alone: in `-> str | Snooze` outcomes are none."""
    arguments = getattr(annotation, "__args__", None)
    if arguments is None or getattr(annotation, "__origin__", None) not in {None, _union()}:
        return annotation
    kept = [part for part in arguments if not _is_outcome(part)]
    if len(kept) == len(arguments):
        return annotation
    return functools.reduce(lambda left, right: left | right, kept) if kept else None


def _is_outcome(part: object) -> bool:
    return isinstance(part, type) and issubclass(part, Exception)


def _union() -> object:
    from typing import Union

    return Union
