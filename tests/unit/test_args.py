"""Args and results: what comes back the same, and what is refused, with which words."""

import collections
import datetime as dt
import enum
import functools
import importlib.util
import inspect
import json
import math
import subprocess
import sys
import types
import zoneinfo
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from decimal import Decimal
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    TypedDict,
    Unpack,
)
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.args import MAX_ARGS_BYTES, ArgsCodec, ResultCodec
from rota.args.strict import INT_MAX, INT_MIN, MAX_DEPTH, Comparison
from rota.errors import ArgsError

if TYPE_CHECKING:
    from fractions import Fraction

ROME = zoneinfo.ZoneInfo("Europe/Rome")
NOON = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)
SECRET = "hunter2"


def name(value: object) -> str:
    """Names a test case alike in every process: sets have another order in each."""
    text = repr(value)
    return type(value).__name__ if "{" in text and ":" not in text else text[:60]


class Context:
    def __repr__(self) -> str:
        return "Context()"  # test cases are named alike in every process


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.StrEnum):
    S = "s"
    L = "l"


class Ending(enum.Enum):
    NUL = "\0"


class Level(enum.IntEnum):
    LOW = 1


class Point(NamedTuple):
    x: int
    y: float = 0.0


class Options(TypedDict):
    price: float
    name: NotRequired[str]


@dataclass
class Item:
    name: str
    price: float | None = 1.0
    note: object = None


@dataclass
class SpecialItem(Item):
    extra: int = 0


@dataclass
class Order:
    items: list[Item] = field(default_factory=list)
    parent: "Order | None" = None


class Tag(msgspec.Struct, forbid_unknown_fields=True):
    text: str
    at: dt.datetime | None = None


class Address(pydantic.BaseModel):
    city: str
    since: dt.datetime | None = None


class Person(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)

    name: str = pydantic.Field(alias="fullName", serialization_alias="full-name")
    addresses: list[Address] = []
    weight: float | None = None
    ids: set[UUID] = set()

    @pydantic.field_validator("name")
    @classmethod
    def _no_secret(cls, name: str) -> str:
        if name == SECRET:
            raise ValueError(f"{name} is not allowed")
        return name


class Lossy(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")

    numbers: list[float] = []
    pairs: list[str] = []
    names: set[str] = set()
    children: "list[Lossy]" = []

    @pydantic.field_serializer("numbers")
    def _rounded(self, numbers: list[float]) -> list[float]:
        return [round(number) for number in numbers]

    @pydantic.field_serializer("pairs", "names")
    def _shortened(self, values: Iterable[str]) -> list[str]:
        return sorted(values)[:1]


class Door(pydantic.BaseModel):
    key: pydantic.SecretStr
    site: str | None = pydantic.Field(default=None, exclude=True)


@dataclass
class Visit:
    who: Person
    where: Address | None = None


@dataclass
class Picky:
    value: str

    def __post_init__(self) -> None:
        if self.value == "boom":
            raise KeyError(SECRET)
        if self.value == "bad":
            raise ValueError(SECRET)


def person(**fields: object) -> Person:
    return Person.model_validate({"fullName": "Ada", **fields})


def made(function: Callable[..., object]) -> ArgsCodec:
    return ArgsCodec(function, "x", context=Context)


def codec_for(annotation: object) -> ArgsCodec:
    """Return the codec of a task with one parameter, `value`."""

    def task(value: object) -> None: ...

    task.__annotations__["value"] = annotation
    return ArgsCodec(task, "send")


def back(annotation: object, value: object) -> object:
    codec = codec_for(annotation)
    args, kwargs = codec.decode(codec.encode((value,), {}))
    assert kwargs == {}
    (result,) = args
    return result


def refusal(annotation: object, value: object) -> str:
    with pytest.raises(ArgsError) as caught:
        codec_for(annotation).encode((value,), {})
    message = str(caught.value)
    assert message.startswith("args of task 'send': `value")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return message


# --- Signatures: binding ---------------------------------------------------------------------


def receipt(order_id: int, *, locale: str = "en") -> None: ...
def optional(a: int, b: int = 2, c: int = 3) -> None: ...
def strictly(a: int, b: int = 2, /, c: int = 3) -> None: ...
def rest(a: int, *args: int, b: int = 0, **extra: str) -> None: ...
def names_in_use(a: int, /, **extra: int) -> None: ...
def nothing() -> None: ...
def with_context(ctx: Context, order_id: int, *, locale: str = "en") -> None: ...
def odd_names(__struct_fields__: int, __init__: int, class_: int = 0) -> None: ...


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "text", "called"),
    [
        (receipt, (42,), {}, '{"order_id":42}', ([42], {})),
        (receipt, (), {"order_id": 42}, '{"order_id":42}', ([42], {})),
        (
            receipt,
            (42,),
            {"locale": "it"},
            '{"order_id":42,"locale":"it"}',
            ([42], {"locale": "it"}),
        ),
        (optional, (1,), {"c": 9}, '{"a":1,"c":9}', ([1], {"c": 9})),
        (optional, (1, 2, 3), {}, '{"a":1,"b":2,"c":3}', ([1, 2, 3], {})),
        (strictly, (1,), {"c": 9}, '{"a":1,"c":9}', ([1], {"c": 9})),
        (rest, (1,), {}, '{"a":1}', ([1], {})),
        (rest, (1, 2, 3), {"b": 4}, '{"a":1,"args":[2,3],"b":4}', ([1, 2, 3], {"b": 4})),
        (
            rest,
            (1,),
            {"x": "y", "args": "z"},
            '{"a":1,"extra":{"x":"y","args":"z"}}',
            ([1], {"x": "y", "args": "z"}),
        ),
        (names_in_use, (1,), {"a": 2}, '{"a":1,"extra":{"a":2}}', ([1], {"a": 2})),
        (nothing, (), {}, "{}", ([], {})),
        (with_context, (42,), {}, '{"order_id":42}', ([], {"order_id": 42})),
        (odd_names, (1, 2), {}, '{"__struct_fields__":1,"__init__":2}', ([1, 2], {})),
    ],
)
def test_args_are_bound_written_and_read(
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    text: str,
    called: tuple[list[object], dict[str, object]],
) -> None:
    codec = made(function)
    assert codec.encode(args, kwargs) == text
    assert codec.decode(text) == called
    assert codec.decode(text.encode()) == called


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "words"),
    [
        (receipt, (), {}, "`order_id` is missing"),
        (receipt, (1, 2), {}, "at most 1 can be positional, 2 were given"),
        (receipt, (1,), {"order_id": 1}, "`order_id` is given twice"),
        (receipt, (1,), {"colour": 1}, "`colour` is not a parameter"),
        (nothing, (), {"x": 1}, "(parameters: none)"),
        (strictly, (), {"a": 1}, "`a` is positional-only"),
        (with_context, (1,), {"ctx": 1}, "`ctx` is the context"),
        (rest, (1,), {"x": 1}, "`extra[...]` does not fit"),
        (rest, (1, "x"), {}, "`args[0]` does not fit"),
        (rest, (1,), {"x": SECRET + "\0"}, "`extra[key 0]` holds a NUL"),
    ],
)
def test_args_that_do_not_fit_the_signature(
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    words: str,
) -> None:
    with pytest.raises(ArgsError, match=r"^args of task 'x'") as caught:
        made(function).encode(args, kwargs)
    assert words in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("function", "text", "words"),
    [
        (receipt, "{}", "`order_id` is missing"),
        (receipt, '{"order_id":1,"colour":2}', "`colour` is not known"),
        (receipt, '{"order_id":"hunter2"}', "`order_id` does not fit"),
        (receipt, '{"order_id":true}', "`order_id` does not fit"),
        (receipt, "[]", "does not fit"),
        (receipt, "", "not valid JSON"),
        (receipt, '{"order_id":1', "not valid JSON"),
        (receipt, b'{"order_id":1,"locale":"\xff"}', "not valid JSON"),
        (receipt, '{"order_id":' + "[" * 100_000, "does not fit"),
        (rest, '{"args":[1],"a":1,"extra":{"b":"1"}}', "`extra` holds the name"),
        (strictly, '{"a":1,"b":2,"c":3,"d":4}', "`d` is not known"),
    ],
)
def test_stored_args_of_another_version(
    function: Callable[..., object], text: str | bytes, words: str
) -> None:
    with pytest.raises(ArgsError, match="another version") as caught:
        made(function).decode(text)
    message = str(caught.value)
    assert message.startswith("args of task 'x': ")
    assert words in message
    assert SECRET not in message
    assert caught.value.__context__ is None


def test_stored_args_with_a_gap_before_a_positional_arg() -> None:
    def two_optional(a: int = 1, b: int = 2, /) -> None: ...
    def optional_rest(a: int = 1, *args: int) -> None: ...
    def both(ctx: Context, **extra: int) -> None: ...

    with pytest.raises(ArgsError, match="positional-only"):
        made(two_optional).decode('{"b":1}')
    with pytest.raises(ArgsError, match="not all parameters before it"):
        made(optional_rest).decode('{"args":[1]}')
    with pytest.raises(ArgsError, match="name of another"):
        made(both).decode('{"extra":{"ctx":1}}')


def test_deep_stored_text() -> None:
    with pytest.raises(ArgsError, match="nested too deeply"):
        codec_for(Any).decode('{"value":' + "[" * 100_000)


# --- Signatures: context and what cannot be served -------------------------------------------


def test_the_context_is_not_part_of_the_args() -> None:
    def later(a: int, ctx: Context | None = None, b: int = 0) -> None: ...
    def annotated(*, ctx: Annotated[Context, "mine"], a: int) -> None: ...
    def late_string(a: int, *args: int, ctx: "Context") -> None: ...

    codec = made(later)
    assert codec.context_parameter == "ctx"
    assert codec.decode(codec.encode((1, 2), {})) == ([1], {"b": 2})
    assert made(annotated).context_parameter == "ctx"
    codec = made(late_string)
    assert codec.decode(codec.encode((1, 2), {})) == ([1, 2], {})
    assert made(receipt).context_parameter is None


def two(a: Context, b: Context) -> None: ...
def context_before_rest(ctx: Context, *args: int) -> None: ...
def context_by_position(ctx: Context, /) -> None: ...
def many_contexts(*ctx: Context) -> None: ...
def unresolved(a: int, b: "Fraction") -> None: ...
def wrong_code(b: "1 +") -> None: ...  # type: ignore[valid-type] # noqa: F722
def custom(b: Context) -> None: ...
def nested(b: "dict[str, list[Context | None]]") -> None: ...
def iterable(b: Iterable[int]) -> None: ...
def number(b: complex) -> None: ...
def two_texts(b: str | dt.datetime) -> None: ...
def two_models(b: Address | Person) -> None: ...
def int_keys(b: list[dict[int, str]]) -> None: ...
def raw(b: msgspec.Raw) -> None: ...
def call(b: Callable[[], None]) -> None: ...
def empty_enum(b: enum.Enum) -> None: ...


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (two, "`b` of task 'x' is a second context beside `a`"),
        (context_before_rest, "declare it after `*args`"),
        (context_by_position, "`ctx` of task 'x' is a context, which is passed by name"),
        (many_contexts, "`ctx` of task 'x' is a context, which is passed by name"),
        (unresolved, "`b` of task 'x' has an annotation that cannot be resolved"),
        (wrong_code, "`b` of task 'x' has an annotation that cannot be resolved"),
        (iterable, "`b` of task 'x' is annotated with Iterable"),
        (number, "`b` of task 'x' is annotated with complex"),
        (two_texts, "`b` of task 'x' has an annotation that cannot be used"),
        (two_models, "`b` of task 'x' has an annotation that cannot be used"),
        (int_keys, "`b` of task 'x' is annotated with a dict whose keys are not str"),
        (raw, "`b` of task 'x' is annotated with a type of msgspec"),
        (call, "`b` of task 'x' is annotated with Callable"),
        (empty_enum, "`b` of task 'x' has an annotation that cannot be used"),
    ],
)
def test_signatures_that_cannot_be_served(function: Callable[..., object], words: str) -> None:
    with pytest.raises(ArgsError) as caught:
        made(function)
    assert words in str(caught.value)


@pytest.mark.parametrize("function", [custom, nested])
def test_any_class_is_unsupported_unless_it_is_the_context(function: Callable[..., None]) -> None:
    with pytest.raises(ArgsError, match="`b` of task 'x' is annotated with Context"):
        ArgsCodec(function, "x")


def test_what_has_no_signature() -> None:
    with pytest.raises(ArgsError, match="signature of task 'x' cannot be read"):
        made(5)  # type: ignore[arg-type]


def test_wrapped_partial_and_callable_objects_are_read_through() -> None:
    @functools.wraps(unresolvable_return)
    def wrapper(*args: object, **kwargs: object) -> None: ...

    class Job:
        def __call__(self, a: "int") -> None: ...

    def filled(a: "int", b: "int") -> None: ...

    for function in (wrapper, Job(), functools.partial(filled, b=1)):
        codec = made(function)
        assert codec.decode(codec.encode((1,), {})) == ([1], {})
        with pytest.raises(ArgsError):
            codec.encode(("x",), {})


def unresolvable_return(a: "int") -> "Fraction": ...  # type: ignore[empty-body]


def test_unpacked_typed_dict() -> None:
    def options(**extra: Unpack[Options]) -> None: ...

    codec = made(options)
    assert codec.decode(codec.encode((), {"price": 1.5})) == ([], {"price": 1.5})
    with pytest.raises(ArgsError, match=r"`extra\.price` is missing"):
        codec.encode((), {"name": "x"})
    with pytest.raises(ArgsError, match=r"`extra\[key 1\]` would be dropped by the annotation"):
        codec.encode((), {"price": 1.5, "colour": 1})


# --- Values that come back -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, INT_MAX),
        (int, INT_MIN),
        (float, -0.5),
        (str, "è 🎉 \\u0000"),
        (bool, True),
        (None, None),
        (int | str | None, None),
        (Any, {"a": [1, 2.0, "x", True, None, {}]}),
        (object, [1]),
        (object, "x"),
        (inspect.Parameter.empty, [1]),
        (list, [1]),
        (dict, {"a": 1}),
        (list[int], [1, 2]),
        (list[list[float]], [[1.5], []]),
        (dict[str, Decimal], {"a": Decimal("1.10")}),
        (tuple[int, ...], (1, 2)),
        (tuple[int, str], (1, "x")),
        (set[str], {"a", "b"}),
        (set[float], {1.0, 2.5}),
        (frozenset[int], frozenset({1})),
        (set[Any], {1, "x"}),
        (dt.datetime, NOON),
        (dt.date, dt.date(2024, 2, 29)),
        (dt.time, dt.time(1, 2, 3, 4)),
        (dt.time, dt.time(1, 2, tzinfo=dt.UTC)),
        (dt.timedelta, -dt.timedelta(days=1, microseconds=3)),
        (Decimal, Decimal("1E+400")),
        (UUID, UUID(int=7)),
        (bytes, b"\0\xff"),
        (Color, Color.RED),
        (list[Size], [Size.S]),
        (Level, Level.LOW),
        (dict[Size, int], {Size.S: 1}),
        (Literal["a", 1], "a"),
        (Point, Point(1, 2.5)),
        (Options, {"price": 1.5}),
        (Order, Order([Item("x"), Item("y", None)], Order())),
        (Tag, Tag("x", NOON)),
        (list[Tag | None], [Tag("x"), None]),
        (Person, person(addresses=[Address(city="Rome", since=NOON)], ids={UUID(int=1)})),
        (Person | None, None),
        (list[Person], [person()]),
        (dict[str, Address | None], {"a": Address(city="x"), "b": None}),
        (Visit, Visit(person(), Address(city="x"))),
        (Annotated[int, msgspec.Meta(ge=1)], 1),
    ],
    ids=name,
)
def test_values_come_back_the_same(annotation: object, value: object) -> None:
    result = back(annotation, value)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("annotation", "value", "result"),
    [
        (float, 3, 3.0),
        (list[float], [1, 2.5], [1.0, 2.5]),
        (str, Size.S, "s"),
        (int, Level.LOW, 1),
        (float, type("Real", (float,), {})(1.5), 1.5),
        (str, type("Text", (str,), {})("x"), "x"),
        (int, type("Whole", (int,), {})(7), 7),
        (Sequence[int], (1, 2), [1, 2]),
        (AbstractSet[int], frozenset({1}), {1}),
        (Mapping[str, int], collections.OrderedDict(a=1), {"a": 1}),
        (dict[str, int], {Size.S: 1}, {"s": 1}),
    ],
    ids=name,
)
def test_an_annotation_may_widen(annotation: object, value: object, result: object) -> None:
    arrived = back(annotation, value)
    assert arrived == result
    assert type(arrived) is type(result)


@pytest.mark.parametrize("fold", [0, 1])
def test_a_zone_becomes_its_offset(fold: int) -> None:
    given = dt.datetime(2024, 10, 27, 2, 30, tzinfo=ROME, fold=fold)
    arrived = back(dt.datetime, given)
    assert isinstance(arrived, dt.datetime)
    assert arrived.utcoffset() == given.utcoffset()
    assert arrived.replace(tzinfo=None) == given.replace(tzinfo=None, fold=0)
    assert back(dt.datetime, dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=5))))


def test_aliases_are_not_part_of_the_stored_text() -> None:
    text = codec_for(Person).encode((person(),), {})
    assert json.loads(text)["value"]["name"] == "Ada"


# --- Values that are refused -----------------------------------------------------------------


@pytest.mark.parametrize(
    "annotation", [float, Any, float | None, list[float], dict[str, float], Item, Options]
)
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity(annotation: object, number: float) -> None:
    value, path = {
        list[float]: ([1.0, number], "value[1]"),
        dict[str, float]: ({"a": number}, "value[key 0]"),
        Item: (Item("x", number), "value.price"),
        Options: ({"price": number}, "value.price"),
    }.get(annotation, (number, "value"))  # type: ignore[call-overload]
    assert f"`{path}` is NaN or infinite" in refusal(annotation, value)


@pytest.mark.parametrize(
    ("annotation", "value", "words"),
    [
        # Text.
        (str, "a\0", "`value` holds a NUL character"),
        (Any, ["a\0"], "`value[0]` holds a NUL character"),
        (dict[str, int], {"a\0": 1}, "`value[key 0]` has a key that holds a NUL character"),
        (str, "\ud800", "`value` holds a lone surrogate"),
        (list[Item], [Item("x"), Item("\udfff")], "`value[1].name` holds a lone surrogate"),
        (dict[str, int], {"\ud800": 1}, "has a key that holds a lone surrogate"),
        (Person, person(fullName="a\0"), "`value.name` holds a NUL"),
        (Person, person(fullName="\ud800"), "`value.name` holds a lone surrogate"),
        # Numbers.
        (int, INT_MAX + 1, "`value` is an integer beyond 64 bits"),
        (int, INT_MIN - 1, "`value` is an integer beyond 64 bits"),
        (list[int], [1, INT_MAX + 1], "`value[1]` is an integer beyond 64 bits"),
        (Any, {"a": 10**400}, "`value[key 0]` is an integer beyond 64 bits"),
        (float, 10**400, "`value` is an integer beyond 64 bits"),
        (float, 2**53 + 1, "`value` is of type int but the task would receive float"),
        (Decimal, Decimal("NaN"), "`value` is a Decimal that is NaN"),
        (Decimal, Decimal("Infinity"), "`value` is a Decimal that is NaN"),
        (int, True, "`value` does not fit its annotation (Expected `int`, got `bool`)"),
        (list[int], [True], "`value[0]` does not fit its annotation"),
        (int, 1.0, "`value` does not fit its annotation (Expected `int`, got `float`)"),
        (float, True, "`value` does not fit"),
        (Person, person(weight=math.nan), "`value.weight` is NaN"),
        (set[float], {math.nan}, "`value{...}` is NaN"),
        # Times.
        (dt.datetime, NOON.replace(tzinfo=None), "`value` is a naive datetime"),
        (Tag, Tag("x", NOON.replace(tzinfo=None)), "`value.at` is a naive datetime"),
        (
            Person,
            person(addresses=[Address(city="x", since=NOON.replace(tzinfo=None))]),
            "`value.addresses[0].since` is a naive datetime",
        ),
        (dt.datetime, dt.datetime(1800, 1, 1, tzinfo=ROME), "does not come back"),
        (dt.time, dt.time(1, tzinfo=ROME), "`value` does not come back"),
        # Under Any nothing may change type.
        (Any, (1, 2), "`value` is of type tuple but the task would receive list"),
        (Any, {"a": [{1}]}, "`value[key 0][0]` is of type set but the task would receive list"),
        (object, frozenset({1}), "is of type frozenset but"),
        (Any, Decimal(1), "annotate it as Decimal"),
        (Any, NOON, "is of type datetime but the task would receive str"),
        (Any, b"x", "is of type bytes but the task would receive str"),
        (Any, UUID(int=1), "is of type UUID but"),
        (Any, Color.RED, "is of type Color but"),
        (Any, Size.S, "is of type Size but"),
        (Any, {Size.S: 1}, "has a key that is of type Size but"),
        (Any, collections.OrderedDict(a=1), "is of type OrderedDict but"),
        (Any, Item("x"), "is of type Item but"),
        (Any, Tag("x"), "is of type Tag but"),
        (Any, Point(1), "is of type Point but"),
        (Any, person(), "is of type Person but"),
        (list, [(1,)], "`value[0]` is of type tuple"),
        (dict[str, Any], {"a": (1,)}, "`value[key 0]` is of type tuple"),
        (Item, Item("x", note=(1,)), "`value.note` is of type tuple"),
        (inspect.Parameter.empty, (1,), "is of type tuple"),
        # What the annotation does not allow, though its JSON would.
        (dt.datetime, NOON.isoformat(), "is of type str but the task would receive datetime"),
        (str, NOON, "is of type datetime but the task would receive str"),
        (Decimal, "1.5", "is of type str but"),
        (Decimal, 1, "is of type int but"),
        (UUID, str(UUID(int=1)), "is of type str but"),
        (Color, "red", "is of type str but"),
        (bytes, "eA==", "is of type str but"),
        (tuple[int, int], [1, 2], "is of type list but"),
        (set[int], [1, 2], "is of type list but"),
        (list[int], {1, 2}, "is of type set but"),
        (Item, {"name": "x"}, "is of type dict but the task would receive Item"),
        (Person, {"name": "x"}, "is of type dict but the task would receive Person"),
        (Address, Item("x"), "`value.city` does not fit Address (pydantic: missing)"),
        (Item, SpecialItem("x", extra=1), "is of type SpecialItem but"),
        (dt.date, NOON, "`value` does not fit its annotation"),
        (Literal["a"], SECRET, "`value` does not fit its annotation (Invalid enum value)"),
        (Color, SECRET, "`value` does not fit its annotation (Invalid enum value)"),
        (Tag, {"text": "x", "more": 1}, "`value.more` is not known"),
        (Options, {"name": "x"}, "`value.price` is missing"),
        (Options, {"price": 1.0, SECRET: 1}, "`value[key 1]` would be dropped"),
        (Annotated[int, msgspec.Meta(ge=1)], 0, "`value` does not fit its annotation (Expected"),
        # Keys.
        (Any, {1: 2}, "has a key of type int"),
        (Any, {None: 2}, "has a key of type NoneType"),
        (dict[str, int], {UUID(int=1): 2}, "has a key of type UUID"),
        (dict, {Color.RED: 2}, "has a key of type Color"),
        # What has no JSON.
        (Any, {"a": [range(3)]}, "`value[key 0][0]` is of type range, which has no form"),
        (Any, Context(), "is of type Context, which has no form in JSON"),
        (int, 1j, "is of type complex, which has no form"),
        # Values that are more than their base.
        (float, type("Real", (float,), {})(math.nan), "`value` is NaN or infinite"),
        (Ending, Ending.NUL, "`value` holds a NUL"),
        # Code of the value's own.
        (Lossy, Lossy(numbers=[1.0, 2.5]), "`value.numbers[1]` does not come back"),
        (Lossy, Lossy(pairs=["a", "b"]), "`value.pairs` does not come back"),
        (Lossy, Lossy(names={"a", "b"}), "`value.names{...}` does not come back"),
        (Lossy, Lossy.model_validate({"x": (1,)}), "`value[key 0]` is of type tuple"),
        (list[Picky], [{"value": "bad"}], "`value[0]` was refused by the code of its own type"),
        (Door, Door(key=pydantic.SecretStr(SECRET)), "`value.key` does not come back"),
        (Door, Door(key=pydantic.SecretStr(""), site="x"), "`value.site` is of type str but"),
    ],
    ids=name,
)
def test_values_that_would_change(annotation: object, value: object, words: str) -> None:
    message = refusal(annotation, value)
    assert words in message
    assert SECRET not in message


def test_depth() -> None:
    def nest(levels: int) -> list[object]:
        value: list[object] = []
        for _ in range(levels - 1):
            value = [value]
        return value

    assert back(Any, nest(MAX_DEPTH)) == nest(MAX_DEPTH)
    message = refusal(Any, nest(MAX_DEPTH + 1))
    assert "nested more than 100 levels" in message
    assert len(message) < 300
    assert "nested more than 100 levels" in refusal(Any, nest(100_000))
    cycle: list[object] = []
    cycle.append(cycle)
    assert "nested more than 100 levels" in refusal(Any, cycle)
    order = Order()
    order.parent = order
    assert "nested more than 100 levels" in refusal(Order, order)


def test_a_validator_that_quotes_the_value_is_not_quoted() -> None:
    codec = codec_for(Person)
    with pytest.raises(ArgsError, match=r"`value\.name` does not fit Person") as caught:
        codec.decode('{"value":{"name":"hunter2"}}')
    assert SECRET not in str(caught.value)
    with pytest.raises(ArgsError, match=r"`value\.children\[0\]\.names\[0\]` does not fit Lossy"):
        codec_for(Lossy).decode('{"value":{"children":[{"names":[1]}]}}')
    text = '{"value":{"name":"x","addresses":[{"city":"x"},{"city":1}]}}'
    with pytest.raises(ArgsError, match=r"`value\.addresses\[1\]\.city` .*pydantic: string_type"):
        codec.decode(text)


def test_other_errors_of_the_values_own_code_are_not_quoted_either() -> None:
    with pytest.raises(ArgsError, match=r"by the code of its own type \(KeyError\)") as caught:
        codec_for(Picky).encode(({"value": "boom"},), {})
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_stack_that_is_nearly_full() -> None:
    def at(depth: int) -> str:
        return at(depth - 1) if depth else codec.encode(([[[[[[[["x"]]]]]]]],), {})

    codec = codec_for(Any)
    left = sys.getrecursionlimit() - len(inspect.stack(0))
    assert at(left // 2) == at(0)
    refused = 0
    for depth in range(left - 30, left - 4):
        try:
            at(depth)
        except ArgsError as error:
            refused += "too deeply" in str(error)
        except RecursionError:
            break
    assert refused


def test_a_nul_that_only_the_json_shows() -> None:
    class Page(pydantic.BaseModel):
        text: pydantic.SecretStr

        @pydantic.field_serializer("text")
        def _shown(self, text: pydantic.SecretStr) -> str:
            return text.get_secret_value()

    assert back(Page, Page(text=pydantic.SecretStr("\\u0000"))) is not None
    with pytest.raises(ArgsError, match="holds a NUL"):
        codec_for(Page).encode((Page(text=pydantic.SecretStr("\0")),), {})


def test_the_limit_counts_bytes() -> None:
    codec = codec_for(str)
    frame = len('{"value":""}')
    assert codec.encode(("x" * (MAX_ARGS_BYTES - frame),), {})
    with pytest.raises(ArgsError) as caught:
        codec.encode(("è" * 617_278 + "x" * 2,), {}, limit=MAX_ARGS_BYTES)
    assert str(caught.value) == (
        "args of task 'send' are 1,234,570 bytes, the limit is 1,000,000; store the data "
        "elsewhere and pass a reference, or raise max_args_bytes"
    )
    assert len(codec.encode(("x" * 2_000_000,), {}, limit=None)) > MAX_ARGS_BYTES
    with pytest.raises(ArgsError, match="the limit is 13"):
        codec.encode(("xx",), {}, limit=13)


def test_records_with_fields_that_were_never_set() -> None:
    @dataclass
    class Late:
        a: int
        b: int = field(init=False)

    late, ready = Late(1), Late(1)
    ready.b = 2
    assert Comparison().fault(late, late) is None
    assert Comparison().fault(ready, late) is not None


def test_attrs_classes_are_compared_by_their_attributes() -> None:
    class Attrs:  # attrs itself is not among the dependencies
        __attrs_attrs__ = (types.SimpleNamespace(name="text"),)

        def __init__(self, text: str) -> None:
            self.text = text

    assert Comparison().fault(Attrs("x"), Attrs("x")) is None
    found = Comparison().fault(Attrs("x"), Attrs("y"))
    assert found is not None
    assert found.path == ".text"


# --- Results ---------------------------------------------------------------------------------


def test_results_come_back() -> None:
    for annotation, value in [
        (str, "ok"),
        (None, None),
        (inspect.Signature.empty, {"a": [1]}),
        (list[Person], [person()]),
        (Order | None, Order([Item("x")])),
    ]:
        codec = ResultCodec(annotation, "send")
        assert codec.decode(codec.encode(value)) == value


@pytest.mark.parametrize(
    ("annotation", "value", "words"),
    [
        (int, "hunter2", "result of task 'send': the value does not fit"),
        (Any, (1,), "result of task 'send': the value is of type tuple"),
        (list[Item], [Item("x", math.nan)], "result of task 'send': `[0].price` is NaN"),
        (dict[str, Item], {"a": Item("\ud800")}, "`[key 0].name` holds a lone surrogate"),
        (Order, Order([Item("x", 1)] * 2 + [Item("\0")]), "`items[2].name` holds a NUL"),
    ],
)
def test_results_that_cannot_be_stored(annotation: object, value: object, words: str) -> None:
    with pytest.raises(ArgsError) as caught:
        ResultCodec(annotation, "send").encode(value)
    assert words in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


def test_stored_results_of_another_version() -> None:
    with pytest.raises(ArgsError, match="result of task 'send': the value does not fit"):
        ResultCodec(int, "send").decode('"x"')
    with pytest.raises(ArgsError, match="result of task 'send' is annotated with Context"):
        ResultCodec(Context, "send")


# --- Properties ------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
integers = st.integers(INT_MIN, INT_MAX)
floats = st.floats(allow_nan=False, allow_infinity=False)
plain = st.recursive(
    st.none() | st.booleans() | integers | floats | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)
moments = st.datetimes(timezones=st.just(dt.UTC))
offsets = st.integers(-1439, 1439).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))


@given(plain)
def test_any_plain_json_comes_back_exactly(value: object) -> None:
    # repr tells 1 from True and 1.0, and 0.0 from -0.0.
    assert repr(back(Any, value)) == repr(value)


@given(st.data())
def test_typed_values_come_back(data: st.DataObject) -> None:
    items = st.builds(Item, texts, floats | st.none(), plain)
    tags = st.builds(Tag, texts, st.datetimes(timezones=offsets) | st.none())
    people = st.builds(
        lambda name, weight, ids: person(fullName=name, weight=weight, ids=ids),
        texts.filter(lambda text: text != SECRET),
        floats | st.none(),
        st.sets(st.uuids()),
    )
    cases: list[tuple[object, st.SearchStrategy[object]]] = [
        (list[Item], st.lists(items, max_size=3)),
        (Order, st.builds(Order, st.lists(items, max_size=2), st.builds(Order) | st.none())),
        (dict[str, Tag], st.dictionaries(texts, tags, max_size=3)),
        (list[Person], st.lists(people, max_size=3)),
        (Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
        (tuple[dt.timedelta, dt.date, dt.time], st.tuples(st.timedeltas(), st.dates(), st.times())),
        (frozenset[UUID], st.frozensets(st.uuids(), max_size=3)),
        (list[dt.datetime], st.lists(moments, max_size=3)),
        (dict[Size, bytes], st.dictionaries(st.sampled_from(Size), st.binary())),
        (int | float | str | None, integers | floats | texts | st.none()),
    ]
    annotation, values = data.draw(st.sampled_from(cases))
    value = data.draw(values)
    assert repr(back(annotation, value)) == repr(value) or back(annotation, value) == value


@given(st.text() | st.integers() | st.floats() | st.datetimes() | st.lists(st.floats()))
def test_what_is_accepted_is_what_arrives(value: object) -> None:
    try:
        arrived = back(Any, value)
    except ArgsError:
        return
    assert repr(arrived) == repr(value)


@given(st.text() | st.binary())
def test_any_text_is_read_or_refused(text: str | bytes) -> None:
    for annotation in (int, Any, Person, Order):
        try:
            codec_for(annotation).decode(text)
        except ArgsError:
            continue


# --- The import ------------------------------------------------------------------------------


def test_pydantic_is_not_imported() -> None:
    assert importlib.util.find_spec("pydantic") is not None
    script = (
        "import sys; from rota.args import ArgsCodec\n"
        "def task(a: dict[str, object], b: int = 1): ...\n"
        "codec = ArgsCodec(task, 'x'); codec.decode(codec.encode(({'a': [1]},), {}))\n"
        "sys.exit('pydantic' in sys.modules)"
    )
    subprocess.run(
        [sys.executable, "-c", script], check=True, env={"PYTHONPATH": ":".join(sys.path)}
    )
