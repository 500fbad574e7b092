"""What a handler is given that is no arg: the default `PROVIDED` marks such a parameter."""

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final


class Provided(Enum):
    """The kind of the mark, which has one value."""

    PROVIDED = "PROVIDED"

    def __repr__(self) -> str:
        return "rota.PROVIDED"


PROVIDED: Final[Any] = Provided.PROVIDED
"""Stands where a resource is to be passed: `def pay(order: int, engine: Engine = rota.PROVIDED)`."""


@dataclass(frozen=True, slots=True)
class Need:
    """A parameter that is given a resource.

    Attributes:
        name: The parameter's name.
        kinds: The types of which the resource may be; none where only the name can tell.
    """

    name: str
    kinds: tuple[type, ...] = ()

    def __str__(self) -> str:
        kinds = " | ".join(kind.__name__ for kind in self.kinds)
        return f"{self.name}: {kinds}" if kinds else self.name


def is_provided(parameter: inspect.Parameter) -> bool:
    """Whether a parameter's default is `PROVIDED`."""
    return parameter.default is PROVIDED


def kinds_of(annotation: object) -> tuple[type, ...]:
    """The types that an annotation names, as far as a value can be asked whether it is of one."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return kinds_of(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        parts = [part for part in typing.get_args(annotation) if part is not type(None)]
        each = [kinds_of(part) for part in parts]
        return tuple(kind for kinds in each for kind in kinds) if all(each) else ()
    kind = annotation if origin is None else origin
    try:
        isinstance(None, kind)  # type: ignore[arg-type]  # that is the question
    except TypeError:
        # No type, a protocol that is not for run time, a TypedDict.
        return ()
    return (kind,) if isinstance(kind, type) and kind is not object else ()


def not_given(
    function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]
) -> list[str]:
    """The parameters that need a resource, and get none by a call with these arguments."""
    signature = inspect.signature(function)
    passed = signature.bind_partial(*args, **kwargs).arguments
    return [
        name
        for name, each in signature.parameters.items()
        if is_provided(each) and passed.get(name, PROVIDED) is PROVIDED
    ]


class InPages:
    """What parameters are annotated with that get results page by page: nothing of it is stored."""


def in_pages(annotation: object) -> bool:
    """Whether a parameter is annotated so."""
    kind = typing.get_origin(annotation) or annotation
    return isinstance(kind, type) and issubclass(kind, InPages)
