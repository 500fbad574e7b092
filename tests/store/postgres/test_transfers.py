"""Transfers beside workers: what moves between a mover's statements stays, or leaves as it was."""

from collections.abc import Callable

import pytest

from rota.model.states import State
from rota.model.transfer import Transfer
from rota.store.connections import Connection
from rota.store.operation import Operation, Stepped, Steps
from rota.store.protocol import Store
from tests.store.factories import claim, enqueue, in_state, open_session, states

TRANSFER = Transfer("token", "acme", "eu", "us")
UNLOCKED = range(4)
"""Before which of a mover's statements a claim need not wait for it."""


@pytest.fixture
def store_url(postgres_url: str) -> str:
    """On PostgreSQL alone: on SQLite a mover is alone while it writes."""
    return postgres_url


def beside(
    operation: Operation[object], number: int, act: Callable[[], object]
) -> Operation[object]:
    """The same operation, with an act of another connection before its statement of this number."""

    def steps() -> Steps[object]:
        inner, asked = operation.steps, 0
        request = next(inner)
        while True:
            if asked == number:
                act()
            asked += 1
            given = yield request
            try:
                request = inner.send(given)
            except StopIteration as end:
                return end.value

    return Stepped(operation.name, steps(), operation.begin, operation.then)


def afterwards(operation: Operation[object], act: Callable[[], object]) -> Operation[object]:
    """The same operation, with an act between its statements and the end of its transaction."""

    def steps() -> Steps[object]:
        yield from operation.steps
        return act()

    return Stepped(operation.name, steps(), operation.begin, operation.then)


@pytest.mark.parametrize("number", UNLOCKED)
def test_a_job_that_is_claimed_meanwhile(
    store: Store, connection: Connection, other: Connection, number: int
) -> None:
    """It stays with its worker, and there is no transfer."""
    session = open_session(store, connection)
    jobs = enqueue(store, connection, 2)
    taking = store.transfers.take(jobs, TRANSFER, bool)
    acting = beside(taking, number, lambda: claim(store, other, session))
    assert connection.run(acting) is None
    assert states(store, connection, jobs) == [State.RUNNING] * 2


@pytest.mark.parametrize("number", range(2))
def test_a_job_that_is_staged_meanwhile(
    store: Store, connection: Connection, other: Connection, number: int
) -> None:
    """It is taken out of the log instead of the timer, and is in one place."""
    job = in_state(store, connection, State.SCHEDULED).id
    taking = store.transfers.take([job], TRANSFER, bool)
    taken = connection.run(beside(taking, number, lambda: other.run(store.stage(10))))
    assert taken is not None
    assert connection.run(store.get([job])) == []
    other.run(store.stage(10))
    assert claim(store, connection, open_session(store, connection)) == []


def test_a_job_that_is_being_staged(
    store: Store, connection: Connection, other: Connection
) -> None:
    """A mover waits for no staging: the job stays, and the next one takes it."""
    job = in_state(store, connection, State.SCHEDULED).id
    taking = store.transfers.take([job], TRANSFER, bool)

    def left_alone() -> object:
        return connection.run(taking)

    assert other.run(afterwards(store.stage(10), left_alone)) is None
    assert connection.run(store.transfers.take([job], TRANSFER, bool)) is not None
