"""Handing jobs over in one transaction: in order, and where it comes to nothing, none has moved."""

from collections.abc import Callable, Sequence

import pytest

from rota.errors import LeaseLost
from rota.model.job import ClaimedJob, JobId, SessionId
from rota.model.settlement import Settlement, completed, passed_on
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from rota.store.relaying import Relaying
from tests.store.factories import (
    claim,
    enqueue,
    open_session,
    record,
    settle,
    settlement,
    states,
)

RELAYING = Relaying("default", "shop.send", 100, 5.0)


class Taken:
    """Hands jobs over into a list; `before` is called first, and may raise."""

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        self.jobs: list[JobId] = []
        self._before = before

    def prepare(self) -> None:
        """Nothing to prepare."""

    def __call__(self, jobs: Sequence[ClaimedJob]) -> list[Settlement]:
        """Take them."""
        self._before()
        self.jobs += [job.id for job in jobs]
        return [
            completed(job, 0.0) if job.task == RELAYING.task else passed_on(job) for job in jobs
        ]


def hand_over(
    store: Store, connection: Connection, session: SessionId, hand: Taken, limit: int = 100
) -> int:
    """Hand the next jobs over; how many."""
    return connection.run(store.hand_over(session, RELAYING._replace(limit=limit), hand))


def fails() -> None:
    """Stand for a target that is away."""
    raise ConnectionError


def test_jobs_are_handed_over_in_their_order(store: Store, connection: Connection) -> None:
    """As many as are wanted, in the order of enqueue; afterwards they are gone."""
    jobs = enqueue(store, connection, 5)
    session, hand = open_session(store, connection), Taken()
    assert [hand_over(store, connection, session, hand, 3) for _ in range(3)] == [3, 2, 0]
    assert hand.jobs == jobs
    assert connection.run(store.get(jobs)) == []
    [queue] = connection.run(store.queues())
    assert not any(count for state, count in queue.counts.items() if not state.finished)


def test_what_came_to_nothing_has_not_moved(store: Store, connection: Connection) -> None:
    """Jobs that could not be handed over are available as before, and come before all later ones."""
    first = enqueue(store, connection, 3)
    session, hand = open_session(store, connection), Taken()
    with pytest.raises(ConnectionError):
        hand_over(store, connection, session, Taken(fails))
    assert {record(store, connection, job).attempt for job in first} == {0}
    assert states(store, connection, first) == [State.AVAILABLE] * 3
    later = enqueue(store, connection, 3)
    assert hand_over(store, connection, session, hand) == 6
    assert hand.jobs == first + later


def test_a_session_that_is_over_hands_nothing_over(store: Store, connection: Connection) -> None:
    """A worker that was declared dead is told so, before anything is handed over."""
    enqueue(store, connection)
    session, hand = open_session(store, connection), Taken()
    connection.run(store.close_session(session))
    with pytest.raises(LeaseLost):
        hand_over(store, connection, session, hand)
    assert hand.jobs == []


def test_a_paused_queue_hands_nothing_over(store: Store, connection: Connection) -> None:
    """While a queue is paused its jobs stay, and come when it is resumed."""
    enqueue(store, connection)
    session, hand = open_session(store, connection), Taken()
    connection.run(store.pause("default"))
    assert hand_over(store, connection, session, hand) == 0
    connection.run(store.resume("default"))
    assert hand_over(store, connection, session, hand) == 1


def test_jobs_of_other_tasks_are_passed_on(store: Store, connection: Connection) -> None:
    """A job of another task in the queue is available afterwards, for workers that know it."""
    [mine] = enqueue(store, connection)
    [other] = enqueue(store, connection, task="shop.other")
    session, hand = open_session(store, connection), Taken()
    assert hand_over(store, connection, session, hand) == 2
    assert hand_over(store, connection, session, hand) == 0
    assert hand.jobs == [mine, other]
    assert record(store, connection, other).state is State.AVAILABLE
    got = connection.run(store.claim(session, ["default"], 9, tasks=["shop.other"]))
    assert [job.id for job in got] == [other]


def test_jobs_that_a_stranger_has_passed_on(store: Store, connection: Connection) -> None:
    """A job that a worker took which does not know the relay is not lost: it is handed over later."""
    jobs = enqueue(store, connection, 2)
    session, hand = open_session(store, connection), Taken()
    taken = claim(store, connection, session)
    unknown = [settlement(job, Move.RELEASE, unknown=True) for job in taken]
    assert settle(store, connection, session, *unknown) == []
    assert hand_over(store, connection, session, hand) == 2
    assert hand.jobs == jobs
