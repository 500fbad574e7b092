"""What a worker says of itself: to systemd, and to those who ask by HTTP."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import psycopg
import pytest

from rota import Rota, WorkerConfig
from rota.service.endpoint import Address, Endpoint
from rota.service.notify import Notifier
from rota.service.systemd import Systemd
from rota.worker import Worker, health
from rota.worker.claim import LONGER, Claimer
from rota.worker.health import Phase
from tests.cli.calling import make_tables
from tests.fixtures.postgres import LOCKS
from tests.fixtures.proxy import Proxy
from tests.fixtures.workers import LONG, parts_of, until, working
from tests.service.managers import Manager, listening

WATCHDOG = 0.1
"""Seconds within which the manager of these tests wants a sign of life."""


@contextmanager
def watched(app: Rota, worker: Worker, folder: Path) -> Iterator[Manager]:
    """A manager that a worker tells how it is."""
    with (
        listening(folder) as manager,
        Systemd(Notifier(manager.name, WATCHDOG), worker.health, app.events),
    ):
        yield manager


def status(address: Address, path: str) -> int:
    """The status of an answer."""
    connection = HTTPConnection(*address, timeout=LONG)
    connection.request("GET", path)
    response = connection.getresponse()
    assert json.loads(response.read())
    connection.close()
    return response.status


def test_a_worker_from_its_beginning_to_its_end(app: Rota) -> None:
    """It is starting, claims under its session, stops, and has ended."""
    app.task(name="job")(lambda: None)
    assert Worker(app, WorkerConfig()).health().phase is Phase.STARTING
    with working(app) as worker:
        until(lambda: worker.health().ready, "the worker to claim")
        assert worker.health().sound
        assert worker.health().session is not None
    assert worker.health().phase is Phase.ENDED
    assert not worker.health().ready


def test_what_systemd_is_told(app: Rota, tmp_path: Path) -> None:
    """It hears of the beginning once, of life again and again, and of a stop before jobs end."""
    go = threading.Event()

    @app.task(name="job")
    def job() -> None:
        assert go.wait(LONG)

    worker = Worker(app, WorkerConfig())
    thread = threading.Thread(target=worker.run)
    try:
        with watched(app, worker, tmp_path) as manager:
            lines = manager.until("STATUS=starting")
            thread.start()
            lines += manager.until("READY=1")
            session = worker.health().session
            assert session is not None
            job.enqueue()
            lines += manager.until(f"STATUS=claiming, session {session}; 1 job(s) running")
            lines += manager.heard() + manager.heard()
            assert lines.count("READY=1") == 1
            assert lines[-2:] == ["WATCHDOG=1"] * 2
            worker.stop()
            lines = manager.until("STOPPING=1")
            assert worker.health().running == 1
            lines += manager.until("WATCHDOG=1")
            assert "STATUS=stopping; 1 job(s) running" in lines
            assert "READY=1" not in lines
    finally:
        worker.stop()
        go.set()
        if thread.ident is not None:
            thread.join(LONG)


def test_a_handler_that_blocks_the_loop(app: Rota, tmp_path: Path) -> None:
    """It keeps back no sign of life and no answer."""
    began, go = threading.Event(), threading.Event()

    @app.task(name="blocking")
    async def blocking() -> None:
        began.set()
        assert go.wait(LONG)

    with (
        working(app) as worker,
        watched(app, worker, tmp_path) as manager,
        Endpoint(Address("127.0.0.1", 0), worker.health) as endpoint,
    ):
        blocking.enqueue()
        assert began.wait(LONG)
        assert status(endpoint.address, "/live") == 200
        assert status(endpoint.address, "/ready") == 200
        manager.forget()
        manager.until("WATCHDOG=1")
        go.set()


STEPS = {"claimer": "_want", "settler": "_gather", "session": "_renew", "upkeep": "_squeeze"}
"""What each thread calls in its steps."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("part", STEPS)
def test_a_thread_that_has_ended(
    app: Rota, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """No sign of life, and neither live nor ready, also while a handler blocks the loop."""
    began, go = threading.Event(), threading.Event()

    @app.task(name="blocking")
    async def blocking() -> None:
        began.set()
        assert go.wait(LONG)

    with (
        working(app, poll=0.02, session_timeout=1.0) as worker,
        watched(app, worker, tmp_path) as manager,
        Endpoint(Address("127.0.0.1", 0), worker.health) as endpoint,
    ):
        blocking.enqueue()
        assert began.wait(LONG)
        parts = parts_of(worker)
        thread = getattr(parts, f"_{part}").thread
        # What only a defect does: no exception of Rota's own ends a thread.
        monkeypatch.setattr(type(getattr(parts, f"_{part}")), STEPS[part], _end)
        # The settler sleeps until there is something to write.
        parts._settler._news.set()
        thread.join(LONG)
        assert worker.health().ended == (part,)
        assert status(endpoint.address, "/live") == 503
        assert status(endpoint.address, "/ready") == 503
        manager.until(f"STATUS=the thread {part!r} has ended; 1 job(s) running")
        assert manager.without("WATCHDOG=1", 5 * WATCHDOG)
        go.set()


def _end(*_: object) -> None:
    raise SystemExit


def test_a_database_that_is_away(postgres_url: str, tmp_path: Path) -> None:
    """It is no reason to end the process: live, not ready, and there are signs of life."""
    make_tables(postgres_url)
    with Proxy(postgres_url) as proxy, Rota(proxy.url) as app:
        app.task(name="job")(lambda: None)
        with (
            working(app, session_timeout=1.0, poll=0.05) as worker,
            watched(app, worker, tmp_path) as manager,
        ):
            until(lambda: worker.health().ready, "the worker to claim")
            proxy.refuses = True
            proxy.cut()
            until(lambda: worker.health().session is None, "the session to be lost")
            manager.until(f"STATUS={worker.health().words}")
            manager.until("WATCHDOG=1")
            assert worker.health().live
            assert not worker.health().ready
            assert "it holds no session: StoreUnavailable, see the log" in worker.health().why
            # Neither where it is, nor how one gets in.
            assert "127.0.0.1" not in worker.health().words
            proxy.refuses = False
            until(lambda: worker.health().ready, "the worker to claim again")
            manager.until(f"STATUS={worker.health().words}")


def test_a_claim_that_waits(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker whose claim waits for a lock is unready after a while; a new one would wait too."""
    make_tables(postgres_url)
    monkeypatch.setattr(health, "STUCK", 0.1)
    monkeypatch.setattr(health, "LONGER", 1)
    waiting = f"SELECT count(*) FROM {LOCKS} WHERE relation = 'rota.lane'::regclass AND NOT granted"
    with Rota(postgres_url) as app, psycopg.connect(postgres_url) as holder:
        app.task(name="job")(lambda: None)
        with working(app, session_timeout=1.0, poll=0.05, upkeep=False) as worker:
            until(lambda: worker.health().ready, "the worker to claim")
            holder.execute("LOCK TABLE rota.lane IN ACCESS EXCLUSIVE MODE")
            until(lambda: holder.execute(waiting).fetchone() == (1,))
            until(lambda: not worker.health().ready, "the wait to be noticed")
            assert worker.health().stuck == ("claimer",)
            assert worker.health().live
            assert worker.health().sound
            holder.rollback()
            until(lambda: worker.health().ready, "the worker to claim again")


def test_a_session_that_is_no_longer_tried_for(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the session's thread hangs, the signs of life end: a new process would not hang."""
    make_tables(postgres_url)
    monkeypatch.setattr(health, "STUCK", 0.3)
    monkeypatch.setattr("rota.worker.loop.LONGEST_PAUSE", 0.1)
    monkeypatch.setattr(health, "LONGER", 1)
    go = threading.Event()
    with Proxy(postgres_url) as proxy, Rota(proxy.url) as app:
        app.task(name="job")(lambda: None)
        with (
            working(app, session_timeout=1.0, poll=0.05) as worker,
            watched(app, worker, tmp_path) as manager,
        ):
            until(lambda: worker.health().ready, "the worker to claim")
            monkeypatch.setattr("rota.worker.session.Session._register", lambda _: go.wait(LONG))
            proxy.refuses = True
            proxy.cut()
            until(lambda: not worker.health().sound, "the signs to end")
            assert worker.health().live
            manager.until(f"STATUS={worker.health().words}")
            assert manager.without("WATCHDOG=1", 5 * WATCHDOG)
            go.set()


def test_a_session_beyond_its_time(app: Rota) -> None:
    """Whatever its thread does: a worker whose jobs others may take no longer says it holds it."""
    app.task(name="job")(lambda: None)
    with working(app) as worker:
        until(lambda: worker.health().ready, "the worker to claim")
        session = parts_of(worker)._session
        session._deadline.set(time.monotonic())
        assert session.current is not None
        assert worker.health().session is None
        assert not worker.health().sound


def test_a_step_of_the_claimers_is_short(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle worker is not taken for one that hangs."""
    naps: list[float] = []
    sleep = Claimer._sleep

    def nap(claimer: Claimer, seconds: float) -> bool:
        naps.append(seconds)
        return sleep(claimer, min(seconds, 0.001))

    monkeypatch.setattr(Claimer, "_sleep", nap)
    app.task(name="job")(lambda: None)
    with working(app, poll=0.01):
        until(lambda: len(naps) > 30)
    assert max(naps) <= LONGER * 0.01 + health.STUCK
