"""Workers that name their queues by patterns: what they claim, what they see, what wakes them."""

from collections.abc import Iterator

import pytest

from rota.store.connections import Connection, Waker
from rota.store.protocol import Store
from tests.store.factories import enqueue, open_session
from tests.store.test_wake import woken_by


def claimed(store: Store, connection: Connection, *wanted: str, limit: int = 10) -> list[str]:
    """The queues of the jobs that a claim gives."""
    session = open_session(store, connection)
    return [job.queue for job in connection.run(store.claim(session, wanted, limit))]


def test_queue_names(store: Store, connection: Connection) -> None:
    """Each queue that ever had a job or a pause, once."""
    assert connection.run(store.queue_names()) == []
    for queue in ("mail-a", "mail-a", "default"):
        enqueue(store, connection, queue=queue)
    enqueue(store, connection, queue="later", delay=60)
    connection.run(store.pause("paused"))
    names = connection.run(store.queue_names())
    assert sorted(names) == ["default", "later", "mail-a", "paused"]


def test_claims_by_pattern(store: Store, connection: Connection) -> None:
    """A claim takes the jobs of all queues that match, and of no other."""
    for queue in ("mail-a", "mail-b", "default"):
        enqueue(store, connection, queue=queue)
    assert sorted(claimed(store, connection, "mail-*")) == ["mail-a", "mail-b"]
    assert claimed(store, connection, "*") == ["default"]


def test_queues_that_come_later(store: Store, connection: Connection) -> None:
    """A pattern also means queues that did not exist when it was used first."""
    assert claimed(store, connection, "mail-*") == []
    assert not connection.run(store.look(["mail-*"])).available
    enqueue(store, connection, queue="mail-new")
    assert not connection.run(store.look(["video-*"])).available
    assert connection.run(store.look(["video-*", "mail-*"])).available
    assert claimed(store, connection, "mail-*") == ["mail-new"]


def test_a_woken_claim_finds_them(store: Store, connection: Connection) -> None:
    """Also a claim that goes on with what the last one saw."""
    session = open_session(store, connection)
    enqueue(store, connection, queue="mail-a")
    assert connection.run(store.claim(session, ["*"], 10))
    enqueue(store, connection, queue="mail-b")
    [job] = connection.run(store.claim(session, ["*"], 10, woken=True))
    assert job.queue == "mail-b"


def test_a_paused_queue_stays_paused(store: Store, connection: Connection) -> None:
    """A pattern does not mean paused queues."""
    enqueue(store, connection, queue="mail-a")
    connection.run(store.pause("mail-a"))
    assert claimed(store, connection, "*") == []
    assert not connection.run(store.look(["*"])).available


def test_queues_take_turns(store: Store, connection: Connection) -> None:
    """Of equal priority no queue always comes first."""
    queues = ["a", "b", "c"]
    for queue in queues * 40:
        enqueue(store, connection, queue=queue)
    first = {claimed(store, connection, "*", limit=1)[0] for _ in range(40)}
    assert first == {*queues}


@pytest.fixture
def waker(store: Store) -> Iterator[Waker]:
    """A waker of all queues whose names begin with `mail-`."""
    waker = store.waker(["mail-*"])
    yield waker
    waker.close()


def test_woken_by_a_queue_that_matches(store: Store, connection: Connection, waker: Waker) -> None:
    """A job of a queue that was there when the worker fell asleep ends the sleep."""
    enqueue(store, connection, queue="mail-a")
    assert woken_by(waker, lambda: enqueue(store, connection, queue="mail-a"))
