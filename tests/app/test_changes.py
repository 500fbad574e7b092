"""The changes of a job: complete, in order, at little cost, and with nothing left behind."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from rota import Change, ConfigError, JobNotFound, Rota, State, StoreUnavailable
from rota.database import waiting
from rota.model.job import JobId
from rota.model.settlement import Settlement
from rota.model.states import Move
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.app.hand import Hand
from tests.app.test_waiting import waited
from tests.fixtures.workers import until
from tests.store.factories import NOBODY, error_json

pytestmark = pytest.mark.both

LONG = 20.0


@pytest.fixture
def hand(store: Store, connection: Connection) -> Hand:
    """A worker that does what the test says."""
    return Hand(store, connection)


def told(change: Change) -> list[str]:
    """The lines of a change."""
    return [line.message for line in change.lines]


def test_from_now_to_the_end(send: Any, hand: Hand) -> None:
    """The first change is what is now; then what is new; the last one has finished, with its lines."""
    changes = send.enqueue(1).changes()
    first = next(changes)
    assert (first.record.state, first.moved, first.lines) == (State.AVAILABLE, True, ())
    [job] = hand.claim()
    running = next(changes)
    assert (running.record.state, running.moved, running.progress) == (State.RUNNING, True, None)
    hand.tell(job, "one", "two", fraction=0.5)
    half = next(changes)
    assert (told(half), half.moved) == (["one", "two"], False)
    assert half.progress is not None
    assert half.progress.fraction == 0.5
    hand.tell(job, "three", first=3)
    hand.complete([job], '"done"')
    last = next(changes)
    assert (last.record.state, last.record.result) == (State.COMPLETED, '"done"')
    assert (told(last), last.progress) == (["three"], None)
    assert [line.message for line in last.record.log] == ["one", "two", "three"]
    assert list(changes) == []


@pytest.mark.asyncio
async def test_in_async_code(send: Any, hand: Hand) -> None:
    """The same object serves `async for`."""
    handle = await send.aenqueue(1)
    states = []
    async for change in handle.changes():
        states.append(change.record.state)
        if len(states) == 1:
            [job] = await asyncio.to_thread(hand.claim)
        elif len(states) == 2:
            await asyncio.to_thread(hand.complete, [job])
    assert states == [State.AVAILABLE, State.RUNNING, State.COMPLETED]


def test_a_job_that_has_ended(app: Rota, send: Any, hand: Hand) -> None:
    """Its changes are one; a job that is not there has none."""
    handle = send.enqueue(1)
    hand.complete(hand.claim())
    assert [change.record.state for change in handle.changes()] == [State.COMPLETED]
    for job in (NOBODY, 0):
        with pytest.raises(JobNotFound):
            next(app.job(job).changes())


def test_what_happened_between_two_looks(send: Any, hand: Hand) -> None:
    """A failed attempt is told also where the next one has begun by then."""
    changes = send.enqueue(1).changes()
    next(changes)
    for attempt in (1, 2):
        [job] = hand.claim()
        error = error_json(attempt, "shop.Broken", f"no luck {attempt}")
        hand.settle(Settlement(job.id, job.lease, Move.RETRY, 0.0, error=error))
        until(lambda: hand.stage() == 1)
    [job] = hand.claim()
    change = next(changes)
    assert [error.message for error in change.errors] == ["no luck 1", "no luck 2"]
    assert change.record.attempt == 3
    hand.complete([job])
    assert next(changes).errors == ()


def test_going_on_after_a_change(send: Any, hand: Hand) -> None:
    """Lines that a client has seen are not told again; its state is."""
    handle = send.enqueue(1)
    seen = next(handle.changes())
    [job] = hand.claim()
    hand.tell(job, "one")
    assert told(next(handle.changes(after=seen.id))) == ["one"]
    seen = next(handle.changes())
    hand.tell(job, "two", first=2)
    again = next(handle.changes(after=seen.id))
    assert (told(again), again.moved, again.record.state) == (["two"], True, State.RUNNING)
    assert [line.message for line in again.record.log] == ["one", "two"]
    assert told(next(handle.changes(after=again.id))) == []


@pytest.mark.parametrize("after", ["", "7", "1-x", "1-2-3", "9" * 30 + "-1", 7])
def test_what_is_no_id_of_a_change(send: Any, after: Any) -> None:
    """It is refused before anything is looked up."""
    with pytest.raises(ConfigError, match="id of a change"):
        send.enqueue(1).changes(after=after)


@pytest.mark.asyncio
async def test_leaving_early(app: Rota, send: Any, hand: Hand) -> None:
    """Nothing is left behind; a step that was given up loses no change."""
    handle = await send.aenqueue(1)
    async for _ in handle.changes():
        break
    for _ in handle.changes():
        break
    changes = handle.changes()
    await anext(changes)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(changes), 0.05)
    assert app.database.waiting._waits == {}
    await asyncio.to_thread(hand.claim)
    assert (await anext(changes)).record.state is State.RUNNING
    assert app.database.waiting._waits == {}


@pytest.mark.asyncio
async def test_many_that_follow_look_together(
    app: Rota, send: Any, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many they are, each look is one for all of them."""
    monkeypatch.setattr(waiting, "SOONEST", 0.0)
    looks: list[str] = []
    for name in ("get", "notes"):
        real = getattr(app.database.store, name)

        def look(jobs: list[JobId], *, name: str = name, real: Any = real) -> Any:
            looks.append(f"{name} {len(jobs)}")
            return real(jobs)

        monkeypatch.setattr(app.database.store, name, look)
    handles = [await send.aenqueue(number) for number in range(20)]
    followed = [handle.changes() for handle in handles for _ in range(2)]
    for changes in followed:
        await anext(changes)
    steps = asyncio.gather(*map(anext, followed))

    def in_step() -> bool:
        waits = [wait for waits in app.database.waiting._waits.values() for wait in waits]
        together = {wait.due for wait in waits}
        return len(waits) == 40 and len(together) == 1 and together.pop() % waiting.PACE == 0

    # Those whose first looks lay before and after one of the common moments come together at the
    # next.
    await asyncio.to_thread(until, in_step)
    looks.clear()
    await asyncio.to_thread(hand.claim, 20)
    assert {change.record.state for change in await asyncio.wait_for(steps, LONG)} == {
        State.RUNNING
    }
    assert set(looks) == {"get 20", "notes 20"}
    assert [one.name for one in threading.enumerate()].count("rota-waiting") == 1


def test_an_end_is_heard(send: Any, hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    """An app that seldom looks learns at once that the job has ended."""
    monkeypatch.setattr(waiting, "PACE", 1000 * LONG)
    handle = send.enqueue(1)
    jobs = hand.claim()
    changes = handle.changes()
    next(changes)
    with ThreadPoolExecutor(1) as pool:
        step = pool.submit(next, changes)
        until(lambda: handle._database.waiting._waits)
        hand.complete(jobs)
        assert step.result(LONG).record.state is State.COMPLETED


def test_a_database_that_is_away_for_a_moment(
    app: Rota, send: Any, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The iteration goes on by itself; where the database stays away, so does the next step."""
    handle = send.enqueue(1)
    changes = handle.changes()
    next(changes)
    real = app.database.store.get
    failed = threading.Semaphore(0)
    gone = threading.Event()

    def get(jobs: list[JobId]) -> Any:
        if gone.is_set():
            failed.release()
            raise StoreUnavailable("gone")
        return real(jobs)

    monkeypatch.setattr(app.database.store, "get", get)
    gone.set()
    with ThreadPoolExecutor(1) as pool:
        step = pool.submit(next, changes)
        assert all(failed.acquire(timeout=LONG) for _ in range(2))
        [job] = hand.claim()
        gone.clear()
        assert step.result(LONG).record.state is State.RUNNING
        monkeypatch.setattr(waiting, "PATIENCE", 0.0)
        gone.set()
        with pytest.raises(StoreUnavailable):
            pool.submit(next, changes).result(LONG)
    gone.clear()
    hand.complete([job])
    assert [change.record.state for change in changes] == [State.COMPLETED]


def test_a_connection_that_is_killed(app: Rota, send: Any, hand: Hand, store: Store) -> None:
    """The thread connects again, and no change is missed."""
    if store.name == "sqlite":
        pytest.skip("a file has no connections to kill")
    changes = send.enqueue(1).changes()
    jobs = hand.claim()
    next(changes)
    with ThreadPoolExecutor(1) as pool:
        step = pool.submit(next, changes)
        until(lambda: waited(app) == 1)
        listener: Any = app.database.waiting._listener
        backend = listener.connection.raw().info.backend_pid
        with closing(store.connect()) as admin:
            raw: Any = admin
            ended = raw.raw().execute("SELECT pg_terminate_backend(%s, 10000)", [backend])
            assert ended.fetchone() == (True,)
        hand.complete(jobs)
        assert step.result(LONG).record.state is State.COMPLETED


def test_a_job_that_is_deleted(app: Rota, send: Any) -> None:
    """It ends with the error that says so."""
    handle = send.enqueue(1)
    changes = handle.changes()
    next(changes)
    app.database.run(app.database.store.delete([handle.id]))
    with pytest.raises(JobNotFound, match=str(handle.id)):
        next(changes)
