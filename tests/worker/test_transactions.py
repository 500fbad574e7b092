"""Handlers whose writes and whose job's completion commit together, or neither."""

import asyncio
import gc
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any, TypeVar

import psycopg
import pytest

from rota import Backoff, ConfigError, Context, LeaseLost, Rota, Snooze, State, StoreUnavailable
from rota.app.job_transaction import JobTransaction
from rota.events import JobSettled, LeasesLost
from rota.model.job import JobFilter
from rota.store.connections import Transaction
from rota.store.migrate import migrate
from rota.store.operation import Operation
from tests.fixtures.workers import drained, records, until, working

pytestmark = pytest.mark.both

T = TypeVar("T")

INSERT = {"sqlite": "INSERT INTO effect VALUES (?)", "postgres": "INSERT INTO effect VALUES (%s)"}

AT_ONCE = Backoff(first=0, factor=1, jitter=0)


class OwnError(Exception):
    """An error of the handler's."""


def effects(app: Rota) -> list[int]:
    """What handlers have written."""
    with app.transaction() as tx:
        return sorted(row[0] for row in tx.execute("SELECT number FROM effect").fetchall())


def settled(app: Rota) -> list[str]:
    """The moves of all settlements, as they are told."""
    moves: list[str] = []
    app.on(JobSettled)(lambda event: moves.append(event.settlement.move.value))
    return moves


def state(app: Rota) -> State:
    """The state of the one job."""
    [record] = records(app)
    return record.state


@pytest.fixture(autouse=True)
def table(app: Rota) -> None:
    """A table of the handlers'."""
    with app.transaction() as tx:
        tx.execute("CREATE TABLE effect (number integer)")


@pytest.fixture
def insert(app: Rota) -> str:
    """A statement of a handler's."""
    return INSERT[app.database.store.name]


@pytest.mark.parametrize("kind", ["async", "thread"])
def test_many_jobs(app: Rota, insert: str, kind: str) -> None:
    """Each job's effect is there once, each job is completed once, with the result it gave."""
    if kind == "async":

        @app.task(name="write", store_result=True)
        async def write(ctx: Context, number: int) -> int:
            async with ctx.transaction() as tx:
                await tx.aexecute(insert, [number])
                tx.result(number + ctx.attempt)
            return number + 1
    else:

        @app.task(name="write", store_result=True)
        def write(ctx: Context, number: int) -> int:
            with ctx.transaction() as tx:
                tx.execute(insert, [number])
                tx.result(number + ctx.attempt)
            return number + 1

    moves = settled(app)
    app.tasks["write"].enqueue_many([(number,) for number in range(60)])
    drained(app, concurrency=20)
    assert effects(app) == list(range(60))
    assert moves == ["complete"] * 60
    found = records(app, State.COMPLETED)
    assert sorted(int(job.result or 0) for job in found) == list(range(1, 61))
    assert {job.attempt for job in found} == {1}
    [queue] = app.database.run(app.database.store.queues())
    assert {state: count for state, count in queue.counts.items() if count} == {State.COMPLETED: 60}


@pytest.mark.parametrize("kind", ["async", "thread"])
def test_a_failure_in_the_block(app: Rota, insert: str, kind: str) -> None:
    """It undoes what was written and is an ordinary failed attempt; the next one completes."""

    def fails(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise OwnError

    if kind == "async":

        @app.task(name="write", retry=AT_ONCE)
        async def write(ctx: Context) -> None:
            async with ctx.transaction() as tx:
                await tx.aexecute(insert, [ctx.attempt])
                fails(ctx)
    else:

        @app.task(name="write", retry=AT_ONCE)
        def write(ctx: Context) -> None:
            with ctx.transaction() as tx:
                tx.execute(insert, [ctx.attempt])
                fails(ctx)

    moves = settled(app)
    app.tasks["write"].enqueue_many([(), ()])
    drained(app)
    assert effects(app) == [2, 2]
    assert sorted(moves) == ["complete"] * 2 + ["retry"] * 2
    assert all("OwnError" in job.errors[0].exception for job in records(app, State.COMPLETED))


def test_an_outcome_in_the_block(app: Rota, insert: str) -> None:
    """A snooze that is raised in the block rolls back; the job comes again, unspent."""
    calls: list[int] = []

    @app.task(name="write")
    async def write(ctx: Context) -> None:
        async with ctx.transaction() as tx:
            calls.append(ctx.attempt)
            await tx.aexecute(insert, [len(calls)])
            if len(calls) == 1:
                raise Snooze(0)

    moves = settled(app)
    write.enqueue()
    drained(app)
    assert (effects(app), calls, moves) == ([2], [1, 1], ["snooze", "complete"])


@pytest.mark.parametrize("late", ["error", "raised", "returned", "value"])
def test_after_the_block(
    app: Rota, insert: str, late: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The job is completed, whatever the handler says then; what may be a mistake is logged."""

    @app.task(name="write", store_result=True)
    def write(ctx: Context) -> Any:
        with ctx.transaction() as tx:
            tx.execute(insert, [ctx.attempt])
        match late:
            case "error":
                raise OwnError
            case "raised":
                raise Snooze(0)
            case "returned":
                return Snooze(0)
            case _:
                return 7

    moves = settled(app)
    job = write.enqueue()
    drained(app)
    assert (effects(app), moves) == ([1], ["complete"])
    assert (job.status, job.record().errors, job.record().result) == (State.COMPLETED, (), None)
    said = {
        "error": "failed after the transaction",
        "raised": "raise it in the block",
        "returned": "raise it in the block",
        "value": "tx.result(value)",
    }
    [line] = [one.getMessage() for one in caplog.records if one.levelname in {"WARNING", "ERROR"}]
    assert said[late] in line


def test_a_second_transaction(app: Rota, insert: str) -> None:
    """It is refused with what to do; after one that was rolled back another one may come."""
    refusals: list[str] = []

    @app.task(name="write")
    def write(ctx: Context) -> None:
        with pytest.raises(OwnError), ctx.transaction() as tx:  # noqa: PT012 - a block is the point
            tx.execute(insert, [1])
            with pytest.raises(ConfigError, match="one block"), ctx.transaction():
                pass
            raise OwnError
        with ctx.transaction() as tx:
            tx.execute(insert, [2])
        try:
            with ctx.transaction() as tx:
                tx.execute(insert, [3])
        except ConfigError as error:
            refusals.append(str(error))

    write.enqueue()
    drained(app)
    assert effects(app) == [2]
    assert "put everything into one block" in refusals[0]
    assert state(app) is State.COMPLETED


def test_jobs_enqueued_in_the_block(app: Rota, insert: str) -> None:
    """They join the transaction, as any other."""

    @app.task(name="follow")
    def follow() -> None: ...

    @app.task(name="write", retry=AT_ONCE)
    def write(ctx: Context) -> None:
        with ctx.transaction() as tx:
            tx.execute(insert, [ctx.attempt])
            follow.using(conn=tx).enqueue()
            if ctx.attempt == 1:
                raise OwnError

    write.enqueue()
    drained(app)
    assert effects(app) == [2]
    assert len(app.database.run(app.database.store.list_jobs(JobFilter(task=follow.name)))) == 1


def test_a_result_that_is_not_kept(app: Rota, insert: str) -> None:
    """A result for a task that keeps none is refused, and what was written with it undone."""

    @app.task(name="write", max_attempts=1)
    def write(ctx: Context) -> None:
        with ctx.transaction() as tx:
            tx.execute(insert, [1])
            tx.result(7)

    job = write.enqueue()
    drained(app)
    assert effects(app) == []
    assert "store_result=True" in job.record().errors[0].message


def test_the_job_was_taken_over(app: Rota, insert: str) -> None:
    """A handler whose lease is gone cannot commit: neither its writes nor anything else stays."""
    raised: list[BaseException] = []
    lost: list[int] = []
    app.on(LeasesLost)(lambda event: lost.extend(event.jobs))
    inside, go = threading.Event(), threading.Event()

    @app.task(name="write", max_attempts=1)
    def write(ctx: Context) -> None:
        if raised:
            return  # it has come back
        with closing(opened(app)) as conn:
            try:
                with ctx.transaction(conn):
                    inside.set()
                    assert go.wait(20)
                    conn.execute(insert, [1])
            except BaseException as error:
                raised.append(error)
                raise

    job = write.enqueue()
    with working(app, upkeep=False, concurrency=1, prefetch=0):
        assert inside.wait(20)
        [(session,)] = sessions(app)
        app.database.run(app.database.store.release(session, []))
        go.set()
        until(lambda: lost, "the settlement to be refused")
    assert isinstance(raised[0], LeaseLost)
    assert lost == [job.id]
    assert effects(app) == []


def opened(app: Rota) -> Any:
    """A connection of the handler's own."""
    if app.database.store.name == "sqlite":
        return sqlite3.connect(app.url.removeprefix("sqlite:///"), check_same_thread=False)
    return psycopg.connect(app.url)


def sessions(app: Rota) -> list[tuple[Any]]:
    """The workers' sessions."""
    name = "rota_session" if app.database.store.name == "sqlite" else "rota.session"
    with closing(opened(app)) as conn:
        found: list[tuple[Any]] = conn.execute(f"SELECT id FROM {name}").fetchall()
        return found


def test_cancelled_in_the_block(app: Rota, insert: str) -> None:
    """A job that is cancelled while its block is open leaves nothing behind but its state."""
    inside = threading.Event()

    @app.task(name="write")
    async def write(ctx: Context) -> None:
        async with closing_later(app) as conn, ctx.transaction(conn):
            inside.set()
            await asyncio.sleep(60)
            conn.execute(insert, [1])

    job = write.enqueue()
    with working(app, session_timeout=3.0):
        assert inside.wait(20)
        job.cancel()
        until(lambda: job.status is State.CANCELLED, "the job to stop")
    assert effects(app) == []


def test_cancelled_while_it_begins(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its caller was cancelled before, no complaint tells that the begin failed."""
    begun, goes_on = threading.Event(), threading.Event()

    def begin(**_: object) -> Transaction:
        begun.set()
        goes_on.wait(20)
        message = "the connection broke"
        raise StoreUnavailable(message)

    monkeypatch.setattr(app.database, "begin", begin)
    complaints: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))
        async with asyncio.TaskGroup() as group:
            block = group.create_task(entered())
            await asyncio.to_thread(begun.wait, 20)
            block.cancel()
            # The task has taken its cancellation before this goes on.
            await asyncio.sleep(0)
            goes_on.set()
        del block
        gc.collect()

    async def entered() -> None:
        async with JobTransaction(app.database, None, None, commit=True):
            pass

    asyncio.run(main())
    assert begun.is_set()
    assert complaints == []


@asynccontextmanager
async def closing_later(app: Rota) -> AsyncIterator[Any]:
    """A blocking connection in async code."""
    with closing(opened(app)) as conn:
        yield conn


def test_an_answer_that_was_lost(app: Rota, insert: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the connection breaks as the job leaves its lease, no job is left in nobody's hands."""
    real = app.database.run
    broken: list[str] = []

    def run(operation: Operation[T], conn: object = None) -> T:
        found = real(operation, conn)
        if operation.name == "single_out" and not broken:
            broken.append(operation.name)
            message = "the connection broke"
            raise StoreUnavailable(message)
        return found

    monkeypatch.setattr(app.database, "run", run)

    @app.task(name="write", retry=AT_ONCE)
    def write(ctx: Context, number: int) -> None:
        with ctx.transaction() as tx:
            tx.execute(insert, [number])

    write.enqueue_many([(number,) for number in range(5)])
    drained(app, concurrency=5)
    assert broken
    assert effects(app) == list(range(5))
    assert len(records(app, State.COMPLETED)) == 5


def test_a_worker_that_stops_before_the_end(postgres_url: str) -> None:
    """Its job stays running while the transaction is open, and is rescued when it is rolled back."""
    kept: list[Any] = []
    with Rota(postgres_url) as app:
        with closing(app.database.store.connect()) as connection:
            migrate(app.database.store, connection)

        @app.task(name="write")
        def write(ctx: Context) -> None:
            if ctx.attempt > 1:
                return
            kept.append(conn := opened(app))
            with ctx.transaction(conn, commit=False):
                conn.execute("CREATE TABLE kept ()")

        job = write.enqueue()
        with working(app, session_timeout=1.0):
            until(lambda: kept and not kept[0].closed and job.status is State.RUNNING, "the block")
        assert job.status is State.RUNNING
        with working(app, session_timeout=1.0):
            kept[0].rollback()
            until(lambda: job.status is State.COMPLETED, "the job to be rescued")
        assert job.record().attempt == 2
        kept[0].close()


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_commit_of_the_handlers_own(app: Rota, insert: str, end: str) -> None:
    """With commit=False the handler ends the transaction; the worker finds out what became of it."""

    @app.task(name="write", retry=AT_ONCE, max_attempts=2)
    def write(ctx: Context) -> None:
        with closing(opened(app)) as conn:
            with ctx.transaction(conn, commit=False):
                conn.execute(insert, [ctx.attempt])
            getattr(conn, "commit" if ctx.attempt == 2 else end)()

    moves = settled(app)
    write.enqueue()
    drained(app)
    assert effects(app) == [1 if end == "commit" else 2]
    assert moves == (["complete"] if end == "commit" else ["retry", "complete"])
    [record] = records(app)
    assert record.state is State.COMPLETED
    if end == "rollback":
        assert "was rolled back" in record.errors[0].message


def test_direct_calls(app: Rota, insert: str) -> None:
    """Without a worker it is just a transaction."""

    @app.task(name="write")
    def write(ctx: Context, *, fail: bool) -> None:
        with ctx.transaction() as tx:
            tx.execute(insert, [1])
            tx.result("nobody keeps it")
            if fail:
                raise OwnError

    with pytest.raises(OwnError):
        write(fail=True)
    assert effects(app) == []
    write(fail=False)
    assert effects(app) == [1]


def test_uncommitted_and_rotas_own(app: Rota) -> None:
    """Nobody could commit a connection of Rota's own."""

    @app.task(name="write")
    def write(ctx: Context) -> None:
        ctx.transaction(commit=False)

    with pytest.raises(ConfigError, match="needs conn="):
        write()
