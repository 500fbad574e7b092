"""The args of many jobs at once: the same texts as one by one, and nothing where one is refused."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.args import ArgsCodec
from rota.args.alike import SLICE, Row
from rota.args.strict import INT_MAX, INT_MIN, MAX_DEPTH
from rota.errors import ArgsError


class Word(StrEnum):
    A = "a"


def number(n: int) -> None:
    del n


def several(n: int, text: str | None, ratio: float = 0.5, *, on: bool = False) -> None:
    del n, text, ratio, on


def anything(value: Any, /) -> None:
    del value


def short(text: Annotated[str, msgspec.Meta(max_length=3)]) -> None:
    del text


def nested(ids: list[int], more: dict[str, Any], pair: tuple[int, str]) -> None:
    del ids, more, pair


def raw(data: bytes) -> None:
    del data


def deep(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


def nothing() -> None:
    pass


def three(a: Any, b: bytes | list[bytes], c: list[Any] | float) -> None:
    del a, b, c


def variadic(*rest: int, **more: int) -> None:
    del rest, more


def one_by_one(codec: ArgsCodec, rows: Sequence[Row], limit: int | None) -> list[str]:
    """What `encode` writes for each."""
    return [
        codec.encode((), row, limit=limit)
        if isinstance(row, dict)
        else codec.encode(row, {}, limit=limit)
        for row in rows
    ]


@pytest.mark.parametrize(
    ("function", "rows"),
    [
        (number, [(INT_MIN,), (INT_MAX,)]),
        (number, [{"n": n} for n in range(2 * SLICE + 1)]),
        (several, [(1, "ä\n\\\t\u2028", 1.5), (2, None, -0.0)]),
        (several, [(1, "")]),
        (several, [{"text": "x", "n": 1, "on": True}, {"text": None, "n": 2, "on": False}]),
        (anything, [(1,), ("x",), (1.5,), (True,), (None,)]),
        (nothing, [(), ()]),
        (anything, [([1, 2.5, True, None, "x"],), ({"a": {"b": [[], {}]}},)]),
        (nested, [([1, 2], {"a": [[1, "b"]]}, (1, "x")), ([], {}, (2, "y"))]),
        (nested, [{"pair": (1, "x"), "more": {}, "ids": [1]}]),
        (short, [("abc",)]),
    ],
)
def test_plain_values(function: Callable[..., object], rows: Sequence[Row]) -> None:
    """They are written at once, as they are one by one."""
    codec = ArgsCodec(function, "shop.send")
    assert codec.encode_alike(rows) == one_by_one(codec, rows, None)


@pytest.mark.parametrize(
    ("function", "fine", "row"),
    [
        (number, (1,), (INT_MAX + 1,)),
        (number, (1,), (INT_MIN - 1,)),
        (number, (1,), ("1",)),
        (number, (1,), (True,)),
        (number, (1,), ()),
        (number, (1,), (1, 2)),
        (number, {"n": 1}, {}),
        (number, {"n": 1}, {"n": 1, "m": 2}),
        (number, {"n": 1}, {"m": 2}),
        (several, (1, "x"), (1, "a\0b")),
        (several, (1, "x"), (1, "\ud800")),
        (several, (1, None, 0.5), (1, None, float("nan"))),
        (several, (1, None, 0.5), (1, None, float("inf"))),
        (several, (1, None, 0.5), (1, None, 0.5, True)),
        (anything, ([1],), ([INT_MAX + 1],)),
        (anything, ([1],), ([float("nan")],)),
        (anything, ([1],), (["a\0b"],)),
        (anything, ([1],), ({"a\0b": 1},)),
        (anything, ([1],), ({1: 1},)),
        (anything, ([1],), ((1, 2),)),
        (anything, ([1],), ([Word.A],)),
        (anything, ([1],), ([b"a"],)),
        (nested, ([1], {}, (1, "x")), ([1], {}, [1, "x"])),
        (nested, ([1], {}, (1, "x")), (["1"], {}, (1, "x"))),
        (short, ("abc",), ("abcd",)),
        (several, (1, "x"), (1, "x" * 100)),
        (anything, (1,), (None, 1)),
    ],
)
def test_what_is_refused(function: Callable[..., object], fine: Row, row: Row) -> None:
    """Nothing is written where one of many is refused: the only one, the first, or the last of more."""
    codec, limit = ArgsCodec(function, "shop.send"), 60
    assert codec.encode_alike([fine], limit=limit) == one_by_one(codec, [fine], limit)
    with pytest.raises(ArgsError):
        one_by_one(codec, [row], limit)
    for rows in ([row], [row, fine], [*[fine] * (SLICE + 1), row]):
        assert codec.encode_alike(rows, limit=limit) is None


def test_depth() -> None:
    """Args that are nested too deeply are refused, also among many."""
    codec = ArgsCodec(anything, "shop.send")
    codec.encode((deep(MAX_DEPTH),), {})
    with pytest.raises(ArgsError):
        codec.encode((deep(MAX_DEPTH + 1),), {})
    assert codec.encode_alike([(deep(MAX_DEPTH + 1),)]) is None


def test_bytes_of_several_types() -> None:
    """A bytearray where bytes are declared is refused, also among many."""
    codec = ArgsCodec(raw, "shop.send")
    with pytest.raises(ArgsError):
        codec.encode((bytearray(b"a"),), {})
    assert codec.encode_alike([(bytearray(b"a"),)]) is None


def test_a_parameter_that_is_positional_only() -> None:
    """Given by name it is refused, also among many."""
    codec = ArgsCodec(anything, "shop.send")
    with pytest.raises(ArgsError):
        codec.encode((), {"value": 1})
    assert codec.encode_alike([{"value": 1}]) is None


@pytest.mark.parametrize(
    ("function", "rows"),
    [
        (several, [(1, "x"), (1, "x", 0.5)]),
        (several, [{"n": 1, "text": "x"}, {"text": "x", "n": 1}]),
        (several, [(1, Word.A)]),  # which is written as text
        (several, [(1, "x", 2)]),
        (raw, [(b"abc",)]),
        (anything, [([INT_MAX],)]),
        (anything, [(deep(MAX_DEPTH),)]),
        (variadic, [(1, 2)]),
        (variadic, [{"a": 1}]),
    ],
)
def test_what_needs_a_closer_look(function: Callable[..., object], rows: Sequence[Row]) -> None:
    """Args that are not alike, or not plain, are left to be written one by one."""
    codec = ArgsCodec(function, "shop.send")
    assert codec.encode_alike(rows) is None
    assert one_by_one(codec, rows, None)


SCALARS = st.one_of(
    st.integers(), st.text(), st.floats(), st.booleans(), st.none(), st.sampled_from(Word),
    st.binary(), st.binary().map(bytearray),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(st.text(), inner)
    ),
    max_leaves=5,
)


@given(st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=4), st.integers(20, 100))
def test_any_values(rows: Sequence[Row], limit: int) -> None:
    """What is written at once is what is written one by one."""
    for function in (several, nested, three):
        codec = ArgsCodec(function, "shop.send")
        written = codec.encode_alike(rows, limit=limit)
        if written is not None:
            assert written == one_by_one(codec, rows, limit)
