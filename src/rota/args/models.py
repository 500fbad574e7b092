"""Pydantic models, without importing pydantic.

A class can only be a model if pydantic is loaded already, so `sys.modules` is asked and nothing is
imported. Models are written and read by pydantic itself, under their field names and not their
aliases: names are what the class says, and one flag then serves every kind of alias
(`by_name` needs pydantic 2.11).
"""

import sys
import typing
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Protocol, Self, TypeGuard

import msgspec

from rota.args.fault import Fault


class Model(Protocol):
    """The part of `pydantic.BaseModel` that Rota uses."""

    __pydantic_extra__: dict[str, object] | None

    def model_dump_json(self, *, by_alias: bool, round_trip: bool, warnings: bool) -> str:
        """Return the model as JSON text."""
        raise NotImplementedError

    @classmethod
    def model_validate_json(cls, json_data: bytes, *, by_alias: bool, by_name: bool) -> Self:
        """Return the model that JSON text describes."""
        raise NotImplementedError


def is_model_class(kind: object) -> TypeGuard[type[Model]]:
    """Whether `kind` is a pydantic model class."""
    return isinstance(kind, type) and _is_model_class(kind)


@lru_cache(maxsize=1000)
def _is_model_class(kind: type) -> bool:
    # A cached no stays true: a class that is older than pydantic's import is no model.
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(kind, pydantic.BaseModel)


def is_model(value: object) -> TypeGuard[Model]:
    """Whether `value` is a pydantic model."""
    return is_model_class(type(value))


def written(model: Model) -> msgspec.Raw:
    """Return the model as JSON to embed. Warnings are off because they quote values."""
    return msgspec.Raw(model.model_dump_json(by_alias=False, round_trip=True, warnings=False))


def read(kind: type[Model], tree: object) -> Model:
    """Build a model from plain JSON values.

    The values become text once more because only pydantic's JSON mode turns a string into a
    datetime in a model that is configured to be strict.

    Raises:
        ValueError: With a `Fault` as its argument.
    """
    text = msgspec.json.encode(tree)
    try:
        return kind.model_validate_json(text, by_alias=False, by_name=True)
    except ValueError as error:
        fault = _fault(kind, error)
    raise ValueError(fault)


def field_names(kind: type) -> tuple[str, ...]:
    """Return the names of a model class's fields."""
    fields: Mapping[str, object] = kind.model_fields  # type: ignore[attr-defined]
    return tuple(fields)


def _fault(kind: type[Model], error: ValueError) -> Fault:
    # Only pydantic's code for the error ("int_parsing"): its messages may quote the input, as do
    # those of the user's own validators.
    first = error.errors(include_input=False, include_url=False)[0]  # type: ignore[attr-defined]
    known = set(_names_within(kind, set()))
    # A step that no model declares may be the key of a dict, which is data.
    steps = (
        f"[{step}]" if isinstance(step, int) else f".{step}" if step in known else "[...]"
        for step in first["loc"]
    )
    return Fault(f"does not fit {kind.__name__} (pydantic: {first['type']})", "".join(steps))


def _names_within(annotation: object, seen: set[object]) -> Iterator[str]:
    if is_model_class(annotation):
        if annotation in seen:
            return
        seen.add(annotation)
        fields = annotation.model_fields  # type: ignore[attr-defined]
        yield from fields
        for field in fields.values():
            yield from _names_within(field.annotation, seen)
    for argument in typing.get_args(annotation):
        yield from _names_within(argument, seen)
