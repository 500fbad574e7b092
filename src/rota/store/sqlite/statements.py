"""How the operations find their SQL and write their lists: two short functions."""

from collections.abc import Sequence
from typing import Any

import msgspec

from rota.store.operation import Statement, statement

_encode = msgspec.json.Encoder().encode


def sql(name: str) -> Statement:
    """The statement in `sql/{name}.sql`."""
    return statement("rota.store.sqlite", name)


def json_list(values: Sequence[Any]) -> str:
    """A list as JSON text, the form in which one parameter carries a whole batch."""
    return _encode(values).decode()
