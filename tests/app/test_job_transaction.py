"""A job's completion in a transaction of its handler's, through every kind of connection."""

import secrets
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, nullcontext, suppress
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.orm import scoped_session, sessionmaker

from rota import (
    ConfigError,
    Context,
    LeaseLost,
    Rota,
    State,
    StoreError,
    Task,
    TransactionEnded,
)
from rota.app.job_transaction import Completion, JobTransaction, Stage
from rota.model.job import ClaimedJob, JobSpec, LeaseId, Order
from tests.app.callers import KINDS, POSTGRES, AsyncAlchemy, Awaiting, Caller, Observer, calling

OWN_ROW = "INSERT INTO orders (id) VALUES (7)"


class OwnError(Exception):
    """An error of the handler's."""


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """A kind of connection."""
    name: str = request.param
    return name


@pytest.fixture
def store_url(request: pytest.FixtureRequest, tmp_path: object) -> str:
    """The URL of an empty database to which that kind of connection leads."""
    kind = request.getfixturevalue("kind") if "kind" in request.fixturenames else "sqlite3"
    if kind in POSTGRES:
        url: str = request.getfixturevalue("postgres_url")
        return url
    return f"sqlite:///{tmp_path}/rota.db"


@pytest.fixture
def observer(app: Rota) -> Iterator[Observer]:
    """Somebody who sees what is committed, and who has claimed two jobs."""
    observer = Observer(app.url)
    yield observer
    observer.close()


@pytest.fixture
def completion(app: Rota, send: Task[..., Any, Any], observer: Observer) -> Completion:
    """The first of two jobs of one lease, as its worker would have it."""
    app.database.run(
        app.database.store.enqueue(Order(JobSpec(send.name), ['{"number":1}', '{"number":2}']))
    )
    jobs: list[ClaimedJob] = observer.own.run(
        observer.store.claim(observer.session, ["default"], 10)
    )
    return Completion(
        jobs[0],
        observer.session,
        send,
        moving=lambda: nullcontext(forget),
        doubtful=lambda: None,
    )


def forget(_: LeaseId, __: LeaseId) -> None:
    """What a worker would do with the old lease and the new one."""


@asynccontextmanager
async def ready(kind: str, url: str) -> AsyncIterator[Caller]:
    """A caller that is in no transaction: that of asyncpg is Rota's to begin."""
    async with calling(kind, url) as caller:
        if kind in {"asyncpg", "asyncpg-pool"}:
            await caller.transaction.rollback()  # type: ignore[attr-defined]
        yield caller


def awaits(caller: Caller) -> bool:
    """Whether its connection is for async code alone."""
    return isinstance(caller, Awaiting | AsyncAlchemy) or caller.awaits


async def within(
    app: Rota, completion: Completion, caller: Caller, error: Exception | None
) -> None:
    """A block that writes a row, and fails or not."""
    async with block(app, completion, caller) as tx:
        assert tx.connection is caller.conn
        await caller.execute(OWN_ROW)
        if error is not None:
            raise error


@asynccontextmanager
async def block(
    app: Rota, completion: Completion, caller: Caller, *, commit: bool = True
) -> AsyncIterator[JobTransaction]:
    """A block on the caller's connection; an async one where that is."""
    transaction = JobTransaction(app.database, completion, caller.conn, commit=commit)
    if awaits(caller):
        async with transaction as tx:
            yield tx
    else:
        with transaction as tx:
            yield tx


async def end(kind: str, caller: Caller, how: str) -> None:
    """End the caller's transaction, as the caller would."""
    if kind in {"asyncpg", "asyncpg-pool"}:
        await caller.execute(how)
    else:
        await getattr(caller, how)()


@pytest.mark.asyncio
async def test_commit(app: Rota, kind: str, observer: Observer, completion: Completion) -> None:
    """The row and the completion are there together; the other job of the lease is left alone."""
    async with ready(kind, observer.url) as caller:
        await within(app, completion, caller, None)
    assert observer.orders() == [7]
    assert [job.state for job in observer.jobs()] == [State.RUNNING, State.COMPLETED]
    assert completion.stage is Stage.COMPLETED


@pytest.mark.asyncio
async def test_rollback(app: Rota, kind: str, observer: Observer, completion: Completion) -> None:
    """Neither is there, and the same connection can be used again."""
    async with ready(kind, observer.url) as caller:
        with pytest.raises(OwnError):
            await within(app, completion, caller, OwnError())
        assert observer.orders() == []
        assert [job.state for job in observer.jobs()] == [State.RUNNING] * 2
        if kind == "sqlite3-explicit":
            await caller.execute("BEGIN")
        await within(app, completion, caller, None)
    assert observer.orders() == [7]
    assert [job.state for job in observer.jobs()] == [State.RUNNING, State.COMPLETED]


@pytest.mark.asyncio
@pytest.mark.table
@pytest.mark.parametrize("how", ["commit", "rollback"])
@pytest.mark.parametrize("writes", [True, False])
async def test_with_a_successor(
    app: Rota, kind: str, observer: Observer, completion: Completion, how: str, *, writes: bool
) -> None:
    """The first job of its queue is there with the completion, or neither is.

    That holds also where nothing else is written.
    """

    @app.task(name="next", queue="a new one")
    def following() -> None: ...

    completion.task.on_success, completion.task.chained = "next", True
    async with ready(kind, observer.url) as caller:
        if kind in {"asyncpg", "asyncpg-pool"}:
            await caller.execute("BEGIN")
        async with block(app, completion, caller, commit=False):
            if writes:
                await caller.execute(OWN_ROW)
        await end(kind, caller, how)
    came = {job.task: job.state for job in observer.jobs() if job.task == "next"}
    assert came == ({"next": State.AVAILABLE} if how == "commit" else {})
    assert len(observer.jobs()) == (3 if how == "commit" else 2)
    states = [job.state for job in observer.jobs() if job.task != "next"]
    done = State.COMPLETED if how == "commit" else State.RUNNING
    assert states == [State.RUNNING, done]


@pytest.mark.asyncio
@pytest.mark.parametrize("how", ["commit", "rollback"])
async def test_ended_within_the_block(
    app: Rota, kind: str, observer: Observer, completion: Completion, how: str
) -> None:
    """If the handler commits or rolls back, the job is not completed, and may be tried again."""
    async with ready(kind, observer.url) as caller:
        with pytest.raises(TransactionEnded, match="before its block ended"):  # noqa: PT012
            async with block(app, completion, caller):
                await caller.execute(OWN_ROW)
                await end(kind, caller, how)
    assert observer.orders() == ([7] if how == "commit" else [])
    assert [job.state for job in observer.jobs()] == [State.RUNNING] * 2
    assert completion.stage is Stage.NONE


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in {"sqlite3", "aiosqlite"}])
@pytest.mark.parametrize("commit", [True, False])
async def test_another_one_is_open_at_the_end(
    app: Rota, kind: str, observer: Observer, completion: Completion, *, commit: bool
) -> None:
    """What was written after the commit is not taken for the whole."""
    async with ready(kind, observer.url) as caller:
        if not commit and "asyncpg" in {kind, kind.removesuffix("-pool")}:
            await caller.execute("BEGIN")
        with pytest.raises(TransactionEnded):  # noqa: PT012 - a block is the point
            async with block(app, completion, caller, commit=commit):
                await caller.execute(OWN_ROW)
                await end(kind, caller, "commit")
                if kind in {"asyncpg", "asyncpg-pool", "sqlite3-explicit"}:
                    await caller.execute("BEGIN")
                await caller.execute("INSERT INTO orders (id) VALUES (8)")
    assert observer.orders() == [7]
    assert [job.state for job in observer.jobs()] == [State.RUNNING] * 2


@pytest.mark.asyncio
@pytest.mark.table
@pytest.mark.parametrize("what", ["nothing", "a look", "a savepoint"])
async def test_what_ends_nothing(
    app: Rota, kind: str, observer: Observer, completion: Completion, what: str
) -> None:
    """A block that writes nothing, or undoes a part, completes the job."""
    async with ready(kind, observer.url) as caller, block(app, completion, caller):
        if what == "a look":
            await caller.execute("SELECT id FROM orders")
        elif what == "a savepoint":
            await caller.execute(OWN_ROW)
            async with caller.savepoint():
                await caller.execute("INSERT INTO orders (id) VALUES (8)")
    assert observer.orders() == ([7] if what == "a savepoint" else [])
    assert completion.stage is Stage.COMPLETED
    assert [job.state for job in observer.jobs()] == [State.RUNNING, State.COMPLETED]


@pytest.mark.parametrize("kind", ["psycopg", "sqlite3"])
@pytest.mark.parametrize("how", ["COMMIT", "ROLLBACK", "COMMIT and BEGIN", "ROLLBACK and BEGIN"])
def test_rotas_own_ended_within_the_block(
    app: Rota, kind: str, observer: Observer, completion: Completion, how: str
) -> None:
    """The same on a connection of Rota's, which serves the next one."""
    del kind
    with (  # noqa: PT012 - a block is the point
        pytest.raises(TransactionEnded),
        JobTransaction(app.database, completion, None, commit=True) as tx,
    ):
        tx.execute(OWN_ROW)
        for statement in how.split(" and "):
            tx.execute(statement)
    assert observer.orders() == ([7] if "COMMIT" in how else [])
    assert completion.stage is Stage.NONE
    assert [job.state for job in observer.jobs()] == [State.RUNNING] * 2
    with JobTransaction(app.database, completion, None, commit=True) as tx:
        tx.execute("INSERT INTO orders (id) VALUES (9)")
    assert [job.state for job in observer.jobs()] == [State.RUNNING, State.COMPLETED]


@pytest.mark.parametrize("kind", ["psycopg"])
@pytest.mark.parametrize("fails", [False, True])
def test_a_block_of_the_drivers(
    app: Rota, kind: str, observer: Observer, completion: Completion, *, fails: bool
) -> None:
    """A block of the driver's within is a part of the transaction, and does not end it."""
    del kind
    with (
        closing(psycopg.connect(observer.url)) as conn,
        suppress(OwnError),
        JobTransaction(app.database, completion, conn, commit=True),
    ):
        with conn.transaction():
            conn.execute(OWN_ROW)
        if fails:
            raise OwnError
    assert observer.orders() == ([] if fails else [7])
    assert completion.stage is (Stage.NONE if fails else Stage.COMPLETED)


@pytest.mark.parametrize("kind", ["pysqlite-Session"])
@pytest.mark.parametrize("ended", [False, True])
def test_a_scoped_session(
    app: Rota, kind: str, observer: Observer, completion: Completion, *, ended: bool
) -> None:
    """The session behind it is looked at."""
    del kind
    engine = create_engine(f"sqlite+pysqlite://{observer.url.partition('://')[2]}")
    session = scoped_session(sessionmaker(engine))
    with (
        nullcontext() if not ended else pytest.raises(TransactionEnded),
        JobTransaction(app.database, completion, session, commit=True),
    ):
        session.execute(text(OWN_ROW))
        if ended:
            session.commit()
            session.execute(text("INSERT INTO orders (id) VALUES (8)"))
    session.remove()
    engine.dispose()
    assert observer.orders() == [7]
    assert completion.stage is (Stage.NONE if ended else Stage.COMPLETED)


@pytest.mark.parametrize("kind", ["psycopg"])
def test_an_isolation_level_set_in_the_block(
    app: Rota, kind: str, observer: Observer, completion: Completion
) -> None:
    """The transaction has no snapshot yet when the block begins."""
    del kind
    with closing(psycopg.connect(observer.url)) as conn:
        with JobTransaction(app.database, completion, conn, commit=True):
            conn.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
            conn.execute(OWN_ROW)
        assert conn.execute("SELECT current_setting('rota.tag', true)").fetchone() in {
            ("",),
            (None,),
        }
    assert observer.orders() == [7]


@pytest.mark.asyncio
async def test_the_fence(app: Rota, kind: str, observer: Observer, completion: Completion) -> None:
    """A job that was taken over in the meantime: nothing is stored, and the block says so."""
    async with ready(kind, observer.url) as caller:
        transaction = JobTransaction(app.database, completion, caller.conn, commit=True)
        with pytest.raises(LeaseLost, match="taken over"):  # noqa: PT012 - a block is the point
            if awaits(caller):
                async with transaction:
                    observer.own.run(observer.store.close_session(observer.session))
                    await caller.execute(OWN_ROW)
            else:
                with transaction:
                    observer.own.run(observer.store.close_session(observer.session))
                    await caller.execute(OWN_ROW)
        with pytest.raises(LeaseLost, match="taken over"):
            await within(app, completion, caller, None)
    assert observer.orders() == []
    assert [job.state for job in observer.jobs()] == [State.AVAILABLE] * 2


def test_taken_over_before_the_block(app: Rota, observer: Observer, completion: Completion) -> None:
    """What is in the block is not begun with."""
    begun: list[str] = []
    observer.own.run(observer.store.close_session(observer.session))
    with (
        pytest.raises(LeaseLost, match="taken over"),
        JobTransaction(app.database, completion, None, commit=True),
    ):
        begun.append("begun")
    assert begun == []


def test_async_connections_in_blocking_code(app: Rota, completion: Completion) -> None:
    """They are refused with what to write instead, and so is what is no connection."""
    import aiosqlite

    wrong = aiosqlite.connect(":memory:")
    with pytest.raises(ConfigError, match="async with"):
        JobTransaction(app.database, completion, wrong, commit=True).__enter__()
    with pytest.raises(ConfigError, match="Rota cannot use"):
        JobTransaction(app.database, completion, object(), commit=True).__enter__()
    assert completion.stage is Stage.NONE


def test_autocommit(app: Rota, observer: Observer, completion: Completion) -> None:
    """A connection without a transaction is refused at the block's begin, one with BEGIN is not."""
    path = observer.url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        with (
            pytest.raises(ConfigError, match="autocommit"),
            JobTransaction(app.database, completion, conn, commit=True),
        ):
            pass
        conn.execute("BEGIN")
        with JobTransaction(app.database, completion, conn, commit=True):
            conn.execute(OWN_ROW)
    assert observer.orders() == [7]


@pytest.mark.parametrize("kind", ["psycopg"])
def test_autocommit_of_psycopg(
    app: Rota, kind: str, observer: Observer, completion: Completion
) -> None:
    """The same with psycopg, whose blocks need commit=False: they commit by themselves."""
    del kind
    with closing(psycopg.connect(observer.url, autocommit=True)) as conn:
        with (
            pytest.raises(ConfigError, match="autocommit"),
            JobTransaction(app.database, completion, conn, commit=True),
        ):
            pass
        with conn.transaction(), JobTransaction(app.database, completion, conn, commit=False):
            conn.execute(OWN_ROW)
    assert observer.orders() == [7]
    assert completion.stage is Stage.SETTLED
    assert [job.state for job in observer.jobs()] == [State.RUNNING, State.COMPLETED]


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", ["psycopg", "psycopg-async", "asyncpg"])
async def test_a_transaction_that_the_handler_prepares(
    app: Rota, kind: str, observer: Observer, completion: Completion
) -> None:
    """Where Rota does not commit, nothing is notified, even if a process waits: that forbids it."""
    name = f"rota {secrets.token_hex(4)}"
    with closing(observer.store.listener()) as listener:
        listener.listen()
        async with calling(kind, observer.url) as caller:
            transaction = JobTransaction(app.database, completion, caller.conn, commit=False)
            if awaits(caller):
                async with transaction:
                    await caller.execute(OWN_ROW)
            else:
                with transaction:
                    await caller.execute(OWN_ROW)
            await caller.execute(f"PREPARE TRANSACTION '{name}'")
    with closing(psycopg.connect(observer.url, autocommit=True)) as conn:
        conn.execute(f"COMMIT PREPARED '{name}'".encode())
    assert observer.orders() == [7]
    assert [job.state for job in observer.jobs()] == [State.RUNNING, State.COMPLETED]


@pytest.mark.parametrize("kind", ["psycopg"])
def test_a_commit_that_is_refused(
    app: Rota, kind: str, observer: Observer, completion: Completion
) -> None:
    """What fails at the commit undoes the completion, too, and comes through."""
    del kind
    with closing(psycopg.connect(observer.url)) as conn:
        conn.execute("CREATE TABLE twice (id integer UNIQUE DEFERRABLE INITIALLY DEFERRED)")
        conn.commit()
        with (
            pytest.raises(psycopg.errors.UniqueViolation),
            JobTransaction(app.database, completion, conn, commit=True),
        ):
            conn.execute("INSERT INTO orders VALUES (7); INSERT INTO twice VALUES (1), (1)")
    assert observer.orders() == []
    assert [job.state for job in observer.jobs()] == [State.RUNNING] * 2
    assert completion.stage is Stage.SETTLED


@pytest.mark.parametrize("kind", ["psycopg"])
@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_isolation_levels(
    app: Rota, kind: str, observer: Observer, completion: Completion, level: str
) -> None:
    """A snapshot that begins in the block sees the job's lease; an older one is refused."""
    del kind
    with closing(psycopg.connect(observer.url)) as conn:
        conn.execute(f"SET default_transaction_isolation = '{level}'".encode())
        conn.commit()
        conn.execute("SELECT 1")
        with (
            pytest.raises((LeaseLost, StoreError)),
            JobTransaction(app.database, completion, conn, commit=True),
        ):
            conn.execute(OWN_ROW)
        assert observer.orders() == []
        with JobTransaction(app.database, completion, conn, commit=True):
            conn.execute(OWN_ROW)
    assert observer.orders() == [7]
    assert [job.state for job in observer.jobs()] == [State.RUNNING, State.COMPLETED]


def test_a_context_without_any(app: Rota) -> None:
    """A context that nobody has given a way to transactions says what to do."""
    with pytest.raises(ConfigError, match="needs a job, and this run has none"):
        Context.alone(JobSpec("nothing")).transaction()
    del app
