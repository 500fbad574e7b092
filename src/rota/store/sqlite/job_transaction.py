"""Jobs that a transaction of their handler completes, together with what the handler wrote.

Each job is a row of its own here, so nothing has to be singled out; and with one writer at a time,
nothing can stay locked while others write.
"""

from rota.errors import StoreError, TransactionEnded
from rota.model.job import JobId, LeaseId, SessionId
from rota.model.settlement import Settled, Settlement
from rota.store.operation import Begin, Operation, Stepped, Steps, operation, surroundings
from rota.store.sqlite.settle import settle, settle_in_steps, woken
from rota.store.sqlite.statements import sql

LEASE_HELD = sql("settle/lease_held")
LEASE_OF = sql("settle/lease_of")
TAG = sql("settle/tag")
UNTAG = sql("settle/untag")
CHANGES = sql("settle/changes")
TOUCH = sql("settle/touch")


@operation(Begin.READING)
def single_out(session: SessionId, job: JobId, lease: LeaseId) -> Steps[LeaseId | None]:
    """The lease itself, if it is still held; see `rota.store.protocol.Store.single_out`."""
    return lease if (yield LEASE_HELD(session=session, job=job, lease=lease)) else None


@operation(Begin.READING)
def lease_of(session: SessionId, job: JobId) -> Steps[LeaseId | None]:
    """The lease of a job; see `rota.store.protocol.Store.lease_of`."""
    rows = yield LEASE_OF(session=session, job=job)
    return LeaseId(rows[0][0]) if rows else None


@operation(Begin.READING)
def tag() -> Steps[int | None]:
    """Tag the caller's transaction, if it has begun; see `rota.store.protocol.Store.tag`.

    Most connections begin it before their first change. To begin it earlier would keep a snapshot
    from the first look on, and a change would then be refused as soon as anything else has written.
    """
    if (yield from surroundings()).begun:
        yield TAG()
        return None
    [(changes,)] = yield CHANGES()
    return int(changes)


def settle_tagged(
    session: SessionId, settlement: Settlement, before: int | None
) -> Operation[Settled]:
    """Settle in the tagged transaction; see `rota.store.protocol.Store.settle_tagged`."""
    steps = _settle_tagged(session, settlement, before)
    return Stepped("settle_tagged", steps, Begin.HASTY, woken([settlement]))


def _settle_tagged(
    session: SessionId, settlement: Settlement, before: int | None
) -> Steps[Settled]:
    yield from same_transaction(before)
    return (yield from settle_in_steps(session, [settlement]))


def same_transaction(before: int | None) -> Steps[None]:
    """Go on in the transaction that was tagged.

    Raises:
        TransactionEnded: This is not it.
    """
    if before is None:
        try:
            yield UNTAG()
        except StoreError as error:
            if "no such savepoint" in str(error):
                raise TransactionEnded from error
            raise
    elif not (yield from surroundings()).begun:
        if (yield CHANGES())[0][0] != before:
            raise TransactionEnded
        # The handler has changed nothing, and nothing may come between the look at the lease and
        # the end.
        yield TOUCH()


def settle_free(session: SessionId, settlement: Settlement) -> Operation[Settled | None]:
    """Settle; see `rota.store.protocol.Store.settle_free`."""
    return settle(session, [settlement])
