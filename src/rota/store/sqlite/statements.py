"""How operations find their SQL, write and read lists, and cut what is too long for a statement."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from rota.store.operation import Statement, statement

_encode = msgspec.json.Encoder().encode

numbers = msgspec.json.Decoder(list[int]).decode
"""Read a JSON array of numbers."""

texts = msgspec.json.Decoder(list[str]).decode
"""Read a JSON array of texts."""

CHUNK_JOBS = 5_000
CHUNK_CHARACTERS = 8_000_000
"""What one statement stores at most. One job may be longer."""


def sql(name: str) -> Statement:
    """The statement in `sql/{name}.sql`."""
    return statement("rota.store.sqlite", name)


def json_list(values: Sequence[Any]) -> str:
    """A list as JSON text, the form in which one parameter carries a whole batch."""
    return _encode(values).decode()


def chunks(args: Sequence[str]) -> Iterator[Sequence[str]]:
    """Cut args into pieces that one statement stores."""
    start = characters = 0
    for end, text in enumerate(args):
        full = end - start == CHUNK_JOBS or characters + len(text) > CHUNK_CHARACTERS
        if full and end > start:
            yield args[start:end]
            start, characters = end, 0
        characters += len(text)
    yield args[start:]
