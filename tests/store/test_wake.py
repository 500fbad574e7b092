"""Sleeping until there may be something to do."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rota import Limit, Unique
from rota.model.job import Keys, Order
from rota.model.states import Move
from rota.store.connections import Connection, Waker
from rota.store.protocol import Store
from tests.store.factories import enqueue, run_inside, running, settlement, spec_of

LONG = 60.0


@pytest.fixture
def waker(store: Store) -> Iterator[Waker]:
    """A waker of the queue `default`."""
    waker = store.waker(["default"])
    yield waker
    waker.close()


def woken_by(waker: Waker, act: Callable[[], object]) -> bool:
    """Whether a sleeper wakes up because of an act."""
    while waker.wait(0.0):  # what happened before does not count
        pass
    answers: list[bool] = []
    sleeper = threading.Thread(target=lambda: answers.append(bool(waker.wait(LONG))))
    sleeper.start()
    act()
    sleeper.join(LONG)
    return answers == [True]


def test_nothing_happens(waker: Waker) -> None:
    """Without an event the sleep ends with its time."""
    while waker.wait(0.0):
        pass
    assert not waker.wait(0.05)


def test_woken_by_a_job(store: Store, connection: Connection, waker: Waker) -> None:
    """A job of one's queue ends the sleep."""
    assert woken_by(waker, lambda: enqueue(store, connection))


def test_woken_by_a_successor(store: Store, connection: Connection, waker: Waker) -> None:
    """A job that is enqueued because another one has ended wakes as any other does."""
    session, [job] = running(store, connection, queue="elsewhere")
    ended = settlement(job, Move.COMPLETE, successor=Order(spec_of(), ["{}"]))
    assert woken_by(waker, lambda: connection.run(store.settle(session, [ended])))


@pytest.mark.parametrize("count", [1, 300])
@pytest.mark.parametrize("options", [{"limit": Limit(running=1)}, {"unique": Unique()}])
def test_woken_by_a_job_with_a_key(
    store: Store, connection: Connection, waker: Waker, options: dict[str, Any], count: int
) -> None:
    """As by any other, also by many."""
    keys = Keys(**{option: [f"{number}" for number in range(count)] for option in options})
    operation = store.enqueue(Order(spec_of(**options), ["{}"] * count, keys))
    assert woken_by(waker, lambda: connection.run(operation))


def test_woken_by_a_commit(store: Store, waker: Waker) -> None:
    """A job that came with a transaction ends the sleep when that is committed."""

    def act() -> None:
        transaction = store.transaction()
        run_inside(store, transaction, store.enqueue(Order(spec_of(), ["1"])))
        transaction.commit()

    assert woken_by(waker, act)


def test_woken_by_hand(waker: Waker) -> None:
    """Another thread can end the sleep, before it begins or later."""
    waker.wake()
    assert waker.wait(LONG)
    assert woken_by(waker, waker.wake)


def test_a_job_before_the_sleep(store: Store, connection: Connection, waker: Waker) -> None:
    """A job that came between a look at the queue and the sleep is not slept through."""
    while waker.wait(0.0):
        pass
    enqueue(store, connection)
    assert waker.wait(LONG)


def test_several_sleepers(store: Store, connection: Connection, waker: Waker) -> None:
    """One waker that is closed leaves the others alone."""
    other = store.waker(["default"])
    other.close()
    assert woken_by(waker, lambda: enqueue(store, connection))
