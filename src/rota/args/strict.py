"""The comparison between what was given and what the worker would receive.

One walk over both trees side by side. It needs no annotations: the decoder has applied them, so
what it built shows what they say. The same walk with the given value on both sides finds what is
wrong with a value that could not even be written.
"""

import dataclasses
import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from itertools import repeat
from math import isfinite
from operator import contains, ne
from typing import Final
from uuid import UUID

import msgspec

from rota.args import models
from rota.args.fault import Fault

MAX_DEPTH: Final = 100
"""Levels of containers; parsers in databases and other languages allow not many more."""
INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1

_MISSING: Final = object()
_UNEQUAL = "does not come back from JSON with the same value"


def _fine(_value: object) -> None:
    return None


def _text(value: str) -> str | None:
    if "\0" in value:
        return "holds a NUL character, which PostgreSQL cannot store; remove it, or pass bytes"
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return (
                "holds a lone surrogate, which is not valid text; if it is a file name, "
                "pass os.fsencode(name) as bytes"
            )
    return None


def _integer(value: int) -> str | None:
    if INT_MIN <= value <= INT_MAX:
        return None
    return "is an integer beyond 64 bits, which databases round; pass it as a str or a Decimal"


def _float(value: float) -> str | None:
    if isfinite(value):
        return None
    return "is NaN or infinite, which JSON cannot hold; pass None or a str instead"


def _decimal(value: Decimal) -> str | None:
    if value.is_finite():
        return None
    return "is a Decimal that is NaN or infinite; pass None or a str instead"


def _datetime(value: dt.datetime) -> str | None:
    if value.utcoffset() is not None:
        return None
    return "is a naive datetime; say which instant it is, for example with tzinfo=UTC"


REASONS: Final[dict[type, Callable[..., str | None]]] = {
    int: _integer,
    str: _text,
    float: _float,
    bool: _fine,
    type(None): _fine,
    Decimal: _decimal,
    dt.datetime: _datetime,
    dt.date: _fine,
    dt.time: _fine,
    dt.timedelta: _fine,
    UUID: _fine,
    bytes: _fine,
    bytearray: _fine,
    msgspec.UnsetType: _fine,
}
"""For each scalar type: why a value cannot be stored, or None if it can."""


def all_fine(values: Sequence[object], kinds: frozenset[type]) -> bool:
    """Whether all of these scalars are of exactly one of these types, and can be stored."""
    found = set(map(type, values))
    if not found <= kinds:
        return False
    return all(
        _ALL_FINE[kind](values if len(found) == 1 else [v for v in values if type(v) is kind])
        for kind in found
    )


def _texts(values: Sequence[str]) -> bool:
    if any(map(contains, values, repeat("\0"))):
        return False
    return all(map(str.isascii, values)) or all(_text(value) is None for value in values)


_ALL_FINE: Final[dict[type, Callable[..., bool]]] = {
    int: lambda values: min(values) >= INT_MIN and max(values) <= INT_MAX,
    str: _texts,
    float: lambda values: all(map(isfinite, values)),
    bool: lambda _: True,
    type(None): lambda _: True,
}
"""What `REASONS` asks of single values, for many at once."""


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """How strictly the values of one parameter are compared.

    Attributes:
        exact: Nothing may change type. Otherwise the annotation says throughout what arrives, and a
            value may become the annotation's type if that includes its own: a StrEnum a str, a
            defaultdict a dict, and for the sake of `Sequence` and `Set`, a tuple a list.
        names: Keys of TypedDicts, which may be shown in a path. Any other key is data.
        foreign: Below a pydantic model, which knows how to store types that are unknown here.
    """

    exact: bool = True
    names: frozenset[str] = frozenset()
    foreign: bool = False

    def fault(  # noqa: PLR0911 - one return per kind of value
        self, given: object, arrived: object, depth: int = 0
    ) -> Fault | None:
        """Return why `given` cannot be stored, or is not what `arrived` is; None if all is well."""
        kind: type = type(given)
        reason_for = REASONS.get(kind)
        if reason_for is not None:
            if reason := reason_for(given):
                return Fault(reason)
            if type(arrived) is kind and _same(given, arrived):
                return None
            return self._changed(given, arrived)
        if depth >= MAX_DEPTH:
            return Fault(f"is nested more than {MAX_DEPTH} levels deep; flatten it")
        if isinstance(given, dict):
            return self._dict(given, arrived, depth)
        if isinstance(given, (list, tuple)):
            return self._sequence(given, arrived, depth)
        if isinstance(given, (set, frozenset)):
            return self._set(given, arrived, depth)
        if (names := _fields(kind)) is not None:
            return self._object(given, arrived, names, depth)
        return self._other(given, arrived)

    def _dict(  # noqa: PLR0911 - one return per fault
        self, given: dict[object, object], arrived: object, depth: int
    ) -> Fault | None:
        if not isinstance(arrived, dict) or not self._kept(given, arrived, dict):
            return self._changed(given, arrived)
        for position, (key, value) in enumerate(given.items()):
            step = f".{key}" if key in self.names else f"[key {position}]"
            if type(key) is str:
                if reason := _text(key):
                    return Fault(f"has a key that {reason}", step)
            elif not isinstance(key, str):
                name = type(key).__name__
                return Fault(f"has a key of type {name}; keys of JSON are str, convert them", step)
            elif fault := self._odd_key(key, arrived, depth):
                return Fault(f"has a key that {fault.reason}", step)
            twin = arrived.get(key, _MISSING)
            if twin is _MISSING:
                return Fault(
                    "would be dropped by the annotation; leave it out, or declare it", step
                )
            if fault := self.fault(value, twin, depth + 1):
                return fault.below(step)
        return None if len(given) == len(arrived) else Fault(_UNEQUAL)

    def _odd_key(self, key: str, arrived: dict[object, object], depth: int) -> Fault | None:
        # A StrEnum, or some other kind of str: the dict may have been rebuilt with plain keys.
        twin = next((other for other in arrived if other == key), key)
        return self.fault(key, twin, depth + 1)

    def _sequence(
        self, given: list[object] | tuple[object, ...], arrived: object, depth: int
    ) -> Fault | None:
        if not isinstance(arrived, (list, tuple)) or not self._kept(given, arrived, list):
            return self._changed(given, arrived)
        if len(given) != len(arrived):
            return Fault(_UNEQUAL)
        if _same_numbers(given, arrived):
            return None
        for index, (item, twin) in enumerate(zip(given, arrived, strict=True)):
            if fault := self.fault(item, twin, depth + 1):
                names = getattr(arrived, "_fields", None)
                return fault.below(f".{names[index]}" if names else f"[{index}]")
        return None

    def _set(
        self, given: set[object] | frozenset[object], arrived: object, depth: int
    ) -> Fault | None:
        if not isinstance(arrived, (set, frozenset)) or not self._kept(given, arrived, set):
            return self._changed(given, arrived)
        twins = dict(zip(arrived, arrived, strict=True))
        for item in given:
            # An item that got lost is compared with itself: that may tell why.
            twin = twins.get(item, _MISSING)
            if fault := self.fault(item, item if twin is _MISSING else twin, depth + 1):
                return fault.below("{...}")
            if twin is _MISSING:
                return Fault(_UNEQUAL, "{...}")
        return None if len(given) == len(arrived) else Fault(_UNEQUAL)

    def _object(
        self, given: object, arrived: object, names: tuple[str, ...], depth: int
    ) -> Fault | None:
        if type(given) is not type(arrived):
            return self._changed(given, arrived)
        inner = self
        if models.is_model(given) and models.is_model(arrived):
            inner = Comparison(names=self.names, foreign=True)
            extra = given.__pydantic_extra__
            if extra and (fault := inner.fault(extra, arrived.__pydantic_extra__, depth)):
                return fault
        for name in names:
            value = getattr(given, name, _MISSING)
            twin = getattr(arrived, name, _MISSING)
            if value is _MISSING and twin is _MISSING:
                continue
            if value is _MISSING or twin is _MISSING:
                return Fault(_UNEQUAL, f".{name}")
            if fault := inner.fault(value, twin, depth + 1):
                return fault.below(f".{name}")
        return None

    def _other(self, given: object, arrived: object) -> Fault | None:
        if isinstance(given, Enum):
            if fault := Comparison(foreign=True).fault(given.value, given.value):
                return fault
            return None if arrived is given else self._changed(given, arrived)
        for base in type(given).__mro__[1:-1]:
            if reason_for := REASONS.get(base):
                if reason := reason_for(given):
                    return Fault(reason)
                break
        else:
            if not self.foreign:
                name = type(given).__name__
                return Fault(f"is of type {name}, which has no form in JSON; pass plain values")
        if type(arrived) is type(given) and given == arrived:
            return None
        return self._changed(given, arrived)

    def _kept(self, given: object, arrived: object, abstract: type) -> bool:
        """Whether the container kept its type, or may become `abstract`, as which ABCs arrive."""
        kind = type(arrived)
        if type(given) is kind:
            return True
        return not self.exact and (kind is abstract or isinstance(given, kind))

    def _changed(self, given: object, arrived: object) -> Fault | None:
        kind, became = type(given), type(arrived)
        if kind is became:
            return Fault(_UNEQUAL)
        if kind is int and became is float and given == arrived:
            return None
        if not self.exact and became in REASONS and issubclass(kind, became):
            return None if _same(given, arrived) else Fault(_UNEQUAL)
        return Fault(
            f"is of type {kind.__name__} but the task would receive {became.__name__}; "
            f"annotate it as {kind.__name__}, or pass {became.__name__}"
        )


def _same(given: object, arrived: object) -> bool:
    if isinstance(given, dt.datetime) and isinstance(arrived, dt.datetime):
        # `==` is always False between zones in a repeated hour (PEP 495), and UTC may be out of
        # range; clock and offset together say the same.
        clock = given.replace(tzinfo=None), given.utcoffset()
        return clock == (arrived.replace(tzinfo=None), arrived.utcoffset())
    if isinstance(given, dt.time) and isinstance(arrived, dt.time):
        # `==` overlooks a zone that has no offset without a date.
        return given == arrived and (given.tzinfo is None) == (arrived.tzinfo is None)
    return given == arrived


def _same_numbers(given: Sequence[object], arrived: Sequence[object]) -> bool:
    """Whether these are two lists of equal numbers of one type: long ones deserve a short cut."""
    kinds = set(map(type, given))
    if given is arrived or kinds not in ({int}, {float}) or set(map(type, arrived)) != kinds:
        return False
    if any(map(ne, given, arrived)):
        return False
    # Floats that came back equal are finite: NaN and infinity are written as null.
    return kinds == {float} or INT_MIN <= min(given) <= max(given) <= INT_MAX  # type: ignore[type-var,operator]


@lru_cache(maxsize=1000)
def _fields(kind: type) -> tuple[str, ...] | None:
    """Return the names of the fields if `kind` is a class of records, else None."""
    if issubclass(kind, msgspec.Struct):
        return kind.__struct_fields__
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    if models.is_model_class(kind):
        return models.field_names(kind)
    if (attributes := getattr(kind, "__attrs_attrs__", None)) is not None:
        return tuple(attribute.name for attribute in attributes)
    return None
