"""Patterns of queues on PostgreSQL: locks of sleepers, and what idle workers read."""

from contextlib import closing

import pytest

from rota.store.postgres import wake
from tests.fixtures.postgres import LOCKS
from tests.store.postgres.database import Database

LONG = 3600.0

ASLEEP = f"SELECT count(*) FROM {LOCKS} WHERE locktype = 'advisory' AND classid = 7682001"


def test_a_sleeper_awaits_new_queues(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Falling asleep again it awaits jobs of the queues that came since, once a second at the most."""
    monkeypatch.setattr(wake, "FRESH", LONG)
    with closing(db.store.waker(["mail-*"])) as waker:
        db.enqueue(1, queue="mail-a")
        waker.wait(0)
        assert db.sql(ASLEEP) == [(1,)]
        db.enqueue(1, queue="mail-b")
        db.enqueue(1, queue="video")
        waker.wait(0)
        assert db.sql(ASLEEP) == [(1,)], "it looked again too soon"
        monkeypatch.setattr(wake, "FRESH", 0.0)
        waker.wait(0)
        assert db.sql(ASLEEP) == [(2,)]
        waker.busy()
        assert db.sql(ASLEEP) == [(0,)]
        waker.wait(0)
        assert db.sql(ASLEEP) == [(2,)]
