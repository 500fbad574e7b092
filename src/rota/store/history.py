"""The history of a database: what happened in each of the last minutes, by queue."""

from collections.abc import Callable
from typing import Protocol

from rota.model.history import HistoryPoint
from rota.store.operation import Operation


class Read(Protocol):
    """What happened since a minute, in steps of so many minutes; steps without a look are left out."""

    def __call__(self, queue: str, *, since: int, step: int) -> Operation[list[HistoryPoint]]:
        """Of a queue or of all together (`rota.model.history.ALL`); `since`: minutes since 1970."""
        ...


class History:
    """The operations on the history.

    Attributes:
        record: Write down the minute that is over, unless that was done; whether it was now. Asked
            for when a look says so (`Look.unrecorded`).
        read: The numbers.
    """

    __slots__ = ("read", "record")

    def __init__(self, record: Callable[[], Operation[bool]], read: Read) -> None:
        self.record = record
        self.read = read
