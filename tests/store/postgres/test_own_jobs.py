"""The jobs of a test's transaction beside real workers, and what rolled back tests leave behind."""

import pytest

from rota.model.job import JobId, Order
from rota.model.settlement import completed
from rota.model.states import State
from rota.store.connections import Connection
from rota.store.protocol import Store
from rota.store.testing import Wanted
from tests.store.factories import (
    claim,
    enqueue,
    open_session,
    run_inside,
    spec_of,
)

pytestmark = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)


def test_workers_beside_a_test(store: Store, connection: Connection) -> None:
    """Cursors move past an open test: it and workers go on with their own jobs, without waiting."""
    worker = open_session(store, connection)
    transaction = store.transaction()
    transaction.connection.execute("SET LOCAL lock_timeout = '1ms'")
    testing = store.testing

    def inside_states(*jobs: JobId) -> list[State]:
        found = run_inside(store, transaction, store.get(jobs))
        return [record.state for record in found]

    try:
        order = Order(spec_of(), ["{}"] * 3)
        first, second, third = run_inside(store, transaction, store.enqueue(order))
        session = run_inside(store, transaction, testing.begin())
        [job] = run_inside(store, transaction, testing.claim(session, Wanted()))
        assert job.id == first
        for _ in range(2):
            theirs = enqueue(store, connection, 2)
            assert [job.id for job in claim(store, connection, worker)] == theirs
        assert inside_states(first, second, third) == [
            State.RUNNING,
            State.AVAILABLE,
            State.AVAILABLE,
        ]
        claimed = run_inside(store, transaction, testing.claim(session, Wanted(), 10))
        assert [job.id for job in claimed] == [second, third]
        ended = [completed(one, 60.0) for one in (job, *claimed)]
        assert run_inside(store, transaction, store.settle(session, ended)) == []
        assert inside_states(first, second, third) == [State.COMPLETED] * 3
        theirs = enqueue(store, connection)
        assert [job.id for job in claim(store, connection, worker)] == theirs
    finally:
        transaction.rollback()
    assert claim(store, connection, worker) == []
    [queue] = connection.run(store.queues())
    assert {state: count for state, count in queue.counts.items() if count} == {State.RUNNING: 5}


def test_space_is_used_again(store: Store, connection: Connection) -> None:
    """After a cleaning, the log's rows lie where those of rolled back transactions lay."""
    sizes = []
    for _ in range(2):
        transaction = store.transaction()
        transaction.connection.execute(
            "INSERT INTO rota.log (id, lane, segment, max_attempts, task, args)"
            " SELECT number, 1, 0, 1, 'x', '{}' FROM generate_series(1, 5000) AS number"
        )
        [(size,)] = transaction.connection.execute(
            "SELECT pg_relation_size('rota.log_0')"
        ).fetchall()
        transaction.rollback()
        connection.run(store.testing.clean())
        sizes.append(size)
    assert sizes[0] == sizes[1] > 0
