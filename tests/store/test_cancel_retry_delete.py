"""What people do with jobs: cancel, retry, delete."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from rota.model.states import FINISHED, Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import (
    NOBODY,
    claim,
    close_to,
    enqueue,
    in_state,
    one_of_each,
    record,
    retry_discarded,
    running,
    settle,
    settlement,
    states,
)

# Cancel ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [State.SCHEDULED, State.AVAILABLE, State.RETRYABLE])
def test_cancel_before_the_start(store: Store, connection: Connection, state: State) -> None:
    """A job that does not run is cancelled at once and never claimed or staged."""
    job = in_state(store, connection, state).id
    assert connection.run(store.cancel([job])) == {job: State.CANCELLED}
    found = record(store, connection, job)
    assert (found.state, found.scheduled_at) == (State.CANCELLED, None)
    assert close_to(found.finished_at, datetime.now(UTC))
    assert connection.run(store.stage(10)).staged == 0
    built = in_state(store, connection, State.RUNNING)
    assert built.id != job


def test_cancel_while_it_runs(store: Store, connection: Connection) -> None:
    """A running job is asked to stop, and goes on until its worker does so."""
    session, [job, other] = running(store, connection, 2)
    assert connection.run(store.cancel([job.id])) == {job.id: State.RUNNING}
    assert record(store, connection, job.id).cancel_requested
    assert not record(store, connection, other.id).cancel_requested
    assert connection.run(store.renew(session)).cancel == {job.id}
    assert connection.run(store.cancel([job.id])) == {job.id: State.RUNNING}


@pytest.mark.parametrize("state", sorted(FINISHED))
def test_cancel_after_the_end(store: Store, connection: Connection, state: State) -> None:
    """A finished job stays as it is."""
    job = in_state(store, connection, state).id
    before = record(store, connection, job)
    assert connection.run(store.cancel([job])) == {job: state}
    assert record(store, connection, job) == before


def test_cancel_many(store: Store, connection: Connection) -> None:
    """Each job of a batch gets its own answer, and unknown ids get none."""
    jobs = one_of_each(store, connection)
    answer = connection.run(store.cancel([*jobs.values(), NOBODY, jobs[State.SCHEDULED]]))
    expected = {
        job: state if state is State.RUNNING or state.finished else State.CANCELLED
        for state, job in jobs.items()
    }
    assert answer == expected
    assert connection.run(store.cancel([])) == {}
    assert connection.run(store.cancel([NOBODY])) == {}


# Retry ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [State.SCHEDULED, State.RETRYABLE, *sorted(FINISHED)])
def test_retry_makes_available(store: Store, connection: Connection, state: State) -> None:
    """A job that waits or has ended is available now, with all its attempts and its old errors."""
    built = in_state(store, connection, state)
    before = record(store, connection, built.id)
    assert connection.run(store.retry([built.id])) == [built.id]
    found = record(store, connection, built.id)
    assert (found.state, found.attempt) == (State.AVAILABLE, 0)
    assert (found.scheduled_at, found.finished_at, found.result) == (None, None, None)
    assert found.errors == before.errors
    assert found.enqueued_at == before.enqueued_at
    [again] = claim(store, connection, built.session)
    assert (again.id, again.attempt, again.args) == (built.id, 1, before.args)
    assert settle(store, connection, built.session, settlement(again, Move.COMPLETE)) == []
    assert states(store, connection, [built.id]) == [State.COMPLETED]


@pytest.mark.parametrize("state", [State.AVAILABLE, State.RUNNING])
def test_retry_of_what_runs_anyway(store: Store, connection: Connection, state: State) -> None:
    """A job that is available or running stays as it is and is not in the answer."""
    job = in_state(store, connection, state).id
    before = record(store, connection, job)
    assert connection.run(store.retry([job])) == []
    assert record(store, connection, job) == before


def test_retry_many(store: Store, connection: Connection) -> None:
    """The answer holds each job that changed, once."""
    jobs = one_of_each(store, connection)
    answer = connection.run(store.retry([*jobs.values(), NOBODY, jobs[State.SCHEDULED]]))
    del jobs[State.AVAILABLE], jobs[State.RUNNING]
    assert sorted(answer) == sorted(jobs.values())
    assert connection.run(store.retry([])) == []


def test_a_retried_job_has_all_its_attempts(store: Store, connection: Connection) -> None:
    """A job that used up its attempts fails again only after as many."""
    session, [job] = running(store, connection, max_attempts=1)
    settle(store, connection, session, settlement(job, Move.DISCARD))
    connection.run(store.retry([job.id]))
    [again] = claim(store, connection, session)
    assert (again.attempt, again.max_attempts) == (1, 1)
    settle(store, connection, session, settlement(again, Move.DISCARD))
    assert len(record(store, connection, job.id).errors) == 2


def test_retry_discarded(store: Store, connection: Connection) -> None:
    """Discarded jobs that a listing finds come back: all, or those of a queue, or of a task."""
    jobs = {}
    for queue in ("mail", "images"):
        for task in ("send", "resize"):
            session, [job] = running(store, connection, queue=queue, task=task)
            settle(store, connection, session, settlement(job, Move.DISCARD))
            jobs[queue, task] = job.id
    kept = in_state(store, connection, State.COMPLETED).id
    assert retry_discarded(store, connection, "nobody's", None) == []
    assert retry_discarded(store, connection, "mail", "nobody's") == []
    assert retry_discarded(store, connection, "mail", "send") == [jobs["mail", "send"]]
    assert retry_discarded(store, connection, None, "resize") == [
        jobs["mail", "resize"],
        jobs["images", "resize"],
    ]
    assert retry_discarded(store, connection, "images", None) == [jobs["images", "send"]]
    assert retry_discarded(store, connection) == []
    assert states(store, connection, [*jobs.values(), kept]) == [
        *[State.AVAILABLE] * 4,
        State.COMPLETED,
    ]
    found = record(store, connection, jobs["mail", "send"])
    assert (found.attempt, found.finished_at, len(found.errors)) == (0, None, 1)


# Delete ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [state for state in State if state is not State.RUNNING])
def test_delete(store: Store, connection: Connection, state: State) -> None:
    """A job that is not running can be removed, and nothing is left of it."""
    built = in_state(store, connection, state)
    [stays] = enqueue(store, connection, queue="another")
    assert connection.run(store.delete([built.id])) == [built.id]
    assert connection.run(store.get([built.id])) == []
    assert connection.run(store.delete([built.id])) == []
    assert connection.run(store.cancel([built.id])) == {}
    assert connection.run(store.retry([built.id])) == []
    assert connection.run(store.stage(10)).staged == 0
    assert claim(store, connection, built.session) == []
    assert states(store, connection, [stays]) == [State.AVAILABLE]


def test_a_running_job_is_not_deleted(store: Store, connection: Connection) -> None:
    """A job in the hands of a worker stays, and can be settled."""
    session, [job] = running(store, connection)
    assert connection.run(store.delete([job.id])) == []
    assert settle(store, connection, session, settlement(job, Move.COMPLETE)) == []
    assert connection.run(store.delete([job.id])) == [job.id]


def test_delete_many(store: Store, connection: Connection) -> None:
    """The answer holds each job that was removed, once."""
    jobs = one_of_each(store, connection)
    answer = connection.run(store.delete([*jobs.values(), NOBODY, jobs[State.SCHEDULED]]))
    del jobs[State.RUNNING]
    assert sorted(answer) == sorted(jobs.values())
    assert connection.run(store.delete([])) == []


def test_an_id_is_never_given_again(store: Store, connection: Connection) -> None:
    """A deleted job's id does not come back with another job."""
    jobs = enqueue(store, connection, 3)
    connection.run(store.delete(jobs))
    assert not {*enqueue(store, connection, 3)} & {*jobs}


ACTS: dict[str, Callable[..., Any]] = {
    "cancel": lambda store, jobs, only: store.cancel(jobs, only=only),
    "retry": lambda store, jobs, only: store.retry(jobs, only=only),
    "delete": lambda store, jobs, only: store.delete(jobs, only=only),
}


@pytest.mark.table
@pytest.mark.parametrize("only", list(State))
@pytest.mark.parametrize("act", ACTS)
def test_only_those_in_a_state(store: Store, connection: Connection, act: str, only: State) -> None:
    """What is in another state just then is left alone, and is not in the answer."""
    jobs = one_of_each(store, connection)
    before = dict(jobs)
    able = {
        "cancel": {State.SCHEDULED, State.RETRYABLE, State.AVAILABLE, State.RUNNING},
        "retry": set(State) - {State.AVAILABLE, State.RUNNING},
        "delete": set(State) - {State.RUNNING},
    }[act]
    answer = connection.run(ACTS[act](store, [*jobs.values()], only))
    assert list(answer) == ([jobs[only]] if only in able else [])
    if act == "cancel" and answer:
        end = State.RUNNING if only is State.RUNNING else State.CANCELLED
        assert answer == {jobs[only]: end}
    del before[only]
    assert states(store, connection, [*before.values()]) == [*before]
