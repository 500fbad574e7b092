"""Keys of many jobs at once: the same as one by one, and none where one of them cannot be made."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import ArgsError
from rota.model.keys import LONGEST_KEY, SLICE, Keying, KeyTemplate
from rota.model.limit import Limit
from rota.model.options import JobOptions


def send(order: Any, shop: Any = "main") -> None:
    del order, shop


def written(rows: Sequence[dict[str, object]]) -> list[str]:
    return [json.dumps(row) for row in rows]


EXACT = pytest.mark.parametrize("exact", [True, False])
TEXT = pytest.mark.parametrize(
    "text", ["{order}", "of {order} in {{{shop}}}", "{shop}{shop}", "a{order}", "*"]
)


@EXACT
@TEXT
@pytest.mark.parametrize(
    "rows",
    [
        [{"order": number} for number in range(2 * SLICE + 1)],
        [{"order": 1, "shop": "a"}, {"order": -1}],
        [{"order": True}, {"order": False}],
        [{"order": 1}, {"order": True}, {"order": 2, "shop": "b"}, {"order": 1.5}, {"order": "1"}],
        [{"order": 1e300}, {"order": 1e16}, {"order": -0.0}],
        [{"order": "a,b"}, {"order": 'ä"\\'}, {"order": "null"}],
    ],
)
def test_keys_of_many(text: str, rows: Sequence[dict[str, object]], exact: bool) -> None:  # noqa: FBT001
    """Each is what it would be alone."""
    template = KeyTemplate(text, send, "unique", exact=exact)
    args = written(rows)
    assert template.keys(args) == [template.key(one) for one in args]


@pytest.mark.parametrize("order", ["", "x" * (LONGEST_KEY + 1), "a\0b", [1], {"a": 1}], ids=ascii)
@pytest.mark.parametrize("before", [0, SLICE])
def test_a_key_that_cannot_be_made(order: object, before: int) -> None:
    """The error of many jobs says of which, and is the same as alone."""
    options = JobOptions(limit=Limit(key="{order}", running=1))
    args = ['{"order":1}'] * before + written([{"order": order}, {"order": 2}])
    with pytest.raises(ArgsError) as alone:
        Keying(options, send, "send").keys(args[before : before + 1])
    with pytest.raises(ArgsError) as among:
        Keying(options, send, "send").keys(args)
    assert str(among.value) == f"job {before} of enqueue_many: {alone.value}"


VALUE = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.text(), st.floats(), st.booleans(), st.none()
)


@given(values=st.lists(VALUE, min_size=2, max_size=4), exact=st.booleans())
def test_any_keys(values: Sequence[object], exact: bool) -> None:  # noqa: FBT001
    """What is made at once is what is made one by one."""
    template = KeyTemplate("{order}", send, "unique", exact=exact)
    args = [json.dumps({"order": value}, allow_nan=True) for value in values]
    args = [one.replace("NaN", "null").replace("Infinity", "1") for one in args]
    found = template.keys(args)
    if found is not None:
        assert found == [template.key(one) for one in args]
