"""Every kind of connection a caller may have, behind one small face.

Each opens a connection the way its users do and is in a transaction (or will be with its first
statement). `Observer` is somebody else, who sees only what was committed.
"""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from typing import TYPE_CHECKING, Any, Protocol

import aiosqlite
import asyncpg  # type: ignore[import-untyped]
import psycopg
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from rota import JobId, Task
from rota.errors import StoreUnavailable
from rota.model.job import JobFilter, JobRecord, SessionInfo
from rota.store.opening import open_store
from rota.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from rota.store.protocol import Store

Send = Task[..., Any, Any]


class Caller(Protocol):
    """A caller with a connection of its own."""

    conn: Any
    awaits: bool
    """Whether `aenqueue` is the method for its connection."""

    async def execute(self, sql: str) -> None:
        """Run a statement of the caller's own."""

    async def commit(self) -> None:
        """End the transaction."""

    async def rollback(self) -> None:
        """Undo the transaction."""

    def savepoint(self) -> AbstractAsyncContextManager[None]:
        """Undo, at the end of the block, what was done in it; not the rest."""


async def enqueue(caller: Caller, task: Send, *args: object) -> JobId:
    """Enqueue one job in the caller's transaction."""
    if caller.awaits:
        return (await task.aenqueue(*args, conn=caller.conn)).id
    return task.enqueue(*args, conn=caller.conn).id


async def enqueue_many(caller: Caller, task: Send, count: int) -> list[JobId]:
    """Enqueue many jobs in the caller's transaction."""
    jobs = [(number,) for number in range(count)]
    if caller.awaits:
        return await task.aenqueue_many(jobs, conn=caller.conn)
    return task.enqueue_many(jobs, conn=caller.conn)


class Blocking:
    """psycopg and sqlite3: a transaction begins with a statement, savepoints are SQL."""

    awaits = False

    def __init__(self, conn: Any) -> None:
        self.conn = conn

    async def execute(self, sql: str) -> None:
        self.conn.execute(sql)

    async def commit(self) -> None:
        self.conn.commit()

    async def rollback(self) -> None:
        self.conn.rollback()

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        await self.execute("SAVEPOINT here")
        yield
        await self.execute("ROLLBACK TO SAVEPOINT here")


class Explicit(Blocking):
    """sqlite3 with isolation_level=None: the caller says BEGIN."""

    def __init__(self, conn: Any) -> None:
        super().__init__(conn)
        conn.execute("BEGIN")

    async def commit(self) -> None:
        self.conn.execute("COMMIT")

    async def rollback(self) -> None:
        self.conn.execute("ROLLBACK")
        self.conn.execute("BEGIN")


class Awaiting(Blocking):
    """psycopg's async connections and aiosqlite."""

    awaits = True

    async def execute(self, sql: str) -> None:
        await self.conn.execute(sql)

    async def commit(self) -> None:
        await self.conn.commit()

    async def rollback(self) -> None:
        await self.conn.rollback()


class Asyncpg:
    """asyncpg: transactions are objects."""

    awaits = True

    def __init__(self, conn: Any) -> None:
        self.conn = conn
        self.transaction = conn.transaction()

    async def begin(self) -> "Asyncpg":
        await self.transaction.start()
        return self

    async def execute(self, sql: str) -> None:
        await self.conn.execute(sql)

    async def commit(self) -> None:
        await self.transaction.commit()

    async def rollback(self) -> None:
        await self.transaction.rollback()
        self.transaction = self.conn.transaction()
        await self.transaction.start()

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        inner = self.conn.transaction()
        await inner.start()
        yield
        await inner.rollback()


class Alchemy(Blocking):
    """SQLAlchemy's Connection and Session."""

    async def execute(self, sql: str) -> None:
        self.conn.execute(text(sql))

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        inner = self.conn.begin_nested()
        yield
        inner.rollback()


class AsyncAlchemy(Awaiting):
    """SQLAlchemy's AsyncConnection and AsyncSession."""

    async def execute(self, sql: str) -> None:
        await self.conn.execute(text(sql))

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        inner = await self.conn.begin_nested()
        yield
        await inner.rollback()


POSTGRES = [
    "psycopg", "psycopg-async", "asyncpg", "asyncpg-pool",
    "psycopg-Connection", "psycopg-Session", "psycopg-AsyncConnection", "psycopg-AsyncSession",
    "asyncpg-AsyncConnection", "asyncpg-AsyncSession",
]  # fmt: skip
SQLITE = [
    "sqlite3", "sqlite3-explicit", "aiosqlite",
    "pysqlite-Connection", "pysqlite-Session",
    "aiosqlite-AsyncConnection", "aiosqlite-AsyncSession",
]  # fmt: skip
KINDS = [*POSTGRES, *SQLITE]


@asynccontextmanager
async def calling(kind: str, url: str) -> AsyncIterator[Caller]:
    """A caller with that kind of connection to the database of a store's URL."""
    path = url.removeprefix("sqlite:///")
    match kind.split("-"):
        case ["psycopg"]:
            with closing(psycopg.connect(url)) as plain:
                yield Blocking(plain)
        case ["psycopg", "async"]:
            conn = await psycopg.AsyncConnection.connect(url)
            try:
                yield Awaiting(conn)
            finally:
                await conn.close()
        case ["asyncpg"]:
            raw = await asyncpg.connect(url)
            try:
                yield await Asyncpg(raw).begin()
            finally:
                await raw.close()
        case ["asyncpg", "pool"]:
            async with asyncpg.create_pool(url, min_size=1) as pool, pool.acquire() as lent:
                yield await Asyncpg(lent).begin()
        case ["sqlite3"]:
            with closing(sqlite3.connect(path)) as file:
                yield Blocking(file)
        case ["sqlite3", "explicit"]:
            with closing(sqlite3.connect(path, isolation_level=None)) as file:
                yield Explicit(file)
        case ["aiosqlite"]:
            async with aiosqlite.connect(path) as async_file:
                yield Awaiting(async_file)
        case [driver, shape]:
            async with _alchemy(driver, shape, url) as caller:
                yield caller
        case _:
            raise ValueError(kind)


@asynccontextmanager
async def _alchemy(driver: str, shape: str, url: str) -> AsyncIterator[Caller]:
    scheme = "postgresql" if driver in {"psycopg", "asyncpg"} else "sqlite"
    engine_url = f"{scheme}+{driver}://{url.partition('://')[2]}"
    if shape in {"Connection", "Session"}:
        engine = create_engine(engine_url, poolclass=NullPool)
        with engine.connect() if shape == "Connection" else Session(engine) as conn:
            yield Alchemy(conn)
        return
    async_engine = create_async_engine(engine_url, poolclass=NullPool)
    async with (
        async_engine.connect() if shape == "AsyncConnection" else AsyncSession(async_engine)
    ) as conn:
        yield AsyncAlchemy(conn)


class Observer:
    """A worker and an application on connections of their own."""

    def __init__(self, url: str) -> None:
        self.url = url
        # SQLite has one writer at a time: a claim during the caller's transaction would wait for
        # its end. Here it gives up at once.
        self.store: Store = (
            SqliteStore(url, patience=0.02) if url.startswith("sqlite") else open_store(url)
        )
        self.own = self.store.connect()
        info = SessionInfo(host="alpha", pid=4711, queues=("default",), timeout=600)
        self.session = self.own.run(self.store.open_session(info))
        self._orders("CREATE TABLE orders (id integer PRIMARY KEY)")

    def claim(self, queue: str = "default") -> list[JobId]:
        """What a worker gets that asks for work."""
        try:
            jobs = self.own.run(self.store.claim(self.session, [queue], 1000))
        except StoreUnavailable:
            assert self.store.name == "sqlite"
            return []
        return [job.id for job in jobs]

    def jobs(self) -> list[JobRecord]:
        """All jobs anybody can see."""
        return self.own.run(self.store.list_jobs(JobFilter(limit=1000)))

    def get(self, ids: Sequence[JobId]) -> list[JobRecord]:
        """The jobs with these ids."""
        return self.own.run(self.store.get(ids))

    def orders(self) -> list[int]:
        """The rows of the caller's own table."""
        return [row[0] for row in self._orders("SELECT id FROM orders ORDER BY id")]

    def close(self) -> None:
        """Leave."""
        self.own.close()
        self.store.close()

    def _orders(self, sql: str) -> list[tuple[Any, ...]]:
        if self.store.name == "sqlite":
            with closing(sqlite3.connect(self.url.removeprefix("sqlite:///"))) as file, file:
                return file.execute(sql).fetchall()
        with closing(psycopg.connect(self.url, autocommit=True)) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []
