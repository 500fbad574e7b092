"""Of several idle workers one is woken for a job; when it has work in plenty or stops, another one is.

In these tests a worker finds nothing by looking: only a word wakes it.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from typing import Any

import psycopg
import pytest

from rota import Rota, State, Task, WorkerConfig
from rota.app.bulk_job import NAME as BULK
from rota.model.job import SessionInfo
from rota.store.migrate import migrate
from rota.store.postgres.wake import group
from rota.worker import claim
from rota.worker.leases import Leases
from rota.worker.peers import Peers
from rota.worker.session import Session
from rota.worker.switchboard import Switchboard
from tests.fixtures.postgres import LOCKS
from tests.fixtures.workers import LONG, let_them_sleep, records, until, working
from tests.store.factories import claim as claim_jobs
from tests.store.factories import open_session, rescued

TASK = Task[..., Any, Any]

WORKERS = 3


@pytest.fixture
def app(postgres_url: str) -> Iterator[Rota]:
    """An app on PostgreSQL."""
    with Rota(postgres_url) as app, closing(app.database.store.connect()) as connection:
        migrate(app.database.store, connection)
        yield app


@pytest.fixture
def go() -> Iterator[threading.Event]:
    """Set at the end of the test at the latest, so that no handler waits for ever."""
    go = threading.Event()
    yield go
    go.set()


@pytest.fixture
def ran() -> list[int]:
    """The threads of the workers that ran a job."""
    return []


@pytest.fixture
def quick(app: Rota, ran: list[int]) -> TASK:
    """A task that notes its worker."""

    @app.task(name="quick")
    async def quick() -> None:
        ran.append(threading.get_ident())

    return quick


@pytest.fixture
def patient(app: Rota, ran: list[int], go: threading.Event) -> TASK:
    """A task that notes its worker, and waits until it is let go."""

    @app.task(name="patient")
    async def patient() -> None:
        ran.append(threading.get_ident())
        await asyncio.to_thread(go.wait)

    return patient


@pytest.fixture
def crew(
    app: Rota, go: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., AbstractContextManager[None]]:
    """Starts workers that look for jobs only when something wakes them, and lets them fall asleep."""
    asleep: set[int] = set()
    let_them_sleep(monkeypatch, lambda: asleep.add(threading.get_ident()))
    monkeypatch.setattr(claim, "LONGER", 10 * LONG / 0.3)

    @contextmanager
    def crew(count: int = WORKERS, **config: Any) -> Iterator[None]:
        settings = {"poll": 10 * LONG, "session_timeout": 2.0, **config}
        with ExitStack() as stack:
            for _ in range(count):
                others = len(asleep)
                stack.enter_context(working(app, **settings))
                until(lambda others=others: len(asleep) > others, "the worker to sleep")  # type: ignore[misc]
            try:
                yield
            finally:
                go.set()

    return crew


def test_one_job_wakes_one_worker(
    app: Rota, crew: Any, quick: TASK, ran: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same one as long as it copes."""
    monkeypatch.setattr(Peers, "stands_by", lambda *_: False)
    with crew(upkeep=False):
        for number in range(12):
            quick.enqueue()
            until(lambda number=number: len(ran) > number)  # type: ignore[misc]
    assert len({*ran}) == 1
    assert len(records(app, State.COMPLETED)) == 12


def test_a_full_worker_hands_on(crew: Any, patient: TASK, ran: list[int]) -> None:
    """One that has as much as it can run wakes the next one, at once."""
    with crew(concurrency=1):
        for number in range(WORKERS):
            patient.enqueue()
            until(lambda number=number: len(ran) > number)  # type: ignore[misc]
        assert len({*ran}) == WORKERS


def test_a_burst_wakes_as_many_as_it_needs(
    crew: Any, patient: TASK, ran: list[int], go: threading.Event
) -> None:
    """All workers have come within a moment, and no notification but one was sent by the producer."""
    with crew(concurrency=2):
        patient.enqueue_many([()] * (2 * WORKERS))
        until(lambda: len(ran) == 2 * WORKERS)
        assert len({*ran}) == WORKERS
        go.set()


def test_a_worker_that_stops_hands_on(crew: Any, quick: TASK, ran: list[int]) -> None:
    """The one with the watch ends in order; the next job wakes another one."""
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(crew(1))
        quick.enqueue()
        until(lambda: ran)
        second.enter_context(crew(1))
        first.close()
        quick.enqueue()
        until(lambda: len(ran) == 2)
    assert len({*ran}) == 2


def test_a_worker_with_suspects_hands_on(
    app: Rota,
    crew: Any,
    *,
    quick: TASK,
    patient: TASK,
    ran: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that runs a suspect, and claims nothing until that has ended, does not keep the watch."""
    monkeypatch.setattr(Peers, "stands_by", lambda *_: False)
    store = app.database.store
    with ExitStack() as first, ExitStack() as second, closing(store.connect()) as connection:
        first.enter_context(crew(1, upkeep=False))
        patient.using(wake=False).enqueue()
        quick.using(wake=False).enqueue()
        session = open_session(store, connection, timeout=0.02)
        assert len(claim_jobs(store, connection, session)) == 2
        rescued(store, connection, session)
        until(lambda: ran)
        second.enter_context(crew(1, upkeep=False))
        quick.enqueue()
        until(lambda: len({*ran}) == 2)


@pytest.mark.usefixtures("quick")
def test_a_watch_that_ended_without_a_word(app: Rota, crew: Any) -> None:
    """Whoever looks after the database next notices it."""
    mine = group(("default",), ("quick", BULK))
    with psycopg.connect(app.url, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(7682006, %s::int4)", [mine])
        with crew(1, poll=0.3):
            other.execute("SELECT pg_advisory_unlock_all()")
            until(lambda: not free(other, mine), "the worker to take the watch")


def free(conn: psycopg.Connection[Any], watch: int) -> bool:
    """Whether no worker has the watch."""
    held = f"SELECT FROM {LOCKS} WHERE locktype = 'advisory' AND classid = 7682006 AND granted"
    return not conn.execute(f"{held} AND objid = %s::int8 & 4294967295", [watch]).fetchall()


def test_others_have_gone(
    app: Rota, crew: Any, quick: TASK, ran: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that left the looks to others takes them on."""
    store = app.database.store
    monkeypatch.setattr(Peers, "until_turn", lambda *_: 10 * LONG)
    other = SessionInfo("elsewhere", 1, ("default",), 10 * LONG, ("quick", BULK))
    others = [app.database.run(store.open_session(other)) for _ in range(3)]
    with crew(1, poll=0.3):
        for session in others:
            app.database.run(store.close_session(session))
        quick.using(wake=False).enqueue()
        until(lambda: ran)


def test_others_have_fallen_silent(
    app: Rota, crew: Any, quick: TASK, ran: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed, frozen or cut off in silence: the worker takes on their looks long before rescue."""
    store = app.database.store
    monkeypatch.setattr(Peers, "until_turn", lambda *_: 10 * LONG)
    other = SessionInfo("elsewhere", 1, ("default",), 1000.0, ("quick", BULK))
    others = [app.database.run(store.open_session(other)) for _ in range(3)]
    rescued = "SELECT FROM rota.session WHERE id = ANY (%s)"
    with crew(1, poll=0.3), psycopg.connect(app.url, autocommit=True) as conn:
        delayed = quick.using(delay=0.5).enqueue()
        app.cron.add("quickly", "* * * * * *", quick)
        conn.execute(
            "UPDATE rota.heartbeat SET at = at - interval '700 s' WHERE session = ANY (%s)",
            [others],
        )
        until(lambda: delayed.status is State.COMPLETED, "the job of the timer")
        until(lambda: len(ran) >= 2, "the job of the entry")
        app.cron.remove("quickly")
        assert len(conn.execute(rescued, [others]).fetchall()) == 3


@pytest.mark.parametrize("others", [0, 2])
def test_a_worker_that_looks_rarely_hears_all_the_same(app: Rota, others: int) -> None:
    """Its own heartbeats show that the way to the database is open and the clock in order.

    Fewer heartbeats, as one of many workers sends them, suffice too.
    """
    config = WorkerConfig(queues=("default",), session_timeout=2.0)
    for _ in range(others):
        info = SessionInfo("elsewhere", 1, ("default",), 1000.0, ())
        app.database.run(app.database.store.open_session(info))
    board = Switchboard()
    board.learn, board.refuse = lambda _: None, lambda _: None
    session = Session(app.database.store, config, app.events, board, leases=Leases())
    session.open()
    try:
        until(lambda: session.peers.rhythm.steady, "the heartbeats to come regularly")
    finally:
        session.close()
