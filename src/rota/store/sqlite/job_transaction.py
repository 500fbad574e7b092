"""Jobs that a transaction of their handler completes, together with what the handler wrote.

Each job is a row of its own here, so nothing has to be singled out; and with one writer at a time,
nothing can stay locked while others write.
"""

from rota.model.job import JobId, LeaseId, SessionId
from rota.model.settlement import Settlement
from rota.store.operation import Begin, Steps, operation
from rota.store.sqlite.settle import settle
from rota.store.sqlite.statements import sql

LEASE_HELD = sql("settle/lease_held")


@operation(Begin.READING)
def single_out(session: SessionId, job: JobId, lease: LeaseId) -> Steps[LeaseId | None]:
    """The lease itself, if it is still held; see `rota.store.protocol.Store.single_out`."""
    return lease if (yield LEASE_HELD(session=session, job=job, lease=lease)) else None


@operation(Begin.HASTY)
def settle_free(session: SessionId, settlement: Settlement) -> Steps[bool | None]:
    """Settle; see `rota.store.protocol.Store.settle_free`."""
    return not (yield from settle(session, [settlement]).steps)
