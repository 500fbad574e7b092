"""The thread that looks."""

import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from rota.store.connections import Connection
from rota.store.migrate import migrate
from rota.store.opening import open_store
from rota.store.protocol import Store
from rota.top.looker import Broken, Eye, Looker, Lost, News, Paused
from rota.top.snapshot import Snapshot
from tests.store.factories import claim, enqueue, open_session
from tests.top.conftest import Outage

N = TypeVar("N")

NEVER = 1000.0


class Told:
    """The news of a looker, in order."""

    def __init__(self) -> None:
        self._news: queue.SimpleQueue[News] = queue.SimpleQueue()
        self.tell = self._news.put

    def next(self, kind: type[N]) -> N:
        """The next one of that kind; others are passed over."""
        while not isinstance(snapshot := self._news.get(timeout=20), kind):
            pass
        return snapshot

    def until(self, wanted: Callable[[Snapshot], bool]) -> Snapshot:
        """The next look that is like that."""
        while not wanted(snapshot := self.next(Snapshot)):
            pass
        return snapshot


@pytest.fixture
def told() -> Told:
    """Collects what the looker reports."""
    return Told()


def test_a_look(store: Store, connection: Connection, told: Told) -> None:
    """A look has queues, lanes, workers, the horizon, and the product."""
    enqueue(store, connection, 3)
    claim(store, connection, open_session(store, connection), 1)
    looker = Looker(Eye(store), NEVER)
    looker.start(told.tell)
    seen = told.next(Snapshot)
    looker.stop()
    assert [queue.name for queue in seen.queues] == ["default"]
    assert [lane.queue for lane in seen.lanes] == ["default"]
    assert [worker.worker for worker in seen.workers] == ["alpha:4711"]
    assert seen.product.split()[0] == {"sqlite": "SQLite", "postgres": "PostgreSQL"}[store.name]
    assert (seen.horizon.log_size is None) == (store.name == "postgres")
    assert 0 < seen.took < 20


def test_it_looks_on(store: Store, connection: Connection, told: Told) -> None:
    """It looks again by itself, and sees new jobs."""
    looker = Looker(Eye(store), 0.01)
    looker.start(told.tell)
    assert told.next(Snapshot).queues == ()
    enqueue(store, connection)
    told.until(lambda snapshot: len(snapshot.queues) == 1)
    looker.stop()


def test_pausing(store: Store, connection: Connection, told: Told) -> None:
    """A request is done at once, and a look follows at once."""
    enqueue(store, connection)
    looker = Looker(Eye(store), NEVER)
    looker.start(told.tell)
    assert not told.next(Snapshot).queues[0].paused
    for paused in (True, False):
        for changed in (True, False):
            looker.pause("default", paused=paused)
            assert told.next(Paused) == Paused("default", paused, changed)
            assert told.next(Snapshot).queues[0].paused is paused
    looker.stop()
    assert not connection.run(store.queues())[0].paused


def test_an_outage(store: Store, connection: Connection, told: Told, outage: Outage) -> None:
    """A missing database is reported, is not made anew, and is found again."""
    enqueue(store, connection)
    connection.close()
    looker = Looker(Eye(store), 0.01)
    looker.start(told.tell)
    told.next(Snapshot)
    outage.begin()
    assert told.next(Lost).reason
    looker.pause("default", paused=True)
    failed = told.next(Paused)
    assert not failed.changed
    assert failed.failure
    outage.end()
    assert told.until(lambda snapshot: bool(snapshot.queues)).product
    looker.stop()


def test_another_file(told: Told, tmp_path: Path) -> None:
    """A file that replaces the database file is read instead."""
    path = tmp_path / "rota.db"
    store = open_store(f"sqlite:///{path}")
    first = store.connect()
    migrate(store, first)
    first.close()
    looker = Looker(Eye(store), 0.01)
    looker.start(told.tell)
    told.next(Snapshot)
    other = open_store(f"sqlite:///{path}.new")
    made = other.connect()
    migrate(other, made)
    enqueue(other, made)
    made.close()
    Path(f"{path}.new").replace(path)
    told.until(lambda snapshot: len(snapshot.queues) == 1)
    looker.stop()


def test_it_does_not_wait_for_one_that_hangs(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """`stop` does not wait long for a database that does not answer."""
    hangs, go_on = threading.Event(), threading.Event()

    def hang(_: News) -> None:
        hangs.set()
        go_on.wait(20)

    monkeypatch.setattr("rota.top.looker.PATIENCE", 0.05)
    looker = Looker(Eye(store), NEVER)
    looker.start(hang)
    assert hangs.wait(20)
    looker.stop()
    assert looker._thread.daemon
    assert looker._thread.is_alive()
    go_on.set()
    looker._thread.join(20)
    assert not looker._thread.is_alive()


def test_unforeseen_errors(store: Store, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect is reported, instead of freezing the screen."""
    monkeypatch.setattr("rota.top.looker.look", lambda *_: 1 / 0)
    looker = Looker(Eye(store), NEVER)
    looker.start(told.tell)
    assert isinstance(told.next(Broken).error, ZeroDivisionError)
    looker.stop()


def test_stopping_one_that_never_began(store: Store) -> None:
    """Stopping a looker that never started does not wait."""
    Looker(Eye(store), NEVER).stop()
