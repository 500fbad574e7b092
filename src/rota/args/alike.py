"""The args of many jobs, checked column by column: for those whose values are plain scalars.

What comes out is what `ArgsCodec.encode` would write for each job, for a tenth of the time. Where a
value needs a closer look, or is wrong, nothing comes out: `encode` then finds out which, and says so.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain, starmap
from typing import Any, Final

import msgspec

from rota.args import strict
from rota.args.signature import Parameter
from rota.args.text import written_lines

Row = tuple[object, ...] | dict[str, object]
"""The arguments of one job: all of them positional, or all by name."""

SLICE: Final = 250
"""Jobs that are written at once: their text is in memory twice."""


class AlikeCodec:
    """Writes the args of many jobs of one task, if their values are all plain.

    Args:
        parameters: Those that are args.
    """

    __slots__ = ("_by_name", "_plain", "_positional", "_required")

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self._positional = tuple(each.name for each in parameters if each.positional)
        self._by_name = frozenset(each.name for each in parameters if each.by_name)
        self._required = frozenset(each.name for each in parameters if each.required)
        self._plain = {each.name: each.shape.plain for each in parameters}

    def encode(self, rows: Sequence[Row], limit: int | None) -> list[str] | None:
        """The args of each job as a JSON object, or None if one needs a closer look.

        Args:
            rows: All tuples, or all dicts.
            limit: The most bytes that the args of a job may have; None for no limit.
        """
        texts: list[str] = []
        for start in range(0, len(rows), SLICE):
            lines = self._lines(rows[start : start + SLICE])
            if lines is None:
                return None
            if limit is not None and len(lines) > limit and _longest(lines) > limit:
                return None
            texts += lines.decode().split("\n")[:-1]
        return texts

    def _lines(self, rows: Sequence[Any]) -> bytes | None:
        named = isinstance(rows[0], dict)
        names = self._named(rows) if named else self._by_position(rows)
        if names is None or not self._required.issubset(names):
            return None
        values = list(chain.from_iterable(map(dict.values, rows) if named else rows))
        width = len(names)
        for number, name in enumerate(names):
            if not strict.all_fine(values[number::width], self._plain[name]):
                return None
        return written_lines(rows if named else starmap(_struct(names), rows))

    def _by_position(self, rows: Sequence[tuple[object, ...]]) -> tuple[str, ...] | None:
        count = len(rows[0])
        if count > len(self._positional) or set(map(len, rows)) != {count}:
            return None
        return self._positional[:count]

    def _named(self, rows: Sequence[Mapping[str, object]]) -> tuple[str, ...] | None:
        names = tuple(rows[0])
        # Each dict in its own order: that is how it is written.
        if not self._by_name.issuperset(names) or set(map(tuple, rows)) != {names}:
            return None
        return names


def _longest(lines: bytes) -> int:
    return max(map(len, lines.split(b"\n")))


@lru_cache(maxsize=1000)
def _struct(names: tuple[str, ...]) -> type[msgspec.Struct]:
    """A record that is written as an object with these names; quicker to make than a dict."""
    return msgspec.defstruct(
        "Alike",
        [f"p{number}" for number in range(len(names))],
        rename={f"p{number}": name for number, name in enumerate(names)},
        gc=False,
    )
