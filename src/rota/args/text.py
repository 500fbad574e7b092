"""JSON text: the one encoder, the decoders, and the proof that what is written comes back."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import msgspec

from rota.args import fault, models
from rota.args.fault import Fault
from rota.args.signature import Parameter

T = TypeVar("T")

Read = Callable[[str | bytes], object]

_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_FIT: Final = "; pass a value that fits, or change the annotation"


def _encodable(value: object) -> object:
    """Give msgspec's encoder a form of the values that it does not know."""
    if models.is_model(value):
        return models.written(value)
    # Subclasses, for example numpy.float64; whether the annotation allows them is compared later.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, int):
        return int.__int__(value)
    raise NotImplementedError


def _built(kind: type, tree: object) -> object:
    """Build a value of a type that msgspec's decoder does not know."""
    return models.read(kind, tree) if models.is_model_class(kind) else tree


_encoder: Final = msgspec.json.Encoder(enc_hook=_encodable)
_encode: Final = _encoder.encode


def reader(annotation: object) -> Read:
    """Return the function that reads one value of that annotation."""
    return msgspec.json.Decoder(annotation, dec_hook=_built).decode


def args_decoder(parameters: Sequence[Parameter]) -> "msgspec.json.Decoder[msgspec.Struct]":
    """Return what reads JSON objects of args, each as a Struct in their order.

    The fields of the Struct have names of their own because a parameter may be called anything,
    and in JSON they have the parameters' names. What was not given is UNSET.
    """
    fields = [
        (f"p{number}", each.shape.annotation)
        if each.required
        else (f"p{number}", each.shape.annotation, msgspec.UNSET)
        for number, each in enumerate(parameters)
    ]
    struct = msgspec.defstruct(
        "Args",
        fields,
        kw_only=True,
        forbid_unknown_fields=True,
        rename={f"p{number}": each.name for number, each in enumerate(parameters)},
    )
    return msgspec.json.Decoder(struct, dec_hook=_built)


def written(given: T, compare: Callable[[T, T], Fault | None]) -> bytes | Fault:
    """Return the value as JSON, or why that cannot be.

    Args:
        given: The value.
        compare: Compares two values; with itself, it finds what is wrong with the value alone.
    """
    try:
        return _encode(given)
    except Exception as error:  # noqa: BLE001 - models are the user's code, and raise anything
        name = type(error).__name__
    try:
        found = compare(given, given)
    except RecursionError:
        found = _too_deep()
    return found or Fault(f"cannot be written as JSON ({name}); pass plain values")


def written_lines(values: Iterable[object]) -> bytes:
    """Return the values as JSON, each with a newline behind it, which JSON text never holds."""
    return _encoder.encode_lines(values)


def changed(
    data: bytes, given: T, read: Callable[[bytes], T], compare: Callable[[T, T], Fault | None]
) -> Fault | None:
    """Read `data` back and return how the value would have changed, or None if it did not."""
    try:
        try:
            arrived = read(data)
        except Exception as error:  # noqa: BLE001 - as in `written`
            found = fault.of_reading(error)
            # NaN was written as null: the value itself tells more than what became of it.
            return compare(given, given) or Fault(found.reason + _FIT, found.path)
        return compare(given, arrived) or _hidden_nul(data)
    except RecursionError:
        return _too_deep()


def _hidden_nul(data: bytes) -> Fault | None:
    # In a value that only its own type can look into, for example a URL of pydantic's.
    if b"\\u0000" in data and _NUL.search(data):
        return Fault("holds a NUL character, which PostgreSQL cannot store; remove it")
    return None


def _too_deep() -> Fault:
    return Fault("is nested too deeply, or contains itself; flatten it")
