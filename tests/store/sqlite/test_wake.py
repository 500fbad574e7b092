"""Waking within a process: by flags, without a look at the file."""

from contextlib import closing
from pathlib import Path
from time import monotonic

import pytest

from rota.model.states import Move
from rota.store.migrate import migrate
from rota.store.sqlite import listener as listening
from rota.store.sqlite.store import SqliteStore
from rota.store.sqlite.wake import SqliteWaker
from tests.store.factories import enqueue, running, settle, settlement

LONG = 5.0


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    """A store that is up to date."""
    store = SqliteStore(tmp_path / "rota.db")
    with closing(store.connect()) as connection:
        migrate(store, connection)
    return store


def test_a_worker(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is woken by an enqueue, and by the commit of a transaction."""
    monkeypatch.setattr(SqliteWaker, "_found", lambda _: False)
    with closing(store.connect()) as connection, closing(store.waker(["default"])) as waker:
        assert not waker.wait(0.0)
        enqueue(store, connection)
        assert waker.wait(0.0)
        assert not waker.wait(0.0)
        store.transaction().commit()
        assert waker.wait(0.0)


def test_who_waits_for_a_job(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told of an end at once."""
    monkeypatch.setattr(listening, "SHORTEST", LONG)
    with closing(store.connect()) as connection, closing(store.listener()) as listener:
        session, [job] = running(store, connection)
        assert listener.listen()
        settle(store, connection, session, settlement(job, Move.COMPLETE))
        began = monotonic()
        assert listener.wait(LONG) is None
        assert monotonic() - began < LONG / 2
