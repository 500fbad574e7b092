"""Connections that an enqueue must refuse, and what a caller's settings must not break."""

import re
import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import aiosqlite
import asyncpg  # type: ignore[import-untyped]
import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import NullPool

from rota import ConfigError, EnqueueCall, Rota, SchemaMissing, StoreError
from rota.database import adapters
from rota.store.url import shown
from tests.app.callers import KINDS, POSTGRES, Observer, Send, calling, enqueue, enqueue_many

pytestmark = pytest.mark.asyncio


@pytest.fixture
def observer(app: Rota) -> Iterator[Observer]:
    """Somebody who sees what is committed."""
    observer = Observer(app.url)
    yield observer
    observer.close()


@pytest.fixture
def sqlite_path(tmp_path: object) -> str:
    """The path of a SQLite database that is not Rota's."""
    return f"{tmp_path}/other.db"


async def test_no_connection(send: Send, observer: Observer) -> None:
    """What is no connection is refused with a list of what can be one."""
    for conn in ("no connection", 7, object(), [], sqlite3, print):
        for task in (send, send.using(delay=1)):
            with pytest.raises(ConfigError, match="takes connections of psycopg, asyncpg"):
                task.enqueue(1, conn=conn)
        with pytest.raises(ConfigError, match="takes connections of psycopg, asyncpg"):
            await send.aenqueue(1, conn=conn)
        for jobs in ([(1,)], [(1,)] * 500):
            with pytest.raises(ConfigError, match="takes connections of psycopg, asyncpg"):
                send.enqueue_many(jobs, conn=conn)
    assert observer.jobs() == []


async def test_using_none(app: Rota, send: Send, observer: Observer) -> None:
    """`using(conn=None)` is a connection that the caller does not have, and no job apart from it."""
    for task in (send, send.using(delay=1)):
        with pytest.raises(ConfigError, match=r"using\(conn=None\): there is no transaction"):
            task.using(conn=None)

    @app.around_enqueue
    def apart(call: EnqueueCall, call_next: Any) -> Any:
        return call_next(call.using(conn=None))

    with pytest.raises(ConfigError, match=r"using\(conn=None\)"):
        send.enqueue(1)
    assert observer.jobs() == []


async def test_none_after_using(app: Rota, send: Send, observer: Observer) -> None:
    """`enqueue(…, conn=None)`, a default passed on, leaves the transaction of `using` in force."""
    with app.transaction() as tx:
        joined = send.using(conn=tx)
        joined.enqueue(1, conn=None)
        joined.enqueue_many([(2,)], conn=None)
        assert observer.jobs() == []
    assert len(observer.jobs()) == 2
    send.enqueue(3, conn=None)
    assert len(observer.jobs()) == 3


async def test_an_empty_thing_is_no_connection(send: Send, observer: Observer) -> None:
    """A `conn` that counts as false is refused like any other, and not taken for none."""
    with pytest.raises(ConfigError, match="takes connections"):
        send.enqueue_many([(1,)], conn=[])
    with pytest.raises(ConfigError, match="takes connections"):
        await send.aenqueue_many([(1,)], conn="")
    assert observer.jobs() == []


async def test_async_connection_in_enqueue(
    postgres_url: str, sqlite_path: str, send: Send, observer: Observer
) -> None:
    """`enqueue` with an async connection says which method to use, and touches nothing."""
    for kind in KINDS:
        url = postgres_url if kind in POSTGRES else f"sqlite:///{sqlite_path}"
        async with calling(kind, url) as caller:
            if caller.awaits:
                with pytest.raises(ConfigError, match="aenqueue"):
                    send.enqueue(1, conn=caller.conn)
                with pytest.raises(ConfigError, match="aenqueue"):
                    send.enqueue_many([(1,)], conn=caller.conn)
    assert observer.jobs() == []


async def test_async_session_without_engine(send: Send) -> None:
    """An AsyncSession is told apart before it is used for anything."""
    session = AsyncSession()
    with pytest.raises(ConfigError, match="aenqueue"):
        send.enqueue(1, conn=session)
    await session.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_the_other_kind_of_database(
    kind: str, postgres_url: str, sqlite_path: str, request: pytest.FixtureRequest
) -> None:
    """A connection to PostgreSQL is refused where the jobs are in SQLite, and the reverse."""
    del request
    own, theirs = f"sqlite:///{sqlite_path}.rota", postgres_url
    if kind not in POSTGRES:
        own, theirs = postgres_url, f"sqlite:///{sqlite_path}"
    with Rota(own) as app:
        send: Send = app.task(name="send")(_nothing)
        async with calling(kind, theirs) as caller:
            with pytest.raises(ConfigError, match="keeps its jobs in"):
                await enqueue(caller, send, 1)
            with pytest.raises(ConfigError, match="keeps its jobs in"):
                await enqueue_many(caller, send, 500)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in POSTGRES])
async def test_a_database_without_tables(kind: str, postgres_url: str) -> None:
    """A database without Rota's tables gives an error of Rota's own that says what to do."""
    with Rota(postgres_url) as app:
        send: Send = app.task(name="send")(_nothing)
        for number in (1, 3, 500):
            async with calling(kind, postgres_url) as caller:
                with pytest.raises(SchemaMissing, match="rota migrate --url") as raised:
                    await enqueue_many(caller, send, number)
                assert shown(postgres_url) in str(raised.value)
        async with calling(kind, postgres_url) as caller:
            with pytest.raises(SchemaMissing, match="rota migrate"):
                await enqueue(caller, send.using(delay=5), 1)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in POSTGRES])
async def test_another_database_without_tables(kind: str, postgres_url: str) -> None:
    """So does another database than Rota's; the error names Rota's own."""
    with Rota(postgres_url) as app:
        send: Send = app.task(name="send")(_nothing)
        app.admin.migrate()
        other = re.sub(r"/rota_test_\w+", "/postgres", postgres_url)
        async with calling(kind, other) as caller:
            with pytest.raises(SchemaMissing) as raised:
                await enqueue(caller, send, 1)
        assert f"Rota's own URL is {shown(postgres_url)}" in str(raised.value)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in POSTGRES])
@pytest.mark.parametrize("tables", [False, True], ids=["empty", "migrated"])
async def test_another_file(kind: str, tmp_path: Path, *, tables: bool) -> None:
    """A connection to another file is refused, even one with Rota's tables: it would lose the job."""
    other = f"sqlite:///{tmp_path}/other.db"
    with Rota(f"sqlite:///{tmp_path}/rota.db") as app, Rota(other) as wrong:
        send: Send = app.task(name="send")(_nothing)
        if tables:
            wrong.ready()
        for number in (1, 500):
            async with calling(kind, other) as caller:
                with pytest.raises(ConfigError, match=r"leads to .*other\.db.*the same file"):
                    await enqueue_many(caller, send, number)
        async with calling(kind, other) as caller:
            with pytest.raises(ConfigError, match=r"leads to .*other\.db.*the same file"):
                await enqueue(caller, send.using(delay=5), 1)


async def test_one_file_of_several_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link to the file, a relative path, and the file attached to another one all are the file."""
    (tmp_path / "link.db").symlink_to(tmp_path / "rota.db")
    with Rota(f"sqlite:///{tmp_path}/rota.db") as app:
        app.ready()
        send: Send = app.task(name="send")(_nothing)
        monkeypatch.chdir(tmp_path)
        for name in ("link.db", "rota.db", str(tmp_path / "rota.db")):
            with closing(sqlite3.connect(name)) as conn:
                send.enqueue(1, conn=conn)
                conn.rollback()
        # As on a disk that does not tell small letters from large ones.
        (tmp_path / "Rota.db").hardlink_to(tmp_path / "rota.db")
        with closing(sqlite3.connect("Rota.db")) as conn:
            assert adapters.sqlite3(conn).run(app.database.store.elsewhere()) is None
        with closing(sqlite3.connect(":memory:")) as conn:
            with pytest.raises(ConfigError, match="a database in memory"):
                send.enqueue(1, conn=conn)
            conn.execute("ATTACH DATABASE ? AS jobs", [str(tmp_path / "rota.db")])
            send.enqueue(1, conn=conn)
            conn.rollback()


async def test_what_makes_connections(send: Send, store_url: str, observer: Observer) -> None:
    """An engine, a factory and what gives a session are no connections; the error says what to pass."""
    url = store_url.replace("postgresql:", "postgresql+psycopg:")
    engine = create_engine(url, poolclass=NullPool)
    aengine = create_async_engine(url.replace("sqlite:", "sqlite+aiosqlite:"), poolclass=NullPool)

    def dependency() -> Generator[Session, None, None]:
        yield Session(engine)

    given = dependency()
    for conn, words in (
        (engine, "makes connections; pass the one with your transaction"),
        (aengine, "makes connections; pass the one with your transaction"),
        (sessionmaker(engine), "makes sessions; pass the one with your transaction"),
        (async_sessionmaker(aengine), "makes sessions; pass the one with your transaction"),
        (engine.begin(), "was not entered"),
        (aengine.begin(), "was not entered"),
        (dependency, "pass the connection or session that it gives"),
        (given, "pass the connection or session that it gives"),
    ):
        with pytest.raises(ConfigError, match=words):
            send.enqueue(1, conn=conn)
        with pytest.raises(ConfigError, match=words):
            await send.aenqueue(1, conn=conn)
    given.close()
    assert observer.jobs() == []


async def test_a_connection_that_is_not_open(send: Send, store_url: str) -> None:
    """What was closed, or not awaited yet, is refused with what to do."""
    url = store_url.replace("postgresql:", "postgresql+psycopg:")
    engine = create_engine(url, poolclass=NullPool)
    aengine = create_async_engine(url.replace("sqlite:", "sqlite+aiosqlite:"), poolclass=NullPool)
    session, connection = Session(engine, close_resets_only=False), engine.connect()
    asession, aconnection = AsyncSession(aengine, close_resets_only=False), await aengine.connect()
    session.close()
    connection.close()
    await asession.close()
    await aconnection.close()
    for conn in (session, connection):
        with pytest.raises(StoreError, match=r"closed.*inside its block"):
            send.enqueue(1, conn=conn)
    for other in (asession, aconnection):
        with pytest.raises(StoreError, match=r"closed.*inside its block"):
            await send.aenqueue(1, conn=other)
    with pytest.raises(ConfigError, match="not open yet: use `async with"):
        await send.aenqueue(1, conn=aengine.connect())
    with Session() as unbound, pytest.raises(ConfigError, match="session without an engine"):
        send.enqueue(1, conn=unbound)


async def test_a_closed_connection(store_url: str, send: Send, observer: Observer) -> None:
    """A connection that was closed gives an error of Rota's own."""
    conn: Any
    if store_url.startswith("sqlite"):
        conn = sqlite3.connect(store_url.removeprefix("sqlite:///"))
    else:
        conn = psycopg.connect(store_url)
    conn.close()
    with pytest.raises(StoreError, match="closed"):
        send.enqueue(1, conn=conn)
    assert observer.jobs() == []


async def test_a_session_without_engine(send: Send, observer: Observer) -> None:
    """A Session that leads to no database gives an error of Rota's own."""
    with Session() as session, pytest.raises((StoreError, ConfigError)):
        send.enqueue(1, conn=session)
    assert observer.jobs() == []


async def test_an_unknown_dialect(send: Send) -> None:
    """SQLAlchemy through a driver that Rota does not know is refused by its name."""

    class Dialect:
        name, driver = "oracle", "oracledb"

    kind = type("Connection", (), {"__module__": "sqlalchemy", "dialect": Dialect()})
    with pytest.raises(ConfigError, match=r"oracle\+oracledb"):
        send.enqueue(1, conn=kind())


@pytest.mark.parametrize("factory", ["Row", "dict"])
@pytest.mark.parametrize("kind", ["sqlite3", "aiosqlite"])
async def test_row_factory(kind: str, factory: str, tmp_path: object) -> None:
    """A row_factory of the caller's disturbs nothing, and is still there afterwards."""

    def as_dict(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
        return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}

    url = f"sqlite:///{tmp_path}/rota.db"
    with Rota(url) as app:
        app.database.ready()
        send: Send = app.task(name="send")(_nothing)
        observer = Observer(url)
        async with calling(kind, url) as caller:
            caller.conn.row_factory = sqlite3.Row if factory == "Row" else as_dict
            jobs = [await enqueue(caller, send, 1), *await enqueue_many(caller, send, 3)]
            cursor = caller.conn.execute("SELECT 1 AS one")
            row = await (await cursor).fetchone() if caller.awaits else cursor.fetchone()
            assert row["one"] == 1
            await caller.commit()
        assert observer.claim() == jobs
        observer.close()


async def test_subclasses(store_url: str, send: Send, observer: Observer) -> None:
    """A subclass of a connection counts as what it derives from."""

    class Mine(sqlite3.Connection):
        pass

    class Ours(psycopg.Connection[Any]):
        pass

    conn: Any
    if store_url.startswith("sqlite"):
        conn = sqlite3.connect(store_url.removeprefix("sqlite:///"), factory=Mine)
    else:
        conn = Ours.connect(store_url)
    with closing(conn):
        job = send.enqueue(1, conn=conn).id
        conn.commit()
    assert observer.claim() == [job]


async def test_a_savepoint_is_not_ended_by_a_refusal(postgres_url: str, sqlite_path: str) -> None:
    """A refused enqueue leaves the caller's transaction as it was."""
    engine = create_engine(f"sqlite:///{sqlite_path}", poolclass=NullPool)
    with Rota(postgres_url) as app, engine.begin() as conn:
        send: Send = app.task(name="send")(_nothing)
        conn.execute(text("CREATE TABLE orders (id integer)"))
        with pytest.raises(ConfigError):
            send.enqueue(1, conn=conn)
        conn.execute(text("INSERT INTO orders (id) VALUES (1)"))
    with engine.connect() as conn:
        assert conn.execute(text("SELECT count(*) FROM orders")).scalar() == 1


async def test_classes_are_no_connections(send: Send) -> None:
    """The class of a connection is not a connection."""
    for kind in (psycopg.Connection, asyncpg.Connection, aiosqlite.Connection, Session):
        with pytest.raises(ConfigError, match="which Rota cannot use"):
            send.enqueue(1, conn=kind)


def _nothing(number: int) -> None:
    del number
