"""Joining a caller's transaction, through every kind of connection a caller may have."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from rota import JobExists, Rota, State, Unique
from tests.app.callers import (
    KINDS,
    POSTGRES,
    Observer,
    Send,
    calling,
    enqueue,
    enqueue_many,
)

pytestmark = pytest.mark.asyncio

OWN_ROW = "INSERT INTO orders (id) VALUES (7)"


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """A kind of connection."""
    name: str = request.param
    return name


@pytest.fixture
def store_url(kind: str, request: pytest.FixtureRequest, tmp_path: object) -> str:
    """The URL of an empty database to which that kind of connection leads."""
    if kind in POSTGRES:
        url: str = request.getfixturevalue("postgres_url")
        return url
    return f"sqlite:///{tmp_path}/rota.db"


@pytest.fixture
def observer(app: Rota) -> Iterator[Observer]:
    """Somebody who sees what is committed."""
    observer = Observer(app.url)
    yield observer
    observer.close()


async def test_commit(kind: str, send: Send, observer: Observer) -> None:
    """Before the commit nobody sees the job; after it, it is claimed once, with the row."""
    async with calling(kind, observer.url) as caller:
        await caller.execute(OWN_ROW)
        job = await enqueue(caller, send, 1)
        assert observer.get([job]) == []
        assert observer.claim() == []
        await caller.commit()
    assert observer.orders() == [7]
    assert observer.claim() == [job]
    assert observer.claim() == []


async def test_rollback(kind: str, send: Send, observer: Observer) -> None:
    """A rollback leaves neither the job nor the caller's row."""
    async with calling(kind, observer.url) as caller:
        await caller.execute(OWN_ROW)
        job = await enqueue(caller, send, 1)
        await caller.rollback()
    assert observer.orders() == []
    assert observer.get([job]) == []
    assert observer.jobs() == []
    assert observer.claim() == []


async def test_the_first_statement(kind: str, send: Send, observer: Observer) -> None:
    """An enqueue that comes before any statement of the caller's is in its transaction too."""
    async with calling(kind, observer.url) as caller:
        await enqueue(caller, send, 1)
        assert observer.claim() == []
        await caller.rollback()
        assert observer.jobs() == []
        job = await enqueue(caller, send, 2)
        assert observer.jobs() == []
        assert observer.claim() == []
        await caller.execute(OWN_ROW)
        await caller.commit()
    assert observer.orders() == [7]
    assert observer.claim() == [job]
    assert observer.claim() == []


async def test_left_open(kind: str, send: Send, observer: Observer) -> None:
    """A connection that is closed without a commit leaves nothing."""
    async with calling(kind, observer.url) as caller:
        await enqueue(caller, send, 1)
        await caller.execute(OWN_ROW)
    assert observer.orders() == []
    assert observer.jobs() == []


async def test_savepoint(kind: str, send: Send, observer: Observer) -> None:
    """What was enqueued in a savepoint that is undone never existed; the rest is kept."""
    async with calling(kind, observer.url) as caller:
        before = await enqueue(caller, send, 10)
        await caller.execute(OWN_ROW)
        async with caller.savepoint():
            await enqueue(caller, send, 20)
            await enqueue(caller, send.using(delay=60), 20)
            await enqueue_many(caller, send, 3)
            await caller.execute("INSERT INTO orders (id) VALUES (8)")
        after = await enqueue(caller, send, 30)
        await caller.commit()
    assert observer.orders() == [7]
    # By args: SQLite gives the ids of a savepoint that was undone again.
    assert {job.args for job in observer.jobs()} == {'{"number":10}', '{"number":30}'}
    assert observer.claim() == [before, after]


async def test_delayed(kind: str, send: Send, observer: Observer) -> None:
    """Jobs with a time join the transaction like others, and keep their time."""
    moment = datetime.now(UTC) + timedelta(hours=2)
    async with calling(kind, observer.url) as caller:
        await enqueue(caller, send.using(delay=3600), 1)
        await caller.rollback()
        assert observer.jobs() == []
        jobs = [
            await enqueue(caller, send.using(delay=3600), 1),
            await enqueue(caller, send.using(at=moment), 2),
            *await enqueue_many(caller, send.using(at=moment), 3),
        ]
        assert observer.get(jobs) == []
        await caller.commit()
    found = observer.get(jobs)
    assert [job.state for job in found] == [State.SCHEDULED] * 5
    assert found[0].scheduled_at is not None
    assert found[0].scheduled_at < moment - timedelta(minutes=30)
    assert [
        job.scheduled_at is not None and abs(job.scheduled_at - moment) < timedelta(seconds=1)
        for job in found[1:]
    ] == [True] * 4


@pytest.mark.table
@pytest.mark.parametrize("count", [3, 500])
async def test_many(kind: str, count: int, send: Send, observer: Observer) -> None:
    """A batch is invisible as a whole, then there as a whole and in order; or never was."""
    async with calling(kind, observer.url) as caller:
        await enqueue_many(caller, send, count)
        await caller.rollback()
        assert observer.jobs() == []
        jobs = await enqueue_many(caller, send, count)
        await caller.execute(OWN_ROW)
        assert observer.get(jobs) == []
        assert observer.claim() == []
        await caller.commit()
    assert len(set(jobs)) == count
    assert [job.args for job in observer.get(jobs)] == [
        f'{{"number":{number}}}' for number in range(count)
    ]
    assert observer.claim() == jobs
    assert observer.claim() == []
    assert observer.orders() == [7]


async def test_using_conn(kind: str, send: Send, observer: Observer) -> None:
    """`using(conn=…)` joins the transaction, and a further `using` stays in it."""
    async with calling(kind, observer.url) as caller:
        joined = send.using(conn=caller.conn).using(priority=-1)
        if caller.awaits:
            await joined.aenqueue(1)
            await joined.aenqueue_many([(2,)])
        else:
            joined.enqueue(1)
            joined.enqueue_many([(2,)])
        assert observer.jobs() == []
        await caller.rollback()
    assert observer.jobs() == []


async def test_a_past_moment(kind: str, send: Send, observer: Observer) -> None:
    """A job for a past moment can be claimed as soon as the caller has committed."""
    async with calling(kind, observer.url) as caller:
        [job] = await enqueue_many(caller, send.using(at=datetime(2001, 1, 1, tzinfo=UTC)), 1)
        assert observer.claim() == []
        await caller.commit()
    assert observer.claim() == [job]


async def test_cron_entries(kind: str, app: Rota, send: Send, observer: Observer) -> None:
    """Entries that are added and changed in a caller's transaction are there when it commits."""
    async with calling(kind, observer.url) as caller:

        async def do(method: str, *args: object, **options: object) -> None:
            call = getattr(app.cron, f"a{method}" if caller.awaits else method)
            answer = call(*args, **options, conn=caller.conn)
            if caller.awaits:
                await answer

        await do("add", "one", "@daily", send, args=(1,))
        await do("run", "one")
        await caller.rollback()
        assert app.cron.entries() == []
        await do("add", "one", "@daily", send, args=(1,))
        await do("add", "two", "@daily", send, args=(1,))
        await do("change", "one", expression="@hourly", timezone="Asia/Tokyo", jitter=2)
        await do("pause", "one")
        await do("resume", "one")
        await do("pause", "one")
        await do("run", "one")
        await do("remove", "two")
        assert app.cron.entries() == []
        await caller.commit()
    [found] = app.cron.entries()
    assert (found.entry.expression, found.entry.timezone) == ("@hourly", "Asia/Tokyo")
    assert (found.entry.jitter, found.paused) == (2.0, True)
    assert len(observer.claim()) == 1


async def test_a_flow_that_is_refused(kind: str, app: Rota, send: Send, observer: Observer) -> None:
    """A taken key leaves nothing of the flow in the transaction; the next flow commits with it.

    The transaction goes on after the refusal.
    """
    refuse = send.using(unique=Unique(key="{number}", on_conflict="raise"))
    taken = refuse.enqueue(1).id
    async with calling(kind, observer.url) as caller:
        for number in (1, 2):
            flow = app.flow("order", conn=caller.conn)
            flow.map(send, [7, 8])
            flow.add(refuse, number)
            with suppress(JobExists):
                async with flow:
                    pass
            assert len(observer.jobs()) == 1
        await caller.execute(OWN_ROW)
        await caller.commit()
    assert observer.orders() == [7]
    [record] = app.flows.list()
    assert record.nodes == 2
    assert len(observer.jobs()) == 4
    assert taken in observer.claim()
