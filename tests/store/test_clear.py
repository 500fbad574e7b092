"""Clearing a queue, batch by batch."""

import pytest

from rota import Unique
from rota.model.enqueued import Placing
from rota.model.job import JobId, Keys, Order
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import (
    claim,
    enqueue,
    one_of_each,
    open_session,
    run_inside,
    settle,
    settlement,
    spec_of,
    states,
)
from tests.store.test_counters import counted, told

FIRST = JobId(0)


def cleared(
    store: Store,
    connection: Connection,
    state: State,
    *,
    queue: str = "default",
    until: JobId | None = None,
    limit: int = 10,
) -> list[int]:
    """Clear to the end; how many jobs each batch has deleted."""
    until = connection.run(store.last_job()) if until is None else until
    after: JobId | None = FIRST
    found = []
    while after is not None:
        step = connection.run(store.clear(queue, state, after=after, until=until, limit=limit))
        assert step.deleted <= limit
        found.append(step.deleted)
        after = step.last
    return found


@pytest.mark.parametrize("state", list(State))
def test_each_state(store: Store, connection: Connection, state: State) -> None:
    """Jobs of one state go, running ones never; the counters say so."""
    built = one_of_each(store, connection)
    sum_of_it = sum(cleared(store, connection, state))
    gone = state is not State.RUNNING
    assert sum_of_it == gone
    left = [job for other, job in built.items() if other is not state or not gone]
    assert [job.id for job in connection.run(store.get(list(built.values())))] == left
    assert told(store, connection) == counted(store, connection)


def test_in_batches(store: Store, connection: Connection) -> None:
    """Each batch goes on where the last one ended; queues, lanes and later jobs are kept apart."""
    mine = enqueue(store, connection, 23) + enqueue(store, connection, 7, priority=3)
    theirs = enqueue(store, connection, 5, queue="mail")
    until = connection.run(store.last_job())
    later = enqueue(store, connection, 5)
    session = open_session(store, connection)
    running = [job.id for job in claim(store, connection, session, 4)]
    found = cleared(store, connection, State.AVAILABLE, until=until)
    assert sum(found) == len(mine) - 4
    assert len(found) == 3
    assert states(store, connection, [*theirs, *later]) == [State.AVAILABLE] * 10
    assert states(store, connection, running) == [State.RUNNING] * 4
    assert told(store, connection) == counted(store, connection)
    # What is gone is never claimed, and what is left is.
    assert [job.id for job in claim(store, connection, session)] == later


def test_waiting_jobs_in_batches(store: Store, connection: Connection) -> None:
    """Scheduled and finished jobs, too."""
    enqueue(store, connection, 25, delay=600.0)
    session = open_session(store, connection)
    enqueue(store, connection, 25)
    jobs = claim(store, connection, session)
    settle(store, connection, session, *[settlement(job, Move.DISCARD) for job in jobs])
    assert cleared(store, connection, State.RETRYABLE) == [0]
    assert cleared(store, connection, State.SCHEDULED) == [10, 10, 5]
    assert cleared(store, connection, State.DISCARDED) == [10, 10, 5]
    assert not told(store, connection)
    assert not counted(store, connection)


def test_between_two_batches(store: Store, connection: Connection, other: Connection) -> None:
    """Workers claim meanwhile; a claimed job stays with its worker, and no job is claimed twice."""
    enqueue(store, connection, 30)
    until = connection.run(store.last_job())
    session = open_session(store, other)
    step = connection.run(
        store.clear("default", State.AVAILABLE, after=FIRST, until=until, limit=10)
    )
    assert (step.deleted, step.last) == (10, JobId(until - 20))
    held = claim(store, other, session, 15)
    assert len(held) == 15
    assert step.last is not None
    rest = cleared(store, connection, State.AVAILABLE, until=until)
    assert sum(rest) == 5
    assert settle(store, other, session, *[settlement(job, Move.COMPLETE) for job in held]) == []
    assert told(store, connection) == counted(store, connection)


def test_an_empty_queue(store: Store, connection: Connection) -> None:
    """Nothing to do is done at once, also in a database without a job."""
    assert connection.run(store.last_job()) == 0
    for state in State:
        assert cleared(store, connection, state) == [0]


def test_a_transaction_that_is_rolled_back(store: Store, connection: Connection) -> None:
    """Then nothing is gone."""
    jobs = enqueue(store, connection, 5)
    transaction = store.transaction()
    step = store.clear("default", State.AVAILABLE, after=FIRST, until=jobs[-1], limit=10)
    assert run_inside(store, transaction, step).deleted == 5
    transaction.rollback()
    assert states(store, connection, jobs) == [State.AVAILABLE] * 5
    assert told(store, connection) == counted(store, connection)


@pytest.mark.parametrize("delay", [None, 60.0])
def test_unique_keys_are_free_again(
    store: Store, connection: Connection, delay: float | None
) -> None:
    """Where a unique job was cleared, another one of its key can come."""
    spec = spec_of(unique=Unique(key="{key}"), delay=delay)
    keys = Keys(unique=["a", "b"])
    first = connection.run(store.enqueue(Order(spec, ["1", "2"], keys))).placed
    state = State.AVAILABLE if delay is None else State.SCHEDULED
    assert sum(cleared(store, connection, state)) == 2
    second = connection.run(store.enqueue(Order(spec, ["3", "4"], keys))).placed
    assert {one.placing for one in second} == {Placing.CREATED}
    assert not {one.job for one in first} & {one.job for one in second}
