"""Bad use of the kit: each is an error that says what to do."""

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from rota import ConfigError, Rota, SchemaMissing, State
from rota.app.app import APPS
from rota.testing import Kit
from tests.testing.conftest import alchemy, connect, stored

only_postgres = pytest.mark.parametrize("kit_url", ["postgres"], indirect=True)
only_sqlite = pytest.mark.parametrize("kit_url", ["sqlite"], indirect=True)


@pytest.fixture
def ship(app: Rota) -> Any:
    @app.task(name="ship")
    def ship() -> None: ...

    return ship


def refused(app: Rota, conn: object, words: str) -> None:
    """The kit does not take it, and the app keeps its own database."""
    store = app.database.store
    with pytest.raises(ConfigError, match=words):
        Kit(conn, app=app)
    assert app.database.store is store


def test_no_connection(app: Rota) -> None:
    """A kit without a connection says how it gets one."""
    with Kit(app=app) as kit, pytest.raises(ConfigError, match=r"rota_test\.use.*rota_connection"):
        kit.drain()


def test_an_enqueue_without_a_connection(app: Rota, ship: Any, kit_url: str, conn: Any) -> None:
    """Nothing is committed before the kit has a connection; `conn=` and real commits are meant."""
    with Kit(app=app) as kit:
        with pytest.raises(ConfigError, match=r"would be committed.*rota_test\.use"):
            ship.enqueue()
        with pytest.raises(ConfigError, match=r"would be committed.*rota_test\.use"):
            asyncio.run(ship.aenqueue())
        with kit.committed():
            ship.enqueue()
        with pytest.raises(ConfigError, match="would be committed"):
            ship.enqueue()
        ship.using(conn=conn).enqueue()
        conn.rollback()
        kit.use(conn)
        ship.enqueue()
    conn.rollback()
    assert stored(kit_url) == 0
    assert app.middleware.enqueueing == []


def test_autocommit(app: Rota, kit_url: str) -> None:
    """There is no transaction that a rollback could undo."""
    conn = connect(kit_url)
    if isinstance(conn, sqlite3.Connection):
        conn.isolation_level = None
    else:
        conn.autocommit = True
    refused(app, conn, "not in a transaction.*force_rollback")
    conn.close()


@only_postgres
def test_autocommit_of_sqlalchemy(app: Rota, kit_url: str) -> None:
    """Nor is there one here."""
    engine = create_engine(alchemy(kit_url, "psycopg"), isolation_level="AUTOCOMMIT")
    with Session(engine) as session:
        refused(app, session, "not in a transaction")
    engine.dispose()


@only_postgres
@pytest.mark.asyncio
async def test_asyncpg_outside_of_a_transaction(app: Rota, kit_url: str) -> None:
    """Connections of asyncpg commit each statement, unless a transaction is begun."""
    conn = await asyncpg.connect(kit_url)
    with (
        Kit(conn, app=app) as kit,
        pytest.raises(ConfigError, match=r"conn\.transaction\(\)\.start"),
    ):
        await kit.adrain()
    await conn.close()


@only_postgres
@pytest.mark.asyncio
async def test_an_enqueue_with_asyncpg_outside_of_a_transaction(
    app: Rota, kit_url: str, ship: Any
) -> None:
    """Nothing is committed by an enqueue that comes before the kit's first look at the connection."""
    conn = await asyncpg.connect(kit_url)
    with Kit(conn, app=app):
        for _ in range(2):
            with pytest.raises(ConfigError, match="not in a transaction"):
                await ship.aenqueue()
            with pytest.raises(ConfigError, match="not in a transaction"):
                await ship.aenqueue(conn=conn)
            with pytest.raises(ConfigError, match="not in a transaction"):
                async with app.transaction() as tx:
                    await tx.execute("SELECT 1")
    await conn.close()
    assert stored(kit_url) == 0


@only_postgres
def test_another_database(app: Rota, kit_url: str) -> None:
    """The app's jobs are in another database than the session leads to."""
    with psycopg.connect(kit_url, dbname="postgres") as conn:
        refused(app, conn, r"leads to the database 'postgres', and the app.*app\.use\(url\)")


@only_sqlite
def test_another_file(app: Rota, tmp_path: Path) -> None:
    """The app's jobs are in another file."""
    conn = sqlite3.connect(tmp_path / "other.db")
    refused(app, conn, r"other\.db.*rota\.db")
    conn.close()


def test_another_kind_of_database(
    app: Rota, kit_url: str, postgres_url: str, tmp_path: Path
) -> None:
    """A session of SQLite's cannot be that of an app on PostgreSQL, nor the other way round."""
    if kit_url.startswith("sqlite"):
        with psycopg.connect(postgres_url) as conn:
            refused(app, conn, "leads to postgres, but this Rota keeps its jobs in sqlite")
    else:
        other = sqlite3.connect(tmp_path / "other.db")
        refused(app, other, "leads to sqlite, but this Rota keeps its jobs in postgres")
        other.close()


def test_no_connection_at_all(app: Rota) -> None:
    """A thing that is no connection is named."""
    refused(app, object(), "conn is of type object, which Rota cannot use")


def test_no_tables(postgres_url: str) -> None:
    """A database without Rota's tables needs `rota migrate`."""
    app = Rota(postgres_url)
    with psycopg.connect(postgres_url) as conn, pytest.raises(SchemaMissing, match="rota migrate"):
        Kit(conn, app=app)
    app.close()


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("name", [":memory:", "new.db"])
def test_a_database_without_tables_gets_them(tmp_path: Path, name: str, begun: bool) -> None:  # noqa: FBT001
    """SQLite's tables are made in the transaction, and go with it."""
    file = tmp_path / name
    app = Rota(f"sqlite:///{tmp_path}/new.db")

    @app.task(name="ship")
    def ship() -> None: ...

    conn = sqlite3.connect(name if name == ":memory:" else file)
    for _ in range(2):
        if begun:
            conn.execute("BEGIN IMMEDIATE")
        with Kit(conn, app=app) as kit:
            ship.enqueue()
            assert kit.drain().completed == 1
        conn.rollback()
        assert conn.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    conn.close()
    app.close()


@only_sqlite
def test_jobs_that_were_there_before(app: Rota, ship: Any, kit_url: str) -> None:
    """What is committed is not the test's, whether its transaction has begun before the kit or not."""
    committed = ship.enqueue()
    conn = connect(kit_url)
    for begun in (False, True):
        if begun:
            ship.enqueue(conn=conn)
        with Kit(conn, app=app) as kit:
            ship.enqueue()
            assert len(kit.jobs()) == 1 + begun
            assert kit.drain().completed == 1 + begun
        conn.rollback()
    conn.close()
    assert committed.cancel() is State.CANCELLED


@pytest.mark.asyncio
async def test_an_async_session_in_blocking_code(app: Rota, ship: Any, kit_url: str) -> None:
    """Blocking calls name their async twins."""
    driver = "aiosqlite" if kit_url.startswith("sqlite") else "psycopg"
    engine = create_async_engine(alchemy(kit_url, driver))
    async with AsyncSession(engine) as session:
        with Kit(session, app=app) as kit:
            for call in (kit.drain, kit.jobs, ship.enqueue):
                with pytest.raises(ConfigError, match=r"connection is async.*adrain"):
                    call()
            assert (await kit.arun(ship)).completed
        await session.rollback()
    await engine.dispose()


@pytest.mark.asyncio
async def test_an_async_handler_in_a_blocking_drain(kit: Kit, app: Rota) -> None:
    """On a running event loop, `drain` cannot run an async handler."""

    @app.task(name="awaiting")
    async def awaiting() -> None: ...

    awaiting.enqueue()
    with pytest.raises(ConfigError, match="adrain"):
        kit.drain()
    assert (await kit.adrain()).completed == 1


@pytest.mark.usefixtures("kit")
def test_another_connection(ship: Any, kit_url: str) -> None:
    """What is enqueued on another connection would be committed, and not be seen."""
    other = connect(kit_url)
    with pytest.raises(ConfigError, match="not the test's connection"):
        ship.enqueue(conn=other)
    other.close()


@pytest.mark.usefixtures("kit")
def test_two_kits(app: Rota, conn: Any) -> None:
    """One app cannot be in two tests' transactions."""
    with pytest.raises(ConfigError, match="another test has this database"):
        Kit(conn, app=app)
    with pytest.raises(ConfigError, match="before or after the test"):
        app.use("sqlite:///other.db")


def test_a_transaction_that_was_ended(kit: Kit, ship: Any, conn: Any) -> None:
    """Code under test that rolls back has taken the kit's session along."""
    ship.enqueue()
    conn.rollback()
    with pytest.raises(ConfigError, match="has ended the test's transaction"):
        kit.drain()


def test_a_function_that_is_no_task(kit: Kit) -> None:
    """It may lack its decorator."""
    with pytest.raises(ConfigError, match=r"decorated with @rota\.task"):
        kit.run(len)  # type: ignore[arg-type]


def test_words_that_are_not_known(kit: Kit) -> None:
    """Options are checked."""
    with pytest.raises(ConfigError, match='due must be "now" or "all"'):
        kit.drain(due="soon")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="before_settle"):
        kit.drain(crash="always")  # type: ignore[arg-type]


@pytest.fixture
def no_apps(app: Rota) -> Iterator[None]:
    """A process that does not know even this app."""
    del app
    apps = list(APPS)
    APPS.clear()
    yield
    APPS.update(apps)


@pytest.mark.usefixtures("no_apps")
@only_sqlite
def test_which_app(kit_url: str, app: Rota) -> None:
    """The only app of the process is meant; of several, one has to be named."""
    conn = connect(kit_url)
    with pytest.raises(ConfigError, match=r"app=\.\.\."):
        Kit(conn)
    APPS.add(app)
    with Kit(conn) as kit:
        assert kit.jobs() == []
    with Rota(kit_url), pytest.raises(ConfigError, match=r"2 Rota apps.*rota_app"):
        Kit(conn)
    conn.close()
