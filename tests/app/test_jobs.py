"""`rota.jobs`: looking at jobs and acting on them, in sync and in async code."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import psycopg
import pytest

from rota import ConfigError, Rota, State, Task, Unique
from rota.app import acting, jobs
from rota.model.job import JobFilter, JobId
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.app.hand import Hand
from tests.store.factories import NOBODY, in_state, one_of_each, states

pytestmark = [pytest.mark.both, pytest.mark.asyncio]

Ask = Callable[..., Any]


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest, app: Rota) -> Ask:
    """Call a method of `rota.jobs`, or its async twin."""

    async def ask(name: str, *args: Any, **options: Any) -> Any:
        if request.param == "sync":
            found = getattr(app.jobs, name)(*args, **options)
            return [*found] if name == "iterate" else found
        twin = getattr(app.jobs, f"a{name}")(*args, **options)
        return [job async for job in twin] if name == "iterate" else await twin

    return ask


@pytest.fixture
def hand(store: Store, connection: Connection) -> Hand:
    """A worker that does what the test says."""
    return Hand(store, connection)


def ids(records: Any) -> list[JobId]:
    """The ids of records."""
    return [record.id for record in records]


async def test_listing(ask: Ask, app: Rota, send: Any) -> None:
    """Newest first, in pages, by state, queue, task and unique key, in whatever form given."""
    first, second, third = send.enqueue_many([(1,), (2,), (3,)])
    mail = send.using(queue="mail", unique=Unique(key="site:{number}")).enqueue(4)
    assert ids(await ask("list")) == [mail.id, third, second, first]
    assert ids(await ask("list", limit=2)) == [mail.id, third]
    for after in (third, app.job(third), app.jobs.get(third)[0]):
        assert ids(await ask("list", after=after, limit=1)) == [second]
    for queue in ("mail", app.queue("mail")):
        assert ids(await ask("list", queue=queue, state="available")) == [mail.id]
    assert ids(await ask("list", task=send, queue="default", state=State.AVAILABLE, limit=1)) == [
        third
    ]
    assert await ask("list", task="other") == []
    for subject in ("site:*", "site:4"):
        assert ids(await ask("list", subject=subject)) == [mail.id]
    assert await ask("list", after=1) == []


async def test_iterating(ask: Ask, send: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Page after page, all of them."""
    monkeypatch.setattr(jobs, "BATCH", 3)
    stored = send.enqueue_many([(number,) for number in range(7)])
    assert ids(await ask("iterate", task=send)) == [*stored][::-1]
    assert ids(await ask("iterate", after=stored[3])) == [*stored][2::-1]


async def test_counting(
    ask: Ask,
    send: Any,
    store: Store,
    connection: Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By state and queue the counters know; the jobs are read only for what these do not say."""
    read: list[JobFilter] = []
    mine = send.enqueuing.database.store
    real = mine.count_jobs

    def count_jobs(wanted: JobFilter) -> Any:
        read.append(wanted)
        return real(wanted)

    monkeypatch.setattr(mine, "count_jobs", count_jobs)
    one_of_each(store, connection)
    send.using(queue="mail").enqueue_many([(1,), (2,)])
    assert await ask("count") == len(State) + 2
    assert await ask("count", queue="mail") == 2
    assert await ask("count", state="discarded", queue="default") == 1
    assert await ask("count", queue="none") == 0
    assert read == []
    assert await ask("count", task=send, state=State.AVAILABLE) == 2
    assert [wanted.task for wanted in read] == ["send"]


async def test_getting(ask: Ask, app: Rota, send: Any, hand: Hand) -> None:
    """In the order asked for, with what handlers told; ids of no job are left out."""
    one, two = (send.enqueue(number) for number in (1, 2))
    [job, _] = hand.claim(2)
    hand.tell(job, "a line", fraction=0.5)
    found = await ask("get", [two, one.id, NOBODY, 0, -1, 2**70])
    assert ids(found) == [two.id, one.id]
    assert [line.message for line in found[1].log] == ["a line"]
    assert found[1].progress.fraction == 0.5
    assert ids(await ask("get", one)) == [one.id]
    assert app.jobs.get([]) == []


async def test_acting_on_given_jobs(ask: Ask, store: Store, connection: Connection) -> None:
    """Each does what it can; the answer has what it changed."""
    jobs = one_of_each(store, connection)
    every = [*jobs.values(), NOBODY]
    assert await ask("cancel", every) == {
        jobs[state]: State.CANCELLED if state in acting.CANCELLABLE[:3] else state
        for state in State
    }
    retried = await ask("retry", every)
    assert sorted(retried) == sorted(set(jobs.values()) - {jobs[State.RUNNING]})
    assert sorted(await ask("delete", every)) == sorted(retried)
    assert await ask("delete", jobs[State.RUNNING]) == []
    assert await ask("retry", []) == []


FOUND = {
    "retry": {State.DISCARDED},
    "cancel": set(acting.CANCELLABLE),
    "delete": set(State) - {State.RUNNING},
}


@pytest.mark.parametrize("act", FOUND)
async def test_acting_on_what_is_found(
    ask: Ask, store: Store, connection: Connection, act: str, send: Any
) -> None:
    """Without a state it is what the act is usually for; other jobs are left alone."""
    jobs = one_of_each(store, connection)
    other = send.using(queue="mail").enqueue(1)
    changed = await ask(act, queue="default")
    assert {job: state for state, job in jobs.items() if job in changed}.keys() == set(changed)
    assert {state for state, job in jobs.items() if job in changed} == FOUND[act]
    left = {state: job for state, job in jobs.items() if state not in FOUND[act]}
    assert states(store, connection, [*left.values()]) == [*left]
    assert other.status is State.AVAILABLE


async def test_a_bound(
    ask: Ask, store: Store, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most so many are changed, the newest first; without a bound all, batch by batch."""
    monkeypatch.setattr(acting, "BATCH", 2)
    jobs = [in_state(store, connection, State.DISCARDED).id for _ in range(7)]
    assert [*await ask("delete", state="discarded", limit=1)] == jobs[-1:]
    assert sorted(await ask("retry", state="discarded", limit=3)) == jobs[3:6]
    assert sorted(await ask("retry", state="discarded", limit=None)) == jobs[:3]
    assert sorted(await ask("cancel", queue="default", limit=None)) == jobs[:6]


async def test_what_moves_on_is_left_alone(
    ask: Ask, app: Rota, send: Any, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that begins to run after it was found is neither asked to stop nor deleted."""
    handle = send.enqueue(1)
    real = app.database.store.cancel

    def cancel(*args: Any, **options: Any) -> Any:
        hand.claim()
        return real(*args, **options)

    monkeypatch.setattr(app.database.store, "cancel", cancel)
    assert await ask("cancel", state="available") == {}
    record = handle.record()
    assert (record.state, record.cancel_requested) == (State.RUNNING, False)


async def test_a_retention_that_the_code_declares(
    app: Rota, ask: Ask, send: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that is cancelled stays as long as the app says of its queue."""
    app.queue("short", retention={"cancelled": 3600})
    given: list[Any] = []
    real = app.database.store.cancel

    def cancel(jobs: list[JobId], keep: Any = None, **options: Any) -> Any:
        given.append(keep)
        return real(jobs, keep, **options)

    monkeypatch.setattr(app.database.store, "cancel", cancel)
    handle = send.using(queue="short").enqueue(1)
    assert await ask("cancel", queue="short") == {handle.id: State.CANCELLED}
    assert given == [{"short": 3600.0}]


async def test_from_a_transaction(app: Rota, ask: Ask, send: Any) -> None:
    """What the caller's transaction has stored is listed, counted and got there, and nowhere else."""
    with app.transaction() as tx:
        handle = send.enqueue(1, conn=tx)
        for conn, there in ((tx, True), (None, False)):
            if app.database.store.name == "sqlite" and conn is None:
                continue
            wanted = [handle.id] if there else []
            assert ids(await ask("list", conn=conn)) == wanted
            assert ids(await ask("iterate", conn=conn)) == wanted
            assert ids(await ask("get", handle, conn=conn)) == wanted
            assert await ask("count", conn=conn) == len(wanted)


async def test_from_a_connection_of_the_caller(app: Rota, send: Any) -> None:
    """A driver's own connection serves, too."""
    connect: Callable[[], Any]
    if app.database.store.name == "sqlite":
        connect = lambda: sqlite3.connect(app.url.removeprefix("sqlite:///"))  # noqa: E731
    else:
        connect = lambda: psycopg.connect(app.url)  # noqa: E731
    with closing(connect()) as conn:
        handle = send.enqueue(1, conn=conn)
        assert ids(app.jobs.list(conn=conn)) == [handle.id]
        assert app.jobs.count(task=send, conn=conn) == 1
        conn.rollback()
    assert app.jobs.list() == []


async def test_from_an_async_connection_of_the_caller(app: Rota, send: Any) -> None:
    """Every look works on a driver with parameters of its own style."""
    if app.database.store.name == "sqlite":
        pytest.skip("asyncpg is PostgreSQL's")
    conn = await asyncpg.connect(app.url)
    try:
        transaction = conn.transaction()
        await transaction.start()
        jobs = [await send.aenqueue(number, conn=conn) for number in range(3)]
        later = await send.using(delay=60, unique="n:{number}").aenqueue(7, conn=conn)
        mine = app.jobs
        assert ids(await mine.alist(conn=conn, limit=2)) == [later.id, jobs[2].id]
        assert ids(await mine.alist(conn=conn, after=jobs[2], state="available", limit=2)) == [
            jobs[1].id,
            jobs[0].id,
        ]
        assert ids(await mine.alist(conn=conn, subject="n:*")) == [later.id]
        assert [job.id async for job in mine.aiterate(conn=conn, task=send)][-1] == jobs[0].id
        assert await mine.acount(conn=conn) == 4
        assert await mine.acount(conn=conn, subject="n:7", state="scheduled", queue="default") == 1
        assert ids(await mine.aget(jobs[1], conn=conn)) == [jobs[1].id]
        await transaction.rollback()
    finally:
        await conn.close()
    assert await app.jobs.alist() == []


@pytest.mark.parametrize(
    ("name", "args", "options", "said"),
    [
        ("list", (), {"state": "waiting"}, "the states are scheduled, available"),
        ("list", (), {"queue": " mail"}, "queue: must be a name"),
        ("list", (), {"task": 7}, "task: must be a name"),
        ("list", (), {"subject": ""}, "order:42"),
        ("list", (), {"subject": "a\0"}, "order:42"),
        ("list", (), {"limit": 0}, "limit: must be a whole number"),
        ("list", (), {"limit": True}, "limit: must be a whole number"),
        ("list", (), {"after": "7"}, "by their ids"),
        ("list", (), {"colour": "red"}, "jobs have no colour"),
        ("iterate", (), {"state": "x"}, "'x' is not a state"),
        ("count", (), {"state": ""}, "'' is not a state"),
        ("get", ("4711",), {}, "not by str"),
        ("get", ([True],), {}, "not by bool"),
        ("get", (None,), {}, "not by NoneType"),
        ("retry", (), {}, "retry: say which jobs"),
        ("cancel", (), {"queue": None}, "cancel: say which jobs"),
        ("delete", (), {"limit": 5}, "delete: say which jobs"),
        ("delete", (), {"queue": "mail", "limit": 0}, "limit: must be a whole number"),
        ("delete", ([1],), {"queue": "mail"}, "not both"),
        ("delete", (), {"state": "running"}, "running jobs cannot be deleted"),
        ("retry", (), {"state": "available"}, "available jobs cannot be retried"),
        ("cancel", (), {"state": State.COMPLETED}, "completed jobs cannot be cancelled"),
    ],
)
async def test_what_cannot_be(ask: Ask, name: str, args: Any, options: Any, said: str) -> None:
    """It is refused with what to write, before anything is done."""
    with pytest.raises(ConfigError) as refused:
        await ask(name, *args, **options)
    assert said in str(refused.value)


async def test_a_task_of_another_app(ask: Ask, send: Task[..., Any, Any]) -> None:
    """A task stands for its name alone."""
    other = Rota("sqlite:///never-opened.db")
    assert await ask("list", task=other.task(name="send")(lambda: None)) == []
    handle = send.enqueue(1)
    assert ids(await ask("list", task=other.find_task("send"))) == [handle.id]
