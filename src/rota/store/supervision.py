"""What a server offers to `rota supervise`: its open transactions, and ending one."""

from collections.abc import Callable
from typing import NamedTuple

from rota.store.health import OpenTransaction, TransactionFacts
from rota.store.operation import Operation


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
