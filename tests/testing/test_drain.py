"""Running the jobs of a test's transaction: the whole path of a worker's, and nothing stays."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from rota import (
    PROVIDED,
    Again,
    BatchContext,
    ConfigError,
    Context,
    Discard,
    JobId,
    Limit,
    Retry,
    Rota,
    Snooze,
    State,
    TaskNotFound,
)
from rota.model.states import Move
from rota.relay import RedisStream
from rota.testing import Kit
from tests.testing.conftest import notes, stored

pytestmark = pytest.mark.usefixtures("note_table")


def test_a_job_goes_the_whole_way(kit: Kit, app: Rota) -> None:
    """Args are stored and read, the handler is called, and its result is stored and read again."""

    @app.task(name="ship", store_result=True)
    def ship(ctx: Context, order: int, at: datetime) -> tuple[int, ...]:
        assert (order, at.tzinfo is not None, ctx.attempt) == (7, True, 1)
        return (order, 8)

    handle = ship.enqueue(7, datetime.fromisoformat("2026-11-23T12:00:00+01:00"))
    ran = kit.drain()
    assert (ran.completed, len(ran)) == (1, 1)
    assert ran[0].result == (7, 8) == handle.result(0)
    assert ran[0].args["order"] == 7
    assert handle.status is State.COMPLETED


def test_an_enqueue_without_conn_stays_in_the_test(
    kit: Kit, app: Rota, kit_url: str, conn: Any
) -> None:
    """Rota's own connections would commit; here everything goes to the test's connection."""

    @app.task(name="ship")
    def ship() -> None: ...

    inside, outside = ship.using(conn=conn).enqueue(), ship.enqueue()
    ship.enqueue_many([(), ()])
    assert [job.id for job in kit.jobs(ship)][:2] == [inside.id, outside.id]
    with app.transaction() as tx:
        tx.execute("INSERT INTO note (text) VALUES ('own')")
        ship.using(conn=tx).enqueue()
    assert len(kit.jobs(ship)) == 5
    assert kit.drain().completed == 5
    assert notes(conn) == ["own"]
    assert stored(kit_url) == 0


def test_a_relay_sends_nothing(kit: Kit, app: Rota) -> None:
    """Its messages can be looked at, and are completed as if they had been sent."""
    orders = app.relay("orders", to=RedisStream("redis://nobody.invalid"))
    orders.enqueue("4711", "OrderPlaced", {"total": 12})
    enqueued = kit.assert_enqueued(orders, aggregateid="4711")
    assert enqueued.args["payload"] == {"total": 12}
    assert kit.drain().completed == 1


def test_the_app_has_its_database_back(app: Rota, conn: Any, kit_url: str) -> None:
    """Also after a failure, an enqueue is the app's own again."""

    @app.task(name="ship")
    def ship() -> None: ...

    store = app.database.store
    with pytest.raises(AssertionError), Kit(conn, app=app) as kit:
        kit.assert_enqueued(ship)
    assert app.database.store is store
    conn.rollback()
    handle = ship.enqueue()
    assert stored(kit_url) == 1
    assert handle.cancel() is State.CANCELLED
    app.database.run(store.delete([handle.id]))


def test_a_retry_waits_unless_all_are_due(kit: Kit, app: Rota) -> None:
    """With due="now" a retry keeps its backoff, with due="all" it does not wait."""
    attempts: list[int] = []

    @app.task(name="flaky", max_attempts=3)
    def flaky(ctx: Context) -> None:
        attempts.append(ctx.attempt)
        raise ValueError(ctx.attempt)

    handle = flaky.enqueue()
    first = kit.drain(raises=False)
    assert (first.retried, first.discarded, attempts) == (1, 0, [1])
    assert len(kit.drain(raises=False)) == 0
    assert attempts == [1]
    rest = kit.drain(due="all", raises=False)
    assert (rest.retried, rest.discarded, attempts) == (1, 1, [1, 2, 3])
    assert [str(run.error) for run in rest] == ["2", "3"]
    assert handle.status is State.DISCARDED


def test_travelling_makes_a_delay_pass(kit: Kit, app: Rota) -> None:
    """What waits for an hour runs when an hour has passed, and not before."""

    @app.task(name="later")
    def later() -> None: ...

    handle = later.using(delay=timedelta(hours=1)).enqueue()
    assert len(kit.drain()) == 0
    kit.travel(minutes=59)
    assert len(kit.drain()) == 0
    kit.travel(minutes=2)
    assert kit.drain().completed == 1
    assert handle.status is State.COMPLETED
    with pytest.raises(ConfigError, match="only goes forward"):
        kit.travel(hours=-1)


def test_jobs_of_jobs_run(kit: Kit, app: Rota) -> None:
    """Handlers enqueue, and their jobs run; recursive=False leaves these."""

    @app.task(name="countdown")
    def countdown(left: int) -> None:
        if left:
            countdown.enqueue(left - 1)

    countdown.enqueue(3)
    assert kit.drain(recursive=False).completed == 1
    assert kit.drain().completed == 3


def test_a_handler_without_end_is_stopped(kit: Kit, app: Rota) -> None:
    """A task that enqueues itself ends with an error that names it."""

    @app.task(name="forever")
    def forever() -> None:
        forever.enqueue()

    forever.enqueue()
    with pytest.raises(ConfigError, match=r"20 attempts .* 20 of them of 'forever'.*limit="):
        kit.drain(limit=20)
    assert [job.state for job in kit.jobs(forever)].count(State.AVAILABLE) == 1


def test_outcomes(kit: Kit, app: Rota) -> None:
    """What a handler says besides a value; none of it is raised, and none of it loops."""
    said: dict[str, Any] = {
        "snooze": Snooze(60), "again": Again(after=60), "discard": Discard("no"), "retry": Retry(after=60)
    }  # fmt: skip

    @app.task(name="say")
    def say(what: str) -> Any:
        return said[what]

    say.enqueue_many([(what,) for what in said])
    ran = kit.drain()
    assert [run.move for run in ran] == [Move.SNOOZE, Move.AGAIN, Move.DISCARD, Move.RETRY]
    assert (ran.snoozed, ran.came_round, ran.discarded, ran.retried) == (1, 1, 1, 1)
    assert ran[0].delay == 60
    ran = kit.drain(due="all")
    assert (ran.snoozed, ran.came_round) == (1, 1)


def test_async_handlers_and_middleware(kit: Kit, app: Rota) -> None:
    """Middleware of both kinds is around handlers of both kinds, as in a worker."""
    seen: list[str] = []

    @app.around_run
    async def outer(ctx: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
        seen.append(f"outer {ctx.task}")
        return await call_next()

    @app.around_run
    def inner(ctx: Context, call_next: Callable[[], Any]) -> Any:
        seen.append(f"inner {ctx.task}")
        return call_next()

    @app.around_enqueue
    def counted(call: Any, call_next: Callable[[Any], list[JobId]]) -> list[JobId]:
        seen.append("enqueue")
        return call_next(call)

    @app.task(name="blocking")
    def blocking() -> str:
        return "b"

    @app.task(name="awaiting")
    async def awaiting() -> str:
        blocking.enqueue()
        return "a"

    awaiting.enqueue()
    assert [run.result for run in kit.drain()] == ["a", "b"]
    assert seen == ["enqueue", "outer awaiting", "enqueue", "outer blocking", "inner blocking"]


def test_a_batch(kit: Kit, app: Rota) -> None:
    """The handler of a batch is called once, with as many as it takes."""
    calls: list[list[int]] = []

    @app.task(name="sum", batch=3)
    def add(numbers: list[int], ctx: BatchContext) -> list[Any]:
        calls.append(numbers)
        return [Snooze(60) if one.args == {"numbers": 2} else None for one in ctx.jobs]

    add.enqueue_many([(number,) for number in range(5)])
    ran = kit.drain()
    assert calls == [[0, 1, 2], [3, 4]]
    assert (ran.completed, ran.snoozed) == (4, 1)


def test_a_queue_alone(kit: Kit, app: Rota) -> None:
    """A drain may be of one queue, or of some."""

    @app.task(name="ship")
    def ship() -> None: ...

    for queue in "abc":
        ship.using(queue=queue).enqueue()
    assert len(kit.drain("b")) == 1
    assert len(kit.drain(["a", "b"])) == 1
    assert [job.queue for job in kit.jobs(state="available")] == ["c"]


def test_a_limit_holds_back(kit: Kit, app: Rota) -> None:
    """A rate lets so many start; travelling, or due="all", gets at the others."""

    @app.task(name="call", limit=Limit("{host}", per_minute=1))
    def call(host: str) -> None: ...

    call.enqueue_many([("a",), ("a",), ("a",), ("b",)])
    assert len(kit.drain()) == 2
    kit.travel(seconds=61)
    assert len(kit.drain()) == 1
    assert len(kit.drain(due="all")) == 1


def test_counts_of_queues(kit: Kit, app: Rota) -> None:
    """The app sees its queues as the test has them."""

    @app.task(name="ship")
    def ship(fail: bool) -> None:  # noqa: FBT001
        if fail:
            raise ValueError

    def counts() -> dict[State, int]:
        [record] = app.database.run(app.database.store.queues())
        return {state: count for state, count in record.counts.items() if count}

    ship.enqueue_many([(False,), (True,), (False,)])
    assert counts() == {State.AVAILABLE: 3}
    kit.drain(raises=False)
    assert counts() == {State.COMPLETED: 2, State.RETRYABLE: 1}


def test_a_job_of_which_nothing_is_kept(kit: Kit, app: Rota) -> None:
    """A test sees it all the same."""

    @app.task(name="ship", retention=0)
    def ship(order: int) -> None: ...

    ship.enqueue(1)
    kit.drain()
    assert kit.assert_enqueued(ship, order=1).state is State.COMPLETED


def test_an_unknown_task(kit: Kit, app: Rota, conn: Any) -> None:
    """A job of another program's task is named."""
    other = Rota(app.url)

    @other.task(name="theirs")
    def theirs() -> None: ...

    theirs.using(conn=conn).enqueue()
    with pytest.raises(TaskNotFound, match=r"'theirs'.*import the module"):
        kit.drain()
    with pytest.raises(ConfigError, match="of another app"):
        kit.run(theirs)
    other.close()


@pytest.mark.usefixtures("kit")
def test_waiting_is_refused(app: Rota) -> None:
    """No worker sees the job, so waiting for it would last for ever."""

    @app.task(name="ship")
    def ship() -> None: ...

    handle = ship.enqueue()
    with pytest.raises(ConfigError, match="drain"):
        handle.result(10)


def test_a_pytest_failure_in_a_handler(kit: Kit, app: Rota) -> None:
    """What pytest raises is no outcome of the job."""

    @app.task(name="check")
    def check() -> None:
        pytest.fail("seen")

    check.enqueue()
    with pytest.raises(pytest.fail.Exception, match="seen"):
        kit.drain(raises=False)


class Mailer:
    """What a lifespan would yield."""

    def __init__(self) -> None:
        self.sent: list[int] = []


@pytest.mark.parametrize("batch", [False, True])
def test_resources(kit: Kit, app: Rota, *, batch: bool) -> None:
    """A test provides what a worker's lifespans would yield; without it the error says so."""

    async def one(number: int, mailer: Mailer = PROVIDED) -> None:
        mailer.sent.append(number)

    async def many(numbers: list[int], mailer: Mailer = PROVIDED) -> None:
        mailer.sent.extend(numbers)

    options: Any = {"batch": 10} if batch else {}
    send: Any = app.task(name="send", **options)(many if batch else one)
    send.enqueue(1)
    with pytest.raises(ConfigError, match=r"rota_test\.provide\(name=value\)"):
        kit.drain()
    for _ in range(2):
        mailer = Mailer()
        kit.provide(mailer=mailer)
        send.enqueue(2)
        kit.drain(due="all")
        assert 2 in mailer.sent


@pytest.mark.parametrize("batch", [False, True])
def test_a_job_that_expired(kit: Kit, app: Rota, *, batch: bool) -> None:
    """It is cancelled and not run; others beside it run."""
    ran: list[Any] = []

    async def one(number: int) -> None:
        ran.append(number)

    async def many(numbers: list[int]) -> None:
        ran.extend(numbers)

    options: Any = {"batch": 10} if batch else {}
    count: Any = app.task(name="count", **options)(many if batch else one)
    late = count.using(expires=datetime.fromisoformat("2001-09-09T00:00:00+00:00")).enqueue(1)
    count.enqueue(2)
    kit.drain()
    assert ran == [2]
    assert late.status is State.CANCELLED


def test_blocking_handlers_meet_no_event_loop(kit: Kit, app: Rota) -> None:
    """Nor do they in a worker's thread: Django's ORM and `asyncio.run` refuse to run in one."""

    @app.around_run
    async def around(ctx: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
        began = asyncio.get_running_loop()
        assert ctx.task == "blocking"
        try:
            return await call_next()
        finally:
            assert asyncio.get_running_loop() is began

    @app.task(name="blocking")
    def blocking() -> str:
        return asyncio.run(asyncio.sleep(0, "slept"))

    assert kit.run(blocking).result == "slept"
