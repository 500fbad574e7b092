"""The args of many jobs at once: what `ArgsCodec.encode` would write for each, for a tenth of the time.

Plain scalars are checked column by column. Other values are read back, as the worker will read
them, and are well if nothing at all has changed: exactly the same types with the same values. Where
a value needs a closer look, or is wrong, nothing comes out: `encode` then finds out which, and says
so.
"""

import marshal
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, starmap
from typing import Any, Final

import msgspec

from rota.args import strict
from rota.args.signature import Parameter
from rota.args.text import written_lines

Row = tuple[object, ...] | dict[str, object]
"""The arguments of one job: all of them positional, or all by name."""

_ZEROS: Final = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER: Final = b"0" * 19

SLICE: Final = 250
"""Jobs that are written at once: their text is in memory twice."""


class AlikeCodec:
    """Writes the args of many jobs of one task, if their values are all plain.

    Args:
        parameters: Those that are args.
        read: Reads their JSON objects, one in each line.
    """

    __slots__ = ("_binary", "_by_name", "_names", "_plain", "_positional", "_read", "_required")

    def __init__(
        self,
        parameters: Sequence[Parameter],
        read: Callable[[bytes], Sequence[msgspec.Struct]],
    ) -> None:
        self._positional = tuple(each.name for each in parameters if each.positional)
        self._by_name = frozenset(each.name for each in parameters if each.by_name)
        self._required = frozenset(each.name for each in parameters if each.required)
        self._names = tuple(each.name for each in parameters)
        self._read = read
        self._binary = any(each.shape.binary for each in parameters)
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
        plain = all(
            strict.all_fine(values[number::width], self._plain[name])
            for number, name in enumerate(names)
        )
        try:
            lines = written_lines(rows if named else starmap(_struct(names), rows))
            return lines if plain or self._unchanged(rows, names, lines) else None
        except Exception:  # noqa: BLE001 - models are the user's code, and raise anything
            return None

    def _unchanged(self, rows: Sequence[Any], names: tuple[str, ...], lines: bytes) -> bool:
        """Whether the rows come back from these lines as they are, with nothing that is refused."""
        # A NUL comes back as it is, and so does an integer a little beyond 64 bits.
        if self._binary or b"\\u0000" in lines or _LONG_NUMBER in lines.translate(_ZEROS):
            return False
        if max(map(_brackets, lines.split(b"\n"))) >= strict.MAX_DEPTH:
            return False
        order = [self._names.index(name) for name in names]
        arrived = []
        for each in self._read(lines):
            values = msgspec.structs.astuple(each)
            arrived.append(tuple([values[place] for place in order]))
        given = [tuple(row.values()) if isinstance(row, dict) else row for row in rows]
        return _exact(given) == _exact(arrived)

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


def _brackets(line: bytes) -> int:
    return line.count(b"[") + line.count(b"{")


def _exact(rows: list[tuple[Any, ...]]) -> bytes:
    """The rows in a form that differs wherever a type or a value does, but for types of bytes.

    Version 2 is the last in which equal values look equal, whether they are one object or several.

    Raises:
        ValueError: There is something of a type that is not Python's own.
    """
    return marshal.dumps(rows, 2)


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
