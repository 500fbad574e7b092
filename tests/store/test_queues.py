"""Queues: their counts, and pausing them."""

from rota.model.job import QueueRecord
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import enqueue, one_of_each, running, settle, settlement


def counted(store: Store, connection: Connection) -> dict[str, dict[State, int]]:
    """The counts of all queues, without zeros."""
    return {
        queue.name: {state: count for state, count in queue.counts.items() if count}
        for queue in connection.run(store.queues())
    }


def test_no_queues(store: Store, connection: Connection) -> None:
    """A new database has no queues."""
    assert connection.run(store.queues()) == []


def test_counts_per_state(store: Store, connection: Connection) -> None:
    """Each job is counted once, in its queue and its state."""
    one_of_each(store, connection)
    enqueue(store, connection, 4)
    enqueue(store, connection, 3, queue="mail")
    enqueue(store, connection, 2, queue="mail", delay=60.0)
    enqueue(store, connection, 1, queue="mail", priority=5)
    assert counted(store, connection) == {
        "default": {
            State.SCHEDULED: 1,
            State.AVAILABLE: 5,
            State.RUNNING: 1,
            State.RETRYABLE: 1,
            State.COMPLETED: 1,
            State.DISCARDED: 1,
            State.CANCELLED: 1,
        },
        "mail": {State.AVAILABLE: 4, State.SCHEDULED: 2},
    }


def test_counts_follow_the_jobs(store: Store, connection: Connection) -> None:
    """What happens to a job moves it from one count to another."""
    session, jobs = running(store, connection, 4)
    assert counted(store, connection) == {"default": {State.RUNNING: 4}}
    settle(
        store,
        connection,
        session,
        settlement(jobs[0], Move.COMPLETE),
        settlement(jobs[1], Move.COMPLETE, keep=0.0),
        settlement(jobs[2], Move.RELEASE),
        settlement(jobs[3], Move.RETRY),
    )
    assert counted(store, connection) == {
        "default": {State.COMPLETED: 1, State.AVAILABLE: 1, State.RETRYABLE: 1}
    }
    connection.run(store.cancel([jobs[2].id]))
    connection.run(store.stage(10))
    connection.run(store.delete([jobs[0].id]))
    assert counted(store, connection) == {"default": {State.CANCELLED: 1, State.AVAILABLE: 1}}


def test_a_queue_outlives_its_jobs(store: Store, connection: Connection) -> None:
    """A queue that had a job once stays listed, in the order of names."""
    jobs = enqueue(store, connection, queue="b")
    jobs += enqueue(store, connection, queue="c")
    connection.run(store.pause("a"))
    connection.run(store.delete(jobs))
    found = connection.run(store.queues())
    assert [(queue.name, queue.paused) for queue in found] == [
        ("a", True),
        ("b", False),
        ("c", False),
    ]
    assert not any(any(queue.counts.values()) for queue in found)


def test_pause_and_resume(store: Store, connection: Connection, other: Connection) -> None:
    """Each call says whether it changed something, and all connections see it."""
    enqueue(store, connection)
    assert connection.run(store.pause("default")) is True
    assert connection.run(store.pause("default")) is False
    [found] = other.run(store.queues())
    assert isinstance(found, QueueRecord)
    assert (found.name, found.paused) == ("default", True)
    assert other.run(store.resume("default")) is True
    assert other.run(store.resume("default")) is False
    [found] = connection.run(store.queues())
    assert not found.paused


def test_a_queue_nobody_knows(store: Store, connection: Connection) -> None:
    """Pausing creates a queue, resuming does not."""
    assert connection.run(store.resume("new")) is False
    assert connection.run(store.queues()) == []
    assert connection.run(store.pause("new")) is True
    assert [queue.name for queue in connection.run(store.queues())] == ["new"]


def test_pausing_a_queue_leaves_its_running_jobs(store: Store, connection: Connection) -> None:
    """A pause stops claims only; jobs can be stored and settled."""
    session, [job] = running(store, connection)
    connection.run(store.pause("default"))
    enqueue(store, connection)
    assert settle(store, connection, session, settlement(job, Move.COMPLETE)) == []
    assert counted(store, connection) == {"default": {State.AVAILABLE: 1, State.COMPLETED: 1}}
