"""Open transactions of the whole server, and ending one: for `rota supervise`."""

from rota.store.operation import Begin, Steps, operation
from rota.store.postgres.connection import APPLICATION
from rota.store.postgres.statements import sql
from rota.store.supervision import (
    OpenTransaction,
    PreparedTransaction,
    Supervision,
    TransactionFacts,
)

OPEN = sql("health/transactions_open")
HIDDEN = sql("health/transactions_hidden")
PREPARED = sql("health/transactions_prepared")
END = sql("health/transaction_end")


@operation(Begin.NOTHING)
def open_transactions(seconds: float) -> Steps[TransactionFacts]:
    """All transactions that have been open for so long, the oldest first."""
    opened = tuple(OpenTransaction(*row) for row in (yield OPEN(seconds=seconds)))
    prepared = tuple(PreparedTransaction(*row) for row in (yield PREPARED(seconds=seconds)))
    [(hidden, application)] = yield HIDDEN()
    return TransactionFacts(opened, prepared, hidden, application)


@operation(Begin.NOTHING)
def end(transaction: OpenTransaction) -> Steps[bool | None]:
    """End the session if it still is in that very transaction.

    Returns whether it ended within five seconds; None if the transaction was over before.

    Raises:
        ConfigError: This role may not end it.
    """
    rows = yield END(
        pid=transaction.pid,
        backend_start=transaction.backend_start,
        xact_start=transaction.xact_start,
    )
    return bool(rows[0][0]) if rows else None


def own(application: str) -> bool:
    """Whether Rota's own connections have this name."""
    return application.partition(" ")[0] == APPLICATION


SUPERVISION = Supervision(own, open_transactions, end)
