"""Open transactions of the whole server, and ending one: for `rota supervise`."""

from datetime import datetime
from typing import NamedTuple

from rota.store.operation import Begin, Steps, operation
from rota.store.postgres.statements import sql

OPEN = sql("transactions_open")
HIDDEN = sql("transactions_hidden")
PREPARED = sql("transactions_prepared")
END = sql("transaction_end")


class OpenTransaction(NamedTuple):
    """A client's transaction; `seconds` says for how long it has been open."""

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


class PreparedTransaction(NamedTuple):
    """A prepared transaction, which belongs to no session."""

    gid: str
    user: str
    database: str
    seconds: float


class Seen(NamedTuple):
    """What one look at the server shows.

    Attributes:
        hidden: How many sessions this role may not look into.
        application: The application name of this connection, hence of Rota's.
    """

    open: list[OpenTransaction]
    prepared: list[PreparedTransaction]
    hidden: int
    application: str


@operation(Begin.NOTHING)
def look(seconds: float) -> Steps[Seen]:
    """All transactions that have been open for so long, the oldest first."""
    opened = [OpenTransaction(*row) for row in (yield OPEN(seconds=seconds))]
    prepared = [PreparedTransaction(*row) for row in (yield PREPARED(seconds=seconds))]
    [(hidden, application)] = yield HIDDEN()
    return Seen(opened, prepared, hidden, application)


@operation(Begin.NOTHING)
def end(one: OpenTransaction) -> Steps[bool | None]:
    """End the session if it still is in that transaction.

    Returns whether it has ended within five seconds; None if the transaction was over before.

    Raises:
        ConfigError: This role may not end it.
    """
    rows = yield END(pid=one.pid, backend_start=one.backend_start, xact_start=one.xact_start)
    return rows[0][0] if rows else None
