"""Relays on SQLite: one at a time by their leases, and others write while jobs are handed over."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from rota.model.job import ClaimedJob, JobId, LeaseId
from rota.model.settlement import Settlement, completed
from rota.store.connections import Connection
from rota.store.relaying import Relaying
from rota.store.sqlite.store import SqliteStore
from tests.store.factories import enqueue, open_session, rescued

RELAYING = Relaying("default", "shop.send", 2, 5.0)


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    """The URL of an empty file."""
    return f"sqlite:///{tmp_path}/rota.db"


class Taken:
    """Hands jobs over into a list; calls `then` with the jobs in hand."""

    def __init__(self, then: Callable[[], object] = lambda: None) -> None:
        self.jobs: list[JobId] = []
        self._then = then

    def prepare(self) -> None:
        """Nothing to prepare."""

    def __call__(self, jobs: Sequence[ClaimedJob]) -> list[Settlement]:
        """Take them."""
        self.jobs += [job.id for job in jobs]
        self._then()
        return [completed(job, 0.0) for job in jobs]


def test_others_write_meanwhile(
    store: SqliteStore, connection: Connection, other: Connection
) -> None:
    """While a relay has jobs in its hands producers enqueue, and another relay gets none."""
    jobs = enqueue(store, connection, 3)
    session, second = open_session(store, connection), Taken()
    successor = open_session(store, connection)

    def meanwhile() -> None:
        enqueue(store, other)
        assert other.run(store.hand_over(successor, RELAYING, second)) == 0

    first = Taken(meanwhile)
    assert connection.run(store.hand_over(session, RELAYING, first)) == 2
    assert first.jobs == jobs[:2]
    assert other.run(store.hand_over(successor, RELAYING, second)) == 2
    assert second.jobs[0] == jobs[2]


def test_a_dead_relay_is_followed_in_order(store: SqliteStore, connection: Connection) -> None:
    """The jobs of a relay that died come before all others, once its session is rescued."""
    jobs = enqueue(store, connection, 3)
    dead, hand = open_session(store, connection, timeout=0.2), Taken()
    assert len(connection.run(store.claim(dead, ["default"], 2))) == 2
    alive = open_session(store, connection)
    assert connection.run(store.hand_over(alive, RELAYING, hand)) == 0
    rescued(store, connection, dead)
    assert [connection.run(store.hand_over(alive, RELAYING, hand)) for _ in range(2)] == [
        2,
        1,
    ]
    assert hand.jobs == jobs


def test_what_a_relay_could_not_give_back(store: SqliteStore, connection: Connection) -> None:
    """Jobs that its own session still holds from before are handed over first."""
    jobs = enqueue(store, connection, 3)
    session, hand = open_session(store, connection), Taken()
    taken = connection.run(store.claim(session, ["default"], 1))
    assert taken[0].lease != LeaseId(0)
    assert connection.run(store.hand_over(session, RELAYING, hand)) == 2
    assert hand.jobs == jobs[:2]
