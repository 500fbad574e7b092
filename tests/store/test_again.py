"""Subjects: jobs that come round, whose iterations are counted."""

from datetime import UTC, datetime, timedelta

import pytest

from rota import Unique
from rota.model.job import JobFilter, Keys, Order
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import (
    claim,
    close_to,
    enqueue,
    open_session,
    record,
    running,
    settle,
    settlement,
    spec_of,
)

HOUR = 3600.0


def test_coming_round(store: Store, connection: Connection) -> None:
    """The job keeps its id, has all its attempts again, and its rounds are counted."""
    session, [job] = running(store, connection, max_attempts=3)
    for iteration in range(1, 4):
        settle(store, connection, session, settlement(job, Move.RETRY))
        connection.run(store.stage(10))
        [job] = claim(store, connection, session)
        assert job.attempt == 2
        assert settle(store, connection, session, settlement(job, Move.AGAIN)) == []
        found = record(store, connection, job.id)
        assert (found.state, found.attempt, found.iteration) == (State.SCHEDULED, 0, iteration)
        assert found.errors == ()
        assert close_to(found.last_run, datetime.now(UTC))
        connection.run(store.stage(10))
        [job] = claim(store, connection, session)
        assert job.attempt == 1
    settle(store, connection, session, settlement(job, Move.COMPLETE))
    found = record(store, connection, job.id)
    assert (found.state, found.iteration) == (State.COMPLETED, 3)
    [queue] = connection.run(store.queues())
    assert dict(queue.counts) == {State.COMPLETED: 1}


def test_when_it_comes_round(store: Store, connection: Connection) -> None:
    """After so many seconds, or at a time; several in one settlement."""
    session, jobs = running(store, connection, 2)
    at = datetime.now(UTC) + timedelta(days=3)
    refused = settle(
        store, connection, session,
        settlement(jobs[0], Move.AGAIN, delay=HOUR), settlement(jobs[1], Move.AGAIN, at=at),
    )  # fmt: skip
    assert refused == []
    first, second = (record(store, connection, job.id) for job in jobs)
    assert close_to(first.scheduled_at, datetime.now(UTC) + timedelta(hours=1))
    assert close_to(second.scheduled_at, at, 0.01)
    [queue] = connection.run(store.queues())
    assert dict(queue.counts) == {State.SCHEDULED: 2}


@pytest.mark.parametrize("move", [Move.RETRY, Move.SNOOZE, Move.RELEASE])
def test_the_count_stays(store: Store, connection: Connection, move: Move) -> None:
    """What happens within a round changes neither the count nor the last run."""
    session, [job] = running(store, connection)
    settle(store, connection, session, settlement(job, Move.AGAIN))
    connection.run(store.stage(10))
    before = record(store, connection, job.id)
    [job] = claim(store, connection, session)
    settle(store, connection, session, settlement(job, move))
    after = record(store, connection, job.id)
    assert (after.iteration, after.last_run) == (1, before.last_run)


def test_a_replaced_subject(store: Store, connection: Connection) -> None:
    """It keeps its count: the subject is the same."""
    spec = spec_of(unique=Unique(on_conflict="replace"))
    [placed] = connection.run(store.enqueue(Order(spec, ["{}"], Keys(unique=["a"])))).placed
    session = open_session(store, connection)
    [job] = claim(store, connection, session)
    settle(store, connection, session, settlement(job, Move.AGAIN, delay=HOUR))
    connection.run(store.enqueue(Order(spec, ['{"now":1}'], Keys(unique=["a"]))))
    found = record(store, connection, placed.job)
    assert (found.state, found.iteration, found.args) == (State.AVAILABLE, 1, '{"now":1}')
    assert close_to(found.last_run, datetime.now(UTC))


def test_a_discarded_subject(store: Store, connection: Connection) -> None:
    """It stops coming round, is found with its count, and comes back by hand."""
    session, [job] = running(store, connection)
    settle(store, connection, session, settlement(job, Move.AGAIN))
    connection.run(store.stage(10))
    [job] = claim(store, connection, session)
    settle(store, connection, session, settlement(job, Move.DISCARD))
    [found] = connection.run(store.list_jobs(JobFilter(state=State.DISCARDED)))
    assert found.iteration == 1
    assert connection.run(store.retry([job.id])) == [job.id]
    assert record(store, connection, job.id).iteration == 1


def test_a_refused_round(store: Store, connection: Connection) -> None:
    """Who has lost the lease does not count a round."""
    session, [job] = running(store, connection)
    connection.run(store.release(session, []))
    assert settle(store, connection, session, settlement(job, Move.AGAIN)) == [job.id]
    assert record(store, connection, job.id).iteration == 0


def test_subjects_beside_others(store: Store, connection: Connection) -> None:
    """Jobs that end otherwise in the same settlement are none of its business."""
    session = open_session(store, connection)
    enqueue(store, connection, 4)
    jobs = claim(store, connection, session)
    moves = [Move.AGAIN, Move.COMPLETE, Move.SNOOZE, Move.RETRY]
    batch = [settlement(job, move, delay=HOUR) for job, move in zip(jobs, moves, strict=True)]
    assert settle(store, connection, session, *batch) == []
    found = connection.run(store.get([job.id for job in jobs]))
    assert [one.iteration for one in found] == [1, 0, 0, 0]
    assert [one.state for one in found] == [
        State.SCHEDULED, State.COMPLETED, State.SCHEDULED, State.RETRYABLE,
    ]  # fmt: skip
