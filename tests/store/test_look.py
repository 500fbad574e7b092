"""A look at what there is to do: it may promise too much, never too little."""

import pytest

from rota.model.look import Look
from rota.model.states import Move
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import (
    DUE,
    claim,
    enqueue,
    open_session,
    running,
    settle,
    settlement,
    until,
)


def look(store: Store, connection: Connection, *queues: str) -> Look:
    return connection.run(store.look(queues or ("default",)))


def test_there_is_nothing_to_do(store: Store, connection: Connection) -> None:
    """A fresh database has nothing available and nothing that waits."""
    open_session(store, connection)
    seen = look(store, connection)
    assert (seen.available, seen.due) == (False, None)


def test_available_jobs_are_seen_until_they_are_claimed(
    store: Store, connection: Connection
) -> None:
    """Only those of the queues asked for count."""
    session = open_session(store, connection)
    enqueue(store, connection)
    assert look(store, connection).available
    assert look(store, connection, "other", "default").available
    assert not look(store, connection, "other").available
    claim(store, connection, session)
    assert not look(store, connection).available


def test_jobs_of_a_paused_queue_are_not_to_be_had(store: Store, connection: Connection) -> None:
    """No worker is woken for what cannot be claimed."""
    enqueue(store, connection)
    connection.run(store.pause("default"))
    assert not look(store, connection).available
    connection.run(store.resume("default"))
    assert look(store, connection).available


def test_due_jobs_ask_for_a_staging(store: Store, connection: Connection) -> None:
    """What is due is due now; after the staging it is available."""
    enqueue(store, connection, delay=DUE)
    assert look(store, connection).due == 0
    connection.run(store.stage(10))
    seen = look(store, connection)
    assert (seen.available, seen.due) == (True, None)


def test_the_next_due_time_is_told(store: Store, connection: Connection) -> None:
    """Staging once what is new makes the answer exact; and it counts down."""
    enqueue(store, connection, delay=600.0)
    assert look(store, connection).due is not None
    connection.run(store.stage(10))
    due = look(store, connection).due
    assert due is not None
    assert 500 < due <= 600


@pytest.mark.parametrize("move", [Move.RETRY, Move.SNOOZE])
def test_jobs_that_come_back_are_seen(store: Store, connection: Connection, move: Move) -> None:
    """A retry that is due already asks for a staging, although later jobs were staged before."""
    enqueue(store, connection, delay=DUE)
    connection.run(store.stage(10))
    session, [job] = running(store, connection, queue="other")
    settle(store, connection, session, settlement(job, move))
    assert look(store, connection).due == 0
    assert connection.run(store.stage(10)).staged == 1


def test_a_silent_session_is_seen(store: Store, connection: Connection) -> None:
    """A rescue is due."""
    open_session(store, connection, timeout=0.02)
    until(lambda: look(store, connection).silent or None)
