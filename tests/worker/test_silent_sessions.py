"""A worker that finds others silent, which only could not be heard."""

import threading
from typing import Any

import pytest

from rota import Rota
from rota.model.job import SessionInfo
from tests.fixtures.workers import LONG, until, working
from tests.store.postgres.database import Database


@pytest.mark.both
def test_a_worker_that_starts_when_all_look_silent(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A living worker whose heartbeats are from before a jump of the clock keeps its jobs."""
    looked = threading.Semaphore(0)
    with Database(postgres_url) as db, Rota(postgres_url) as app:
        until(
            lambda: db.one("SELECT now() - pg_postmaster_start_time() > '3 s'"), "the server's age"
        )
        db.enqueue(1)
        info = SessionInfo(host="alpha", pid=4711, queues=("default",), timeout=2.0)
        session = db.own.run(db.store.open_session(info))
        assert db.claim(session)
        db.sql("UPDATE rota.heartbeat SET at = at - interval '1 hour'")
        real = app.database.store.look

        def look(*args: Any, **options: Any) -> Any:
            looked.release()
            return real(*args, **options)

        monkeypatch.setattr(app.database.store, "look", look)
        app.task(name="other")(lambda: None)
        with working(app, session_timeout=2.0, queues=("other",)):
            for _ in range(2):  # the second one begins when the first has had its consequences
                assert looked.acquire(timeout=LONG)
            assert db.own.run(db.store.renew(session)).alive
            # And where it does not renew, it is dead.
            db.sql("UPDATE rota.session SET timeout = '1 ms' WHERE id = %s", session)
            until(lambda: not db.sql("SELECT FROM rota.session WHERE id = %s", session), "its end")
