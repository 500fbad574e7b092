"""Hearing of jobs that have ended, and what that costs without a listener."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from rota.model.job import JobId
from rota.model.states import Move, State
from rota.store.connections import Connection, Listener
from rota.store.protocol import Store
from tests.store.factories import (
    Built,
    enqueue,
    in_state,
    open_session,
    rescued,
    running,
    settle,
    settlement,
)

LONG = 60.0


@pytest.fixture
def listener(store: Store) -> Iterator[Listener]:
    """A listener that waits."""
    with closing(store.listener()) as listener:
        assert listener.listen()
        assert not listener.listen()
        yield listener


def hears(listener: Listener, act: Callable[[], object], *jobs: JobId) -> bool:
    """Whether an act in another thread is heard as the end of these jobs, and of no other."""
    while listener.wait(0.01) is None:  # what happened before does not count
        pass
    actor = threading.Thread(target=act)
    actor.start()
    heard = listener.wait(LONG)
    actor.join()
    return heard is None or set(heard) == set(jobs)


@pytest.mark.parametrize("move", [Move.COMPLETE, Move.DISCARD, Move.CANCEL])
@pytest.mark.parametrize("count", [1, 2])
def test_a_settlement(
    store: Store, connection: Connection, listener: Listener, move: Move, count: int
) -> None:
    """The end of a job is heard, whether its lease is settled whole or in part."""
    session, jobs = running(store, connection, count)
    job = jobs[0]
    assert hears(
        listener, lambda: settle(store, connection, session, settlement(job, move)), job.id
    )


def test_a_settlement_that_leaves_nothing(
    store: Store, connection: Connection, listener: Listener
) -> None:
    """A job whose retention is 0 has ended like any other."""
    session, [job] = running(store, connection)
    gone = settlement(job, Move.COMPLETE, keep=0.0)
    assert hears(listener, lambda: settle(store, connection, session, gone), job.id)


@pytest.mark.parametrize("state", [State.AVAILABLE, State.SCHEDULED, State.RETRYABLE])
def test_cancelling(store: Store, connection: Connection, listener: Listener, state: State) -> None:
    """A waiting job that is cancelled has ended."""
    job = in_state(store, connection, state).id
    assert hears(listener, lambda: connection.run(store.cancel([job])), job)


@pytest.mark.parametrize("state", [State.AVAILABLE, State.SCHEDULED])
def test_deleting(store: Store, connection: Connection, listener: Listener, state: State) -> None:
    """The end of a job that is deleted is heard of, too."""
    job = in_state(store, connection, state).id
    assert hears(listener, lambda: connection.run(store.delete([job])), job)


def test_a_rescue(store: Store, connection: Connection, listener: Listener) -> None:
    """The last attempt of a job dies with its worker."""
    session = open_session(store, connection, timeout=0.0)
    [job] = enqueue(store, connection, max_attempts=1)
    # A dead worker's job, so that no live one is needed.
    [claimed] = connection.run(store.claim(session, ["default"], 1))
    built = Built(job, session, claimed)
    assert hears(listener, lambda: rescued(store, connection, built.session), job)


def test_many_at_once(store: Store, connection: Connection, listener: Listener) -> None:
    """A thousand jobs that end together are heard of."""
    session, jobs = running(store, connection, 1000)
    done = [settlement(job, Move.COMPLETE) for job in jobs]
    heard: set[JobId] = set()
    ender = threading.Thread(target=lambda: settle(store, connection, session, *done))
    ender.start()
    while heard != {job.id for job in jobs}:
        part = listener.wait(LONG)
        if part is None:
            break
        assert part, "not all of them were heard of"
        heard |= set(part)
    ender.join()


def test_nothing_has_ended(listener: Listener) -> None:
    """The sleep ends with its time, or when the sleeper is woken."""
    assert listener.wait(0.05) == ()
    sleeper = threading.Thread(target=listener.wait, args=(LONG,))
    sleeper.start()
    listener.wake()
    sleeper.join(LONG)
    assert not sleeper.is_alive()


def test_a_job_that_waits_again_has_not_ended(
    store: Store, connection: Connection, listener: Listener
) -> None:
    """A retry is not the end of a job."""
    session, [job] = running(store, connection)
    settle(store, connection, session, settlement(job, Move.RETRY))
    heard = listener.wait(0.05)
    # SQLite says only that something has changed.
    assert heard == () if store.name == "postgres" else heard is None
