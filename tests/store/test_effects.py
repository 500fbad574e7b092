"""Settling in a handler's transaction: what it writes and the completion, both or neither."""

import pytest
from msgspec.structs import replace

from rota.database.recognise import blocking_caller
from rota.errors import TransactionEnded
from rota.model.job import LeaseId, SessionId
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import (
    claim,
    open_session,
    rescued,
    run_inside,
    running,
    settle,
    settlement,
    states,
)


def test_a_job_singled_out(store: Store, connection: Connection) -> None:
    """It is settled under the lease that it has now, and the others under theirs."""
    session, jobs = running(store, connection, 3)
    lease = connection.run(store.single_out(session, jobs[1].id, jobs[1].lease))
    assert lease is not None
    alone = replace(jobs[1], lease=lease)
    assert connection.run(store.single_out(session, alone.id, lease)) == lease
    assert states(store, connection, [job.id for job in jobs]) == [State.RUNNING] * 3
    assert settle(store, connection, session, settlement(alone, Move.COMPLETE)) == []
    others = [settlement(job, Move.COMPLETE) for job in (jobs[0], jobs[2])]
    assert settle(store, connection, session, *others) == []
    assert states(store, connection, [job.id for job in jobs]) == [State.COMPLETED] * 3


def test_a_job_alone_keeps_its_lease(store: Store, connection: Connection) -> None:
    """Where no other job shares the lease there is nothing to do."""
    session, [job] = running(store, connection)
    assert connection.run(store.single_out(session, job.id, job.lease)) == job.lease


def test_what_is_not_held_is_not_singled_out(store: Store, connection: Connection) -> None:
    """A stranger, another lease, another job, and a worker that was declared dead get nothing."""
    session, [job] = running(store, connection)
    _, [elsewhere] = running(store, connection)
    for who, what, lease in (
        (SessionId(session + 1000), job.id, job.lease),
        (session, job.id, LeaseId(job.lease + 1000)),
        (session, elsewhere.id, job.lease),
    ):
        assert connection.run(store.single_out(who, what, lease)) is None
    short = open_session(store, connection, timeout=0.02)
    connection.run(store.close_session(session))
    [again] = claim(store, connection, short)
    rescued(store, connection, short)
    assert connection.run(store.single_out(short, again.id, again.lease)) is None


def test_where_a_job_is(store: Store, connection: Connection) -> None:
    """Its lease, whether it was singled out or not; a stranger's and a settled job have none."""
    session, jobs = running(store, connection, 2)
    job = jobs[0]
    assert connection.run(store.lease_of(session, job.id)) == job.lease
    lease = connection.run(store.single_out(session, job.id, job.lease))
    assert lease is not None
    assert connection.run(store.lease_of(session, job.id)) == lease
    assert connection.run(store.lease_of(session, jobs[1].id)) == jobs[1].lease
    assert connection.run(store.lease_of(SessionId(session + 1000), job.id)) is None
    settle(store, connection, session, settlement(replace(job, lease=lease), Move.COMPLETE))
    assert connection.run(store.lease_of(session, job.id)) is None


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_inside_a_transaction(
    store: Store, connection: Connection, other: Connection, end: str
) -> None:
    """The completion is part of the transaction; afterwards a worker that does not know looks."""
    session, jobs = running(store, connection, 2)
    lease = connection.run(store.single_out(session, jobs[0].id, jobs[0].lease))
    assert lease is not None
    job = replace(jobs[0], lease=lease)
    transaction = store.transaction()
    transaction.tune()
    assert (
        run_inside(store, transaction, store.settle(session, [settlement(job, Move.COMPLETE)]))
        == []
    )
    assert states(store, other, [job.id]) == [State.RUNNING]
    getattr(transaction, end)()
    after = {"commit": State.COMPLETED, "rollback": State.RUNNING}[end]
    assert states(store, other, [job.id]) == [after]
    refused = connection.run(store.settle_free(session, settlement(job, Move.RETRY)))
    assert refused == ([] if end == "rollback" else [job.id])
    after = {"commit": State.COMPLETED, "rollback": State.RETRYABLE}[end]
    assert states(store, other, [job.id, jobs[1].id]) == [after, State.RUNNING]


@pytest.mark.parametrize("held", [True, False])
def test_a_tagged_transaction(
    store: Store, connection: Connection, other: Connection, *, held: bool
) -> None:
    """It settles a job that the session still holds, and no other."""
    session, [job] = running(store, connection)
    if not held:
        connection.run(store.close_session(session))
    transaction = store.transaction(tagged=True)
    operation = store.settle_tagged(session, settlement(job, Move.COMPLETE), None)
    assert blocking_caller(transaction.connection).run(operation) == ([] if held else [job.id])
    transaction.commit()
    assert states(store, other, [job.id]) == [State.COMPLETED if held else State.AVAILABLE]


@pytest.mark.parametrize("held", [True, False])
def test_a_transaction_without_the_tag(
    store: Store, connection: Connection, other: Connection, *, held: bool
) -> None:
    """It settles nothing, and whoever asked for it is told: it is not the one that was tagged."""
    session, [job] = running(store, connection)
    if not held:
        connection.run(store.close_session(session))
    transaction = store.transaction()
    operation = store.settle_tagged(session, settlement(job, Move.COMPLETE), None)
    with pytest.raises(TransactionEnded):
        blocking_caller(transaction.connection).run(operation)
    transaction.commit()
    assert states(store, other, [job.id]) == [State.RUNNING if held else State.AVAILABLE]
