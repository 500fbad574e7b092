"""Waking within a process by flags, without a look at the file; from outside by writes to it."""

import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import monotonic

import pytest

from rota.model.job import Order
from rota.model.states import Move
from rota.store.migrate import migrate
from rota.store.sqlite import pauses
from rota.store.sqlite.alarm import SHORT, Alarm, Sound
from rota.store.sqlite.flags import WAITERS, WORKERS
from rota.store.sqlite.gate import SUFFIX
from rota.store.sqlite.store import SqliteStore
from rota.store.sqlite.wake import SqliteWaker
from tests.store.factories import claim, enqueue, running, settle, settlement, spec_of

LONG = 5.0


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    """A store that is up to date."""
    store = SqliteStore(tmp_path / "rota.db")
    with closing(store.connect()) as connection:
        migrate(store, connection)
    return store


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads know each other no better than processes do, and look only if they hear something."""
    for flags in (WORKERS, WAITERS):
        monkeypatch.setattr(flags, "wake", lambda _: None)
    for pause in ("SHORTEST", "LONGEST"):
        monkeypatch.setattr(pauses, pause, LONG)


def ended_by(sleep: Callable[[], object], act: Callable[[], object]) -> object:
    """What a sleep gives that an act ends, which comes soon after it has begun."""
    given: list[object] = []
    sleeper = threading.Thread(target=lambda: given.append(sleep()), daemon=True)
    sleeper.start()
    act()
    sleeper.join(LONG / 2)
    [answer] = given
    return answer


def test_a_worker(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is woken by an enqueue, and by the commit of a transaction."""
    monkeypatch.setattr(SqliteWaker, "_found", lambda *_: False)
    with closing(store.connect()) as connection, closing(store.waker(["default"])) as waker:
        assert not waker.wait(0.0)
        enqueue(store, connection)
        assert waker.wait(0.0)
        assert not waker.wait(0.0)
        store.transaction().commit()
        assert waker.wait(0.0)


def test_a_worker_of_a_successor(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is woken by the end of a job that is followed by another one, and by no other end."""
    monkeypatch.setattr(SqliteWaker, "_found", lambda *_: False)
    with closing(store.connect()) as connection, closing(store.waker(["default"])) as waker:
        session, [first, last] = running(store, connection, 2)
        waker.wait(0.0)
        settle(store, connection, session, settlement(first, Move.COMPLETE))
        assert not waker.wait(0.0)
        successor = Order(spec_of(), ["{}"])
        settle(store, connection, session, settlement(last, Move.COMPLETE, successor=successor))
        assert waker.wait(0.0)


def test_who_waits_for_a_job(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told of an end at once."""
    monkeypatch.setattr(pauses, "SHORTEST", LONG)
    monkeypatch.setattr(Alarm, "_listening", lambda _: None)
    with closing(store.connect()) as connection, closing(store.listener()) as listener:
        session, [job] = running(store, connection)
        assert listener.listen()
        settle(store, connection, session, settlement(job, Move.COMPLETE))
        began = monotonic()
        assert listener.wait(LONG) is None
        assert monotonic() - began < LONG / 2


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
@pytest.mark.usefixtures("apart")
def test_a_worker_hears_another_process(store: SqliteStore) -> None:
    """It claims at once what is committed there."""
    with closing(store.connect()) as connection, closing(store.waker(["default"])) as waker:
        for _ in range(2):  # after the first look it listens
            assert not waker.wait(0.01)
        assert ended_by(lambda: waker.wait(LONG), lambda: enqueue(store, connection))


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
@pytest.mark.usefixtures("apart")
def test_a_caller_hears_another_process(store: SqliteStore) -> None:
    """It looks at its job at once when something is committed there."""
    with closing(store.connect()) as connection, closing(store.listener()) as listener:
        session, [job] = running(store, connection)
        assert listener.listen()
        assert listener.wait(0.01) == ()
        settled = settlement(job, Move.COMPLETE)
        heard = ended_by(
            lambda: listener.wait(LONG), lambda: settle(store, connection, session, settled)
        )
        assert heard is None


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
def test_a_commit_rings(store: SqliteStore) -> None:
    """Enqueues, settlements and ended transactions ring once done; a claim concerns nobody else."""
    alarm = Alarm(f"{store.path}-wal", f"{store.path}{SUFFIX}")
    with closing(store.connect()) as connection, closing(alarm):
        session, [job] = running(store, connection)
        assert alarm.sleep(SHORT) is Sound.NONE
        enqueue(store, connection)
        assert alarm.sleep(LONG) is Sound.BELL
        claim(store, connection, session)
        assert alarm.sleep(LONG) is Sound.WRITE
        settle(store, connection, session, settlement(job, Move.COMPLETE))
        assert alarm.sleep(LONG) is Sound.BELL
        store.transaction().commit()
        assert alarm.sleep(LONG) is Sound.BELL
