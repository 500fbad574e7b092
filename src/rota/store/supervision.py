"""What a server offers to `rota supervise`: its open transactions, and ending one."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from rota.store.operation import Operation


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A client's transaction, somewhere on the server, which has been open for `seconds`."""

    pid: int
    backend_start: datetime
    xact_start: datetime
    user: str
    application: str
    database: str
    client: str
    state: str
    seconds: float
    query: str


@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    """A prepared transaction, which belongs to no session."""

    gid: str
    user: str
    database: str
    seconds: float


@dataclass(frozen=True, slots=True)
class TransactionFacts:
    """The transactions of a whole server that have been open for some time.

    Attributes:
        hidden: How many sessions this role may not look into.
        application: The application name of this connection, hence of Rota's own.
    """

    open: tuple[OpenTransaction, ...]
    prepared: tuple[PreparedTransaction, ...]
    hidden: int
    application: str


class Supervision(NamedTuple):
    """The operations on other programs' transactions.

    Attributes:
        own: Whether an application name is of Rota's own sessions.
        open_transactions: All transactions that have been open for so many seconds.
        end: End a transaction's session. Whether it ended in time; None if the transaction was
            over before.
    """

    own: Callable[[str], bool]
    open_transactions: Callable[[float], Operation[TransactionFacts]]
    end: Callable[[OpenTransaction], Operation[bool | None]]
