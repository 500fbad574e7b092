"""What only PostgreSQL can get wrong: lanes made during a caller's transaction, old snapshots."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import psycopg
import pytest
from psycopg.rows import dict_row

from rota import Rota, State
from tests.app.callers import POSTGRES, Observer, Send, calling, enqueue, enqueue_many

pytestmark = pytest.mark.asyncio

IMPATIENT = "SET LOCAL lock_timeout = '1s'; SET LOCAL statement_timeout = '10s'"


@pytest.fixture
def store_url(postgres_url: str) -> str:
    """PostgreSQL alone."""
    return postgres_url


@pytest.fixture
def observer(app: Rota) -> Iterator[Observer]:
    """Somebody who sees what is committed."""
    observer = Observer(app.url)
    yield observer
    observer.close()


@asynccontextmanager
async def impatient(url: str) -> AsyncIterator[psycopg.Connection[tuple[Any, ...]]]:
    """A producer whom a lock of somebody else makes fail at once."""
    with closing(psycopg.connect(url)) as conn:
        conn.execute(IMPATIENT)
        yield conn


@pytest.mark.parametrize("kind", POSTGRES)
async def test_a_new_queue_holds_nobody_up(kind: str, send: Send, observer: Observer) -> None:
    """The first use of a queue, not yet committed, does not make other producers wait."""
    fresh = send.using(queue="fresh")
    async with calling(kind, observer.url) as caller, impatient(observer.url) as other:
        first = await enqueue(caller, fresh, 1)
        second = fresh.enqueue(2, conn=other).id
        third = fresh.using(delay=60).enqueue(3, conn=other).id
        other.commit()
        assert observer.claim("fresh") == [second]
        assert observer.get([first]) == []
        assert [job.state for job in observer.get([third])] == [State.SCHEDULED]
        await caller.commit()
    assert observer.claim("fresh") == [first]


async def test_two_new_queues_crosswise(send: Send, observer: Observer) -> None:
    """Two transactions that first use each other's new queues do not deadlock."""
    a, b = send.using(queue="a"), send.using(queue="b")
    async with impatient(observer.url) as one, impatient(observer.url) as two:
        jobs = [a.enqueue(1, conn=one).id, b.enqueue(2, conn=two).id]
        jobs += [b.enqueue(3, conn=one).id, a.enqueue(4, conn=two).id]
        one.commit()
        two.commit()
    assert sorted(observer.claim("a") + observer.claim("b")) == sorted(jobs)


async def test_an_old_transaction_holds_nobody_up(send: Send, observer: Observer) -> None:
    """Rota's own enqueues go on next to an open transaction that has enqueued."""
    async with impatient(observer.url) as holder:
        held = send.enqueue(0, conn=holder).id
        jobs = [send.enqueue(number).id for number in range(1, 4)]
        assert observer.claim() == jobs
        holder.commit()
    assert observer.claim() == [held]


@pytest.mark.table
@pytest.mark.parametrize("kind", POSTGRES)
@pytest.mark.parametrize("count", [1, 3, 500])
async def test_an_old_snapshot(kind: str, count: int, send: Send, observer: Observer) -> None:
    """A REPEATABLE READ caller whose snapshot is older than the lane can enqueue there."""
    fresh = send.using(queue="fresh")
    async with calling(kind, observer.url) as caller:
        await caller.rollback()
        await caller.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        await caller.execute("SELECT FROM orders")
        others = fresh.enqueue(0).id
        jobs = await enqueue_many(caller, fresh, count)
        jobs.append(await enqueue(caller, fresh, count))
        later = await enqueue(caller, fresh.using(delay=60), 4)
        assert observer.claim("fresh") == [others]
        await caller.commit()
    assert observer.claim("fresh") == jobs
    assert [job.state for job in observer.get([later])] == [State.SCHEDULED]


async def test_a_new_lane_in_an_old_snapshot(send: Send, observer: Observer) -> None:
    """A caller in REPEATABLE READ may itself be the first to use a queue."""
    with closing(psycopg.connect(observer.url)) as conn:
        conn.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        conn.execute("SELECT FROM orders")
        job = send.using(queue="fresh").enqueue(1, conn=conn).id
        conn.commit()
    assert observer.claim("fresh") == [job]


async def test_a_lane_outlives_a_rollback(send: Send, observer: Observer) -> None:
    """A queue first used by a transaction that was rolled back works for the next one."""
    fresh = send.using(queue="fresh")
    with closing(psycopg.connect(observer.url)) as conn:
        fresh.enqueue(1, conn=conn)
        conn.rollback()
        job = fresh.enqueue(2, conn=conn).id
        conn.commit()
    assert observer.claim("fresh") == [job]


async def test_dict_rows(send: Send, observer: Observer) -> None:
    """A psycopg connection that makes dicts of its rows can be used, and goes on doing so."""
    with closing(psycopg.connect(observer.url, row_factory=dict_row)) as conn:
        jobs = [send.enqueue(1, conn=conn).id, *send.enqueue_many([(2,)] * 300, conn=conn)]
        assert conn.execute("SELECT 1 AS one").fetchall() == [{"one": 1}]
        conn.commit()
    async with await psycopg.AsyncConnection.connect(
        observer.url, row_factory=dict_row
    ) as async_conn:
        jobs.append((await send.aenqueue(3, conn=async_conn)).id)
    assert observer.claim() == jobs


@pytest.mark.parametrize(
    "factory", [psycopg.ClientCursor, psycopg.RawCursor], ids=["client", "raw"]
)
async def test_other_cursors(factory: Any, send: Send, observer: Observer) -> None:
    """A psycopg connection with another style of parameters can be used."""
    with closing(psycopg.connect(observer.url, cursor_factory=factory)) as conn:
        jobs = [send.enqueue(1, conn=conn).id, *send.enqueue_many([(2,)] * 300, conn=conn)]
        conn.commit()
    assert observer.claim() == jobs


async def test_pipeline(send: Send, observer: Observer) -> None:
    """A psycopg connection in pipeline mode can be used, although COPY is not possible there."""
    with closing(psycopg.connect(observer.url)) as conn:
        with conn.pipeline():
            jobs = [send.enqueue(1, conn=conn).id, *send.enqueue_many([(2,)] * 300, conn=conn)]
        conn.commit()
    assert observer.claim() == jobs


async def test_json_codec(send: Send, observer: Observer) -> None:
    """An asyncpg connection with a JSON codec, which many applications set, stores args as is."""
    import json

    conn = await asyncpg.connect(observer.url)
    try:
        for name in ("json", "jsonb"):
            await conn.set_type_codec(
                name, encoder=json.dumps, decoder=json.loads, schema="pg_catalog"
            )
        jobs = [
            (await send.aenqueue(1, conn=conn)).id,
            *await send.aenqueue_many([(1,), (1,)], conn=conn),
            (await send.using(delay=5).aenqueue(1, conn=conn)).id,
        ]
    finally:
        await conn.close()
    assert {job.args for job in observer.get(jobs)} == {'{"number":1}'}


async def test_a_failed_transaction(send: Send, observer: Observer) -> None:
    """In a transaction that has failed already an enqueue says so and stores nothing."""
    from rota import StoreError

    with closing(psycopg.connect(observer.url)) as conn:
        with pytest.raises(psycopg.Error):
            conn.execute("SELECT 1/0")
        with pytest.raises(StoreError, match="aborted"):
            send.enqueue(1, conn=conn)
    assert observer.jobs() == []


async def test_many_callers_at_once(send: Send, observer: Observer) -> None:
    """Callers on one event loop that use a new queue at the same time all get their jobs in."""
    fresh = send.using(queue="fresh")

    async def call(number: int) -> int:
        async with await psycopg.AsyncConnection.connect(observer.url) as conn:
            return (await fresh.aenqueue(number, conn=conn)).id

    jobs = await asyncio.gather(*(call(number) for number in range(8)))
    assert sorted(observer.claim("fresh")) == sorted(jobs)
