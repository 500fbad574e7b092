"""Waiting for a time: staging what is due."""

from datetime import UTC, datetime, timedelta

import pytest

from rota.model.look import Staging
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import (
    DUE,
    claim,
    enqueue,
    open_session,
    record,
    running,
    settle,
    settlement,
    states,
    until,
)


def test_nothing_waits(store: Store, connection: Connection) -> None:
    """Where nothing is scheduled, nothing is staged and nothing is due."""
    enqueue(store, connection)
    assert connection.run(store.stage(10)) == Staging(0, None)


def test_what_is_not_due_waits(store: Store, connection: Connection) -> None:
    """A job ahead of its time stays, and the answer says how long."""
    jobs = [*enqueue(store, connection, delay=900.0), *enqueue(store, connection, delay=600.0)]
    staging = connection.run(store.stage(10))
    assert staging.staged == 0
    assert staging.next_due is not None
    assert 500 < staging.next_due <= 600
    assert states(store, connection, jobs) == [State.SCHEDULED] * 2


def test_what_is_due_becomes_available(store: Store, connection: Connection) -> None:
    """Due jobs become available, once, and the others are waited for."""
    due = enqueue(store, connection, 3, delay=DUE)
    [later] = enqueue(store, connection, delay=600.0)
    staging = connection.run(store.stage(10))
    assert staging.staged == 3
    assert staging.next_due is not None
    assert staging.next_due > 500
    assert states(store, connection, [*due, later]) == [*[State.AVAILABLE] * 3, State.SCHEDULED]
    assert record(store, connection, due[0]).scheduled_at is None
    assert connection.run(store.stage(10)).staged == 0
    session = open_session(store, connection)
    assert {job.id for job in claim(store, connection, session)} == {*due}


def test_due_before_what_was_staged(store: Store, connection: Connection) -> None:
    """A time before those that were staged is not passed by."""
    enqueue(store, connection, delay=-60.0)
    assert connection.run(store.stage(10)).staged == 1
    jobs = enqueue(store, connection, delay=DUE)
    assert connection.run(store.stage(10)).staged == 1
    assert states(store, connection, jobs) == [State.AVAILABLE]


def test_a_job_becomes_due(store: Store, connection: Connection) -> None:
    """A short wait ends by itself: the database's clock decides."""
    [job] = enqueue(store, connection, delay=0.05)
    until(lambda: connection.run(store.stage(10)).staged or None)
    assert states(store, connection, [job]) == [State.AVAILABLE]
    found = record(store, connection, job)
    assert datetime.now(UTC) - found.enqueued_at >= timedelta(seconds=0.045)


@pytest.mark.parametrize("move", [Move.RETRY, Move.SNOOZE])
def test_settled_jobs_are_staged(store: Store, connection: Connection, move: Move) -> None:
    """Jobs that failed or were snoozed come back when their time has come."""
    session, [job] = running(store, connection)
    settle(store, connection, session, settlement(job, move))
    staging = connection.run(store.stage(10))
    assert staging == Staging(1, None)
    [again] = claim(store, connection, session)
    assert (again.id, again.attempt) == (job.id, 2 if move is Move.RETRY else 1)


def test_the_earliest_come_first(store: Store, connection: Connection) -> None:
    """Where not all jobs can be staged at once, they go in the order of their times."""
    jobs = [
        *enqueue(store, connection, delay=DUE + 2),
        *enqueue(store, connection, delay=DUE),
        *enqueue(store, connection, delay=DUE + 1),
    ]
    session = open_session(store, connection)
    for expected in (jobs[1], jobs[2], jobs[0]):
        assert connection.run(store.stage(1)).staged == 1
        assert [job.id for job in claim(store, connection, session)] == [expected]


def test_the_limit(store: Store, connection: Connection) -> None:
    """No more jobs are staged than asked for, and the answer says that more are due now."""
    enqueue(store, connection, 5, delay=DUE)
    assert connection.run(store.stage(0)).staged == 0
    staging = connection.run(store.stage(3))
    assert staging.staged == 3
    assert staging.next_due is not None
    assert staging.next_due <= 0
    assert connection.run(store.stage(3)) == Staging(2, None)


def test_priorities_and_queues_survive_the_wait(store: Store, connection: Connection) -> None:
    """A staged job has the queue, the priority and the options it was enqueued with."""
    [plain] = enqueue(store, connection, queue="mail")
    [urgent] = enqueue(store, connection, queue="mail", priority=-1, delay=DUE, timeout=7.0)
    connection.run(store.stage(10))
    session = open_session(store, connection)
    got = claim(store, connection, session, queues=("mail",))
    assert [job.id for job in got] == [urgent, plain]
    assert (got[0].priority, got[0].timeout) == (-1, 7.0)


def test_many_due_jobs(store: Store, connection: Connection) -> None:
    """Thousands of due jobs are staged in a few rounds, none twice and none left."""
    jobs = enqueue(store, connection, 3000, delay=DUE)
    assert [connection.run(store.stage(1000)).staged for _ in range(4)] == [1000, 1000, 1000, 0]
    session = open_session(store, connection)
    assert sorted(job.id for job in claim(store, connection, session, 5000)) == jobs
