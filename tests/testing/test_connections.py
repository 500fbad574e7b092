"""Every connection and session that `conn=` takes can be a test's, in blocking and async tests."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import aiosqlite
import asyncpg  # type: ignore[import-untyped]
import psycopg
import pytest
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool

from rota import ConfigError, Context, Rota, State
from rota.testing import Kit
from tests.testing.conftest import alchemy, connect, stored

TABLE = "CREATE TABLE note (text text)"
WRITE = "INSERT INTO note (text) VALUES ('{}')"
READ = "SELECT text FROM note ORDER BY text"

Opener = Callable[[str], AbstractAsyncContextManager[Any]]


def engine_of(url: str) -> Engine:
    """An engine; SQLite's begins its transactions, as SQLAlchemy's own page on SQLite says."""
    if not url.startswith("sqlite"):
        return create_engine(alchemy(url, "psycopg"), poolclass=NullPool)
    engine = create_engine(url, poolclass=NullPool)

    @event.listens_for(engine, "connect")
    def no_autocommit(driver: Any, _: Any) -> None:
        driver.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine


# Blocking sessions ---------------------------------------------------------------------------


@pytest.fixture(params=["create_savepoint", "rollback_only", "own"])
def session(request: pytest.FixtureRequest, kit_url: str) -> Any:
    """A session, joined into a transaction of its connection's in one way or the other, or not."""
    engine = engine_of(kit_url)
    if request.param == "own":
        with Session(engine) as session:
            yield session
            session.rollback()
    else:
        with engine.connect() as connection:
            transaction = connection.begin()
            with Session(connection, join_transaction_mode=request.param) as session:
                yield session
            transaction.rollback()
    engine.dispose()
    assert stored(kit_url) == 0


def test_a_session(session: Session, app: Rota) -> None:
    """Jobs of a session are seen, run and undone; the session goes on after a failure."""

    @app.task(name="ship")
    def ship(ctx: Context, order: int) -> None:
        session.execute(text(WRITE.format(order)))
        if order == 2:
            session.execute(text("SELECT * FROM nothing"))
        with ctx.transaction(session) as tx:
            tx.connection.execute(text(WRITE.format(f"{order} in a transaction")))

    session.execute(text(TABLE))
    ship.using(conn=session).enqueue(1)
    with Kit(session, app=app) as kit:
        ship.enqueue(2)
        ship.using(conn=session.connection()).enqueue(3)
        kit.assert_enqueued(ship, count=3)
        ran = kit.drain(raises=False)
        assert [run.completed for run in ran] == [True, False, True]
        rows = session.execute(text(READ)).scalars().all()
        assert rows == ["1", "1 in a transaction", "3", "3 in a transaction"]


def test_code_that_commits_its_session(kit_url: str, app: Rota) -> None:
    """A session in savepoints may commit and roll back, as the code under test does."""
    engine = engine_of(kit_url)
    with engine.connect() as connection:
        transaction = connection.begin()
        connection.execute(text(TABLE))
        session = Session(connection, join_transaction_mode="create_savepoint")

        @app.task(name="ship")
        def ship(order: int) -> None:
            session.execute(text(WRITE.format(order)))
            session.commit()
            session.execute(text(WRITE.format("undone")))
            session.rollback()
            if order == 2:
                raise ValueError

        with Kit(session, app=app) as kit:
            for order in (1, 2, 3):
                ship.using(conn=session).enqueue(order)
                session.commit()
            ran = kit.drain(raises=False)
            assert [run.completed for run in ran] == [True, False, True]
            assert session.execute(text(READ)).scalars().all() == ["1", "3"]
        session.close()
        transaction.rollback()
    engine.dispose()
    assert stored(kit_url) == 0


@pytest.mark.parametrize("kit_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("scoped", [False, True])
def test_a_driver_that_begins_late(kit_url: str, app: Rota, *, scoped: bool) -> None:
    """If the driver begins no transaction before a savepoint, the kit does: commits do nothing."""
    engine = create_engine(kit_url, poolclass=NullPool)
    ship = app.task(name="ship")(lambda: None)
    with engine.connect() as connection:
        transaction = connection.begin()
        made = sessionmaker(connection, join_transaction_mode="create_savepoint")
        session: Any = scoped_session(made) if scoped else made()
        with Kit(session, app=app) as kit:
            ship.using(conn=session).enqueue()
            session.commit()
            ship.enqueue()
            assert kit.drain().completed == 2
            session.commit()
        session.close()
        transaction.rollback()
    engine.dispose()
    assert stored(kit_url) == 0


@pytest.mark.parametrize("kit_url", ["postgres"], indirect=True)
def test_a_session_that_commits_the_tests_transaction(kit_url: str, app: Rota) -> None:
    """A session of its own transaction that a handler commits is told what to do instead."""
    engine = create_engine(alchemy(kit_url, "psycopg"), poolclass=NullPool)
    with Session(engine) as session:

        @app.task(name="ship")
        def ship() -> None:
            session.rollback()

        with Kit(session, app=app) as kit:
            ship.enqueue()
            with pytest.raises(ConfigError, match="create_savepoint"):
                kit.drain()
    engine.dispose()


def test_a_connection_in_a_transaction_of_others(kit_url: str, app: Rota) -> None:
    """As in Django's TestCase: others have begun the transaction, and savepoints lie in it."""
    conn = connect(kit_url)
    if "sqlite" in kit_url:
        conn.isolation_level = None
        conn.execute("BEGIN")
    else:
        conn.autocommit = True
        conn.execute("BEGIN")
    conn.execute("SAVEPOINT test_case")

    @app.task(name="ship")
    def ship(order: int) -> None:
        if order == 2:
            raise ValueError

    ship.using(conn=conn).enqueue(1)
    with Kit(conn, app=app) as kit:
        ship.enqueue(2)
        assert [run.completed for run in kit.drain(raises=False)] == [True, False]
    conn.execute("ROLLBACK TO SAVEPOINT test_case")
    with Kit(conn, app=app) as kit:
        assert kit.jobs() == []
        assert kit.run(ship, 3).completed
    conn.execute("ROLLBACK")
    conn.close()
    assert stored(kit_url) == 0


# Async connections ---------------------------------------------------------------------------


@asynccontextmanager
async def of_psycopg(url: str) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(url) as conn:
        yield conn
        await conn.rollback()


@asynccontextmanager
async def of_asyncpg(url: str) -> AsyncIterator[Any]:
    conn = await asyncpg.connect(url)
    transaction = conn.transaction()
    await transaction.start()
    yield conn
    await transaction.rollback()
    await conn.close()


@asynccontextmanager
async def of_aiosqlite(url: str) -> AsyncIterator[Any]:
    async with aiosqlite.connect(url.removeprefix("sqlite:///")) as conn:
        yield conn
        await conn.rollback()


@asynccontextmanager
async def of_session(url: str, driver: str, **options: Any) -> AsyncIterator[Any]:
    engine = create_async_engine(alchemy(url, driver), poolclass=NullPool)
    async with engine.connect() as connection:
        transaction = await connection.begin()
        async with AsyncSession(connection, **options) as session:
            yield session
        await transaction.rollback()
    await engine.dispose()


def _session(driver: str, **options: Any) -> Opener:
    return lambda url: of_session(url, driver, **options)


@asynccontextmanager
async def of_blocking(url: str) -> AsyncIterator[Any]:
    conn = connect(url)
    yield conn
    conn.rollback()
    conn.close()


JOINED = {"join_transaction_mode": "create_savepoint"}
POSTGRES: dict[str, Opener] = {
    "psycopg": of_psycopg,
    "asyncpg": of_asyncpg,
    "session-asyncpg": _session("asyncpg"),
    "session-psycopg": _session("psycopg"),
    "joined-asyncpg": _session("asyncpg", **JOINED),
    "joined-psycopg": _session("psycopg", **JOINED),
    "blocking": of_blocking,
}
SQLITE: dict[str, Opener] = {
    "aiosqlite": of_aiosqlite,
    "session-aiosqlite": _session("aiosqlite"),
    "blocking": of_blocking,
}
CASES = [
    *(pytest.param("postgres", opener, id=f"postgres-{name}") for name, opener in POSTGRES.items()),
    *(pytest.param("sqlite", opener, id=f"sqlite-{name}") for name, opener in SQLITE.items()),
]

on_each = pytest.mark.parametrize(("kit_url", "opened"), CASES, indirect=["kit_url"])


async def execute(conn: Any, statement: str) -> list[Any]:
    """Run a statement on a connection of any kind; the first column of its rows."""
    if isinstance(conn, asyncpg.Connection):
        return [row[0] for row in await conn.fetch(statement)]
    if isinstance(conn, AsyncSession):
        result: Any = await conn.execute(text(statement))
        return list(result.scalars().all()) if result.returns_rows else []
    cursor = conn.execute(statement)
    if hasattr(cursor, "__await__"):
        cursor = await cursor
    if not cursor.description:
        return []
    rows = cursor.fetchall()
    return [row[0] for row in (await rows if hasattr(rows, "__await__") else rows)]


@on_each
@pytest.mark.asyncio
async def test_an_async_test(kit_url: str, opened: Opener, app: Rota) -> None:
    """Jobs are seen, run and undone, of async and of blocking handlers."""
    async with opened(kit_url) as conn:

        @app.task(name="child", store_result=True)
        def child(order: int) -> int:
            if order == 0:
                raise ValueError
            return order

        @app.task(name="ship")
        async def ship(order: int) -> None:
            await execute(conn, WRITE.format(order))
            if order == 2:
                await execute(conn, "SELECT * FROM nothing")
            await child.aenqueue(order)

        await execute(conn, TABLE)
        await ship.using(conn=conn).aenqueue(1)
        with Kit(conn, app=app) as kit:
            await ship.aenqueue(2)
            handle = await ship.using(conn=conn).aenqueue(3)
            await kit.aassert_enqueued(ship, order=3)
            await kit.arefute_enqueued(child)
            ran = await kit.adrain(raises=False)
            assert [run.completed for run in ran.of(ship)] == [True, False, True]
            assert [run.result for run in ran.of(child)] == [1, 3]
            assert await execute(conn, READ) == ["1", "3"]
            assert await handle.astatus() is State.COMPLETED
            assert (await kit.arun(child, 7)).result == 7
            with pytest.raises(ValueError, match=r"^$"):
                await kit.arun(child, 0)
            later = await ship.using(delay=3600).aenqueue(4)
            assert len(await kit.adrain()) == 0
            await kit.atravel(hours=2)
            assert (await kit.adrain(raises=False)).completed == 2
            assert await later.astatus() is State.COMPLETED
            with kit.inline():
                assert await (await child.aenqueue(5)).astatus() is State.COMPLETED
            assert len(await kit.ajobs(child)) == 6
    assert stored(kit_url) == 0


@on_each
@pytest.mark.asyncio
async def test_a_blocking_handler_enqueues(kit_url: str, opened: Opener, app: Rota) -> None:
    """A blocking handler enqueues without await, whatever the test's connection is."""

    @app.task(name="child")
    async def child() -> None: ...

    @app.task(name="ship")
    def ship() -> None:
        child.enqueue()

    async with opened(kit_url) as conn:
        with Kit(conn, app=app) as kit:
            await ship.aenqueue()
            assert (await kit.adrain()).completed == 2
            if not isinstance(conn, psycopg.Connection | sqlite3.Connection):
                # In its thread a blocking handler may also run jobs in place.
                with kit.inline():
                    await ship.aenqueue()
                assert len(await kit.ajobs(child, state="completed")) == 2
    assert stored(kit_url) == 0


@on_each
@pytest.mark.asyncio
async def test_an_async_job_transaction(kit_url: str, opened: Opener, app: Rota) -> None:
    """`async with ctx.transaction(conn)` is a savepoint that completes the job."""
    async with opened(kit_url) as conn:

        @app.task(name="ship")
        async def ship(ctx: Context, order: int) -> None:
            async with ctx.transaction(conn):
                await execute(conn, WRITE.format(order))
                if order == 2:
                    raise ValueError

        await execute(conn, TABLE)
        with Kit(conn, app=app) as kit:
            for order in (1, 2):
                await ship.aenqueue(order)
            ran = await kit.adrain(raises=False, crash="before_settle")
            assert (ran.completed, ran.retried) == (1, 1)
            assert await execute(conn, READ) == ["1"]


@pytest.mark.parametrize(
    ("kit_url", "opened"),
    [
        pytest.param("postgres", of_psycopg, id="psycopg"),
        pytest.param("sqlite", of_blocking, id="sqlite"),
    ],
    indirect=["kit_url"],
)
@pytest.mark.asyncio
async def test_an_async_transaction_of_rotas_own(kit_url: str, opened: Opener, app: Rota) -> None:
    """`rota.transaction()` and `ctx.transaction()` without a connection go to the test's."""
    async with opened(kit_url) as conn:

        @app.task(name="ship")
        async def ship(ctx: Context) -> None:
            async with ctx.transaction() as tx:
                await tx.aexecute(WRITE.format("shipped"))

        await execute(conn, TABLE)
        with Kit(conn, app=app) as kit:
            async with app.transaction() as tx:
                await tx.aexecute(WRITE.format("ordered"))
                await ship.using(conn=tx).aenqueue()
            with pytest.raises(Exception, match="nothing"):
                await undone(app)
            assert (await kit.adrain()).completed == 1
            assert await execute(conn, READ) == ["ordered", "shipped"]


async def undone(app: Rota) -> None:
    """A transaction that fails."""
    async with app.transaction() as tx:
        await tx.aexecute(WRITE.format("undone"))
        await tx.aexecute("SELECT * FROM nothing")


@pytest.mark.asyncio
async def test_many_jobs_are_not_copied(app: Rota, kit_url: str) -> None:
    """An enqueue_many of thousands is seen as well."""

    @app.task(name="ship")
    async def ship(order: int) -> None: ...

    async with of_blocking(kit_url) as conn:
        with Kit(conn, app=app) as kit:
            await ship.aenqueue_many([(order,) for order in range(2000)])
            await kit.aassert_enqueued(ship, count=2000)
