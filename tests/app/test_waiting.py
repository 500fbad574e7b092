"""Waiting for jobs: woken where that is possible, one connection for all, and never for ever."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from rota import JobFailed, JobNotFinished, JobNotFound, Rota, State, StoreUnavailable
from rota.database import waiting
from rota.model.job import JobId
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.app.hand import Hand
from tests.fixtures.workers import until

pytestmark = pytest.mark.both

LONG = 20.0


@pytest.fixture
def hand(store: Store, connection: Connection) -> Hand:
    """Somebody who ends jobs when the test says so."""
    return Hand(store, connection)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads for those who wait."""
    with ThreadPoolExecutor(16) as pool:
        yield pool


@pytest.fixture
def rare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks by himself, once he has begun: he is woken or not."""
    monkeypatch.setattr(waiting, "SHORTEST", 10 * LONG)
    monkeypatch.setattr(waiting, "LONGEST", 10 * LONG)


@pytest.fixture
def looks(app: Rota, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many jobs each look was for."""
    found: list[int] = []
    real = app.database.store.get

    def get(jobs: list[JobId]) -> Any:
        found.append(len(jobs))
        return real(jobs)

    monkeypatch.setattr(app.database.store, "get", get)
    return found


def waited(app: Rota) -> int:
    """How many jobs somebody waits for, and the thread has looked at once."""
    waits = [wait for waits in app.database.waiting._waits.values() for wait in waits]
    return sum(wait.due > 0 for wait in waits)


def listening() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "rota-waiting"]


@pytest.mark.usefixtures("rare")
def test_two_who_wait_for_one_job(
    app: Rota, send: Any, hand: Hand, pool: ThreadPoolExecutor
) -> None:
    """Both are woken when it ends."""
    handle = send.enqueue(1)
    results = [pool.submit(handle.wait, LONG) for _ in range(2)]
    until(lambda: waited(app) == 2)
    jobs = hand.claim()
    assert not any(one.done() for one in results)
    hand.complete(jobs)
    assert [one.result(LONG).state for one in results] == [State.COMPLETED] * 2


@pytest.mark.usefixtures("rare")
def test_many_jobs_are_waited_for_together(
    app: Rota, send: Any, hand: Hand, pool: ThreadPoolExecutor
) -> None:
    """One thread and one connection serve all who wait in an app."""
    handles = [send.enqueue(number) for number in range(12)]
    results = [pool.submit(handle.wait, LONG) for handle in handles]
    until(lambda: waited(app) == 12)
    assert len(listening()) == 1
    hand.complete(hand.claim(5))
    until(lambda: sum(one.done() for one in results) == 5)
    hand.complete(hand.claim(12))
    assert {one.result(LONG).id for one in results} == {one.id for one in handles}


@pytest.mark.asyncio
@pytest.mark.usefixtures("rare")
async def test_waiting_in_async_code(app: Rota, send: Any, hand: Hand) -> None:
    """A handle can be awaited, several together; a wait that is cancelled leaves the others alone."""
    handles = [await send.aenqueue(number) for number in range(4)]
    results = asyncio.gather(*handles)
    finished = asyncio.create_task(handles[0].await_finished(LONG))
    given_up = asyncio.create_task(handles[1].aresult())
    await asyncio.to_thread(until, lambda: waited(app) == 6)
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    hand.complete(hand.claim(4))
    assert await asyncio.wait_for(results, LONG) == [None] * 4
    assert (await finished).state is State.COMPLETED
    assert not app.database.waiting._waits


@pytest.mark.usefixtures("rare")
def test_a_job_that_is_deleted(app: Rota, send: Any, pool: ThreadPoolExecutor) -> None:
    """Who waits for it learns at once that there is nothing to wait for."""
    handle = send.enqueue(1)
    result = pool.submit(handle.result, LONG)
    until(lambda: waited(app) == 1)
    app.database.run(app.database.store.delete([handle.id]))
    with pytest.raises(JobNotFound, match=str(handle.id)):
        result.result(LONG)


@pytest.mark.usefixtures("rare")
def test_a_job_that_is_cancelled(app: Rota, send: Any, pool: ThreadPoolExecutor) -> None:
    """`result` raises, `wait` gives the record."""
    handle = send.enqueue(1)
    result, record = pool.submit(handle.result, LONG), pool.submit(handle.wait, LONG)
    until(lambda: waited(app) == 2)
    handle.cancel()
    with pytest.raises(JobFailed, match="cancelled"):
        result.result(LONG)
    assert record.result(LONG).state is State.CANCELLED


def test_the_time_is_up(app: Rota, send: Any) -> None:
    """A wait ends with its time, and nothing of it is left."""
    handle = send.enqueue(1)
    for method in (handle.wait, handle.result):
        with pytest.raises(JobNotFinished, match=r"0\.05 seconds"):
            method(0.05)
        with pytest.raises(JobNotFinished):
            method(0)
    assert not app.database.waiting._waits


def test_only_looking_needs_no_thread(send: Any, hand: Hand) -> None:
    """What has ended already, or is only looked at, is not waited for."""
    handle = send.enqueue(1)
    with pytest.raises(JobNotFinished):
        handle.result(0)
    hand.complete(hand.claim())
    assert handle.wait().state is State.COMPLETED
    assert handle.result() is None
    assert listening() == []


def test_an_end_that_was_not_heard(
    app: Rota, send: Any, hand: Hand, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What no notification announces is found by looking, within about a second."""
    real = app.database.store.listener

    def deaf() -> Any:
        listener = real()

        def wait(timeout: float) -> tuple[JobId, ...]:
            # Sleeps, and hears nothing.
            threading.Event().wait(min(timeout, 0.05))
            return ()

        monkeypatch.setattr(listener, "wait", wait)
        return listener

    monkeypatch.setattr(app.database.store, "listener", deaf)
    handle = send.enqueue(1)
    result = pool.submit(handle.wait, LONG)
    until(lambda: waited(app) == 1)
    hand.complete(hand.claim())
    assert result.result(LONG).state is State.COMPLETED


def test_looks_become_rare(send: Any, looks: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody polls hard: the pauses double, and those who wait together are looked at together."""
    monkeypatch.setattr(waiting, "LONGEST", 0.32)
    handles = [send.enqueue(number) for number in range(5)]

    async def wait() -> None:
        ends = [handle.aresult(2.0) for handle in handles]
        found = await asyncio.gather(*ends, return_exceptions=True)
        assert all(isinstance(one, JobNotFinished) for one in found)

    asyncio.run(wait())
    # One by one before the wait; then 0, 20, 60, 140, 300, 620 ms … after each began.
    assert looks[:5] == [1] * 5
    assert 5 <= len(looks) - 5 <= 5 * 12
    assert max(looks[5:]) > 1, "they look one by one"


@pytest.mark.usefixtures("rare")
def test_a_connection_that_is_killed(
    app: Rota,
    send: Any,
    hand: Hand,
    pool: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
    *,
    store: Store,
) -> None:
    """The thread connects again, looks, and hears again."""
    if store.name == "sqlite":
        pytest.skip("a file has no connections to kill")
    handles = [send.enqueue(number) for number in range(2)]
    results = [pool.submit(handle.wait, LONG) for handle in handles]
    until(lambda: waited(app) == 2)
    listener: Any = app.database.waiting._listener
    before = listener.connection.raw().info.backend_pid
    gate = threading.Event()
    real = listener.listen
    monkeypatch.setattr(listener, "listen", lambda: gate.wait(LONG) and real())
    with closing(store.connect()) as admin:
        raw: Any = admin
        ended = raw.raw().execute("SELECT pg_terminate_backend(%s, 10000)", [before]).fetchone()
        assert ended == (True,)
    # Nobody hears of this one: he who waits finds it when he has connected again.
    hand.complete(hand.claim(1))
    gate.set()
    assert results[0].result(LONG).state is State.COMPLETED
    until(lambda: waited(app) == 1)
    hand.complete(hand.claim(1))
    assert results[1].result(LONG).state is State.COMPLETED


def test_a_database_that_stays_away(
    app: Rota, send: Any, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some patience those who wait are told, and the next wait begins anew."""
    monkeypatch.setattr(waiting, "PATIENCE", 0.2)
    handle = send.enqueue(1)
    gone = threading.Event()
    real = app.database.store.get

    def get(jobs: list[JobId]) -> Any:
        if gone.is_set():
            raise StoreUnavailable("gone")
        return real(jobs)

    monkeypatch.setattr(app.database.store, "get", get)
    result = pool.submit(handle.wait, LONG)
    until(lambda: waited(app) == 1)
    gone.set()
    with pytest.raises(StoreUnavailable):
        result.result(LONG)
    gone.clear()
    with pytest.raises(JobNotFinished):
        handle.wait(0.05)


def test_nobody_waits_any_more(send: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thread and connection go a moment after the last one has stopped to wait."""
    monkeypatch.setattr(waiting, "LINGER", 0.1)
    for _ in range(2):
        with pytest.raises(JobNotFinished):
            send.enqueue(1).wait(0.05)
        assert len(listening()) == 1
        until(lambda: listening() == [])


def test_closing_the_app(app: Rota, send: Any, pool: ThreadPoolExecutor, hand: Hand) -> None:
    """Those who wait are told, nothing is left open, and a later wait works again."""
    handle = send.enqueue(1)
    result = pool.submit(handle.wait, LONG)
    until(lambda: waited(app) == 1)
    app.close()
    assert listening() == []
    with pytest.raises(StoreUnavailable, match="closed"):
        result.result(LONG)
    again = pool.submit(handle.wait, LONG)
    hand.complete(hand.claim())
    assert again.result(LONG).state is State.COMPLETED


def test_a_job_of_a_transaction_that_is_rolled_back(app: Rota, send: Any) -> None:
    """It never was, and nobody waits for it."""
    with contextlib.suppress(ZeroDivisionError), app.transaction() as tx:
        handle = send.enqueue(1, conn=tx)
        raise ZeroDivisionError
    for method in (handle.wait, handle.result, handle.record):
        with pytest.raises(JobNotFound):
            method()


def test_a_result_that_comes_while_one_waits(
    app: Rota, hand: Hand, pool: ThreadPoolExecutor
) -> None:
    """What the handler returned arrives, decoded."""

    @app.task(name="stored", store_result=True)
    def stored(number: int) -> dict[str, int]:
        return {"number": number}

    handle = stored.enqueue(4)
    result: Callable[[], dict[str, int]] = pool.submit(handle.result, LONG).result
    until(lambda: waited(app) == 1)
    hand.complete(hand.claim(), '{"number":4}')
    assert result() == {"number": 4}
