"""Jobs that a transaction of their handler completes, together with what the handler wrote.

Such a job leaves the lease that it shares with others before the handler's first statement. What
its transaction locks at the end is then its own lease alone: the other jobs of the claim can be
settled and rescued even while that transaction stays prepared.
"""

from rota.model.job import JobId, LeaseId, SessionId
from rota.model.settlement import Settled, Settlement
from rota.store.operation import Begin, Steps, operation
from rota.store.postgres.settle import settle_in_steps
from rota.store.postgres.statements import sql

SINGLE_OUT = sql("settle/single_out")
LEASE_FREE = sql("settle/lease_free")
LEASE_OF = sql("settle/lease_of")
TAG = sql("settle/tag")


@operation(Begin.HASTY)
def single_out(session: SessionId, job: JobId, lease: LeaseId) -> Steps[LeaseId | None]:
    """Give a job a lease of its own; see `rota.store.protocol.Store.single_out`."""
    # A crash of the server may undo it; then it undoes what the handler's transaction did, too.
    rows = yield SINGLE_OUT(session=session, job=job, lease=lease)
    return LeaseId(rows[0][0]) if rows else None


@operation(Begin.NOTHING)
def lease_of(session: SessionId, job: JobId) -> Steps[LeaseId | None]:
    """The lease of a job; see `rota.store.protocol.Store.lease_of`."""
    rows = yield LEASE_OF(session=session, job=job)
    return LeaseId(rows[0][0]) if rows else None


@operation(Begin.NOTHING)
def tag() -> Steps[None]:
    """Tag the caller's transaction; see `rota.store.protocol.Store.tag`."""
    yield TAG()


@operation(Begin.DURABLE)
def settle_tagged(session: SessionId, settlement: Settlement, before: int | None) -> Steps[Settled]:
    """Settle in the tagged transaction; see `rota.store.protocol.Store.settle_tagged`."""
    del before
    return (yield from settle_in_steps(session, [settlement], tagged=True).steps)


@operation(Begin.DURABLE)
def settle_free(session: SessionId, settlement: Settlement) -> Steps[Settled | None]:
    """Settle without waiting; see `rota.store.protocol.Store.settle_free`."""
    rows = yield LEASE_FREE(session=session, lease=settlement.lease)
    if not rows:
        return Settled([settlement.job])
    if rows[0][0]:
        return None
    return (yield from settle_in_steps(session, [settlement]).steps)
