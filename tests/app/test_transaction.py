"""Transactions of Rota's own, for callers who have none."""

import asyncio
from contextlib import closing
from typing import Any

import psycopg
import pytest

from rota import ConfigError, Rota, RotaError, State
from rota.model.job import JobFilter, JobRecord

TABLE = "CREATE TABLE orders (id integer PRIMARY KEY)"


class OwnError(Exception):
    """An error of the caller's."""


def fail() -> None:
    """Raise it."""
    raise OwnError


def jobs(app: Rota) -> list[JobRecord]:
    """Every job that is committed."""
    return app.database.run(app.database.store.list_jobs(JobFilter(limit=1000)))


def orders(app: Rota) -> list[tuple[int]]:
    """The caller's own rows."""
    with app.transaction() as tx:
        rows: list[tuple[int]] = tx.execute("SELECT id FROM orders ORDER BY id").fetchall()
        return rows


@pytest.fixture(autouse=True)
def table(app: Rota) -> None:
    """The caller's own table."""
    with app.transaction() as tx:
        tx.execute(TABLE)


def insert(app: Rota) -> str:
    """A statement with a parameter, in the driver's style."""
    mark = "?" if app.database.store.name == "sqlite" else "%s"
    return f"INSERT INTO orders (id) VALUES ({mark})"


def test_commit(app: Rota, send: Any) -> None:
    """The end of the block commits the caller's rows and the jobs together."""
    with app.transaction() as tx:
        tx.execute(insert(app), [7])
        handle = send.enqueue(1, conn=tx)
        many = send.enqueue_many([(2,)] * 300, conn=tx)
        later = send.using(delay=60, conn=tx).enqueue(3)
        assert jobs(app) == []
    assert orders(app) == [(7,)]
    assert handle.status is State.AVAILABLE
    assert later.status is State.SCHEDULED
    assert len(jobs(app)) == len(many) + 2


def test_rollback(app: Rota, send: Any) -> None:
    """An exception in the block undoes all of it, and comes through."""
    with pytest.raises(OwnError), app.transaction() as tx:  # noqa: PT012 - a block is the point
        tx.execute(insert(app), [7])
        send.enqueue(1, conn=tx)
        send.enqueue_many([(2,)] * 300, conn=tx)
        fail()
    assert orders(app) == []
    assert jobs(app) == []


@pytest.mark.asyncio
async def test_async_commit(app: Rota, send: Any) -> None:
    """The same in async code, where nothing blocks the loop."""
    async with app.transaction() as tx:
        await tx.aexecute(insert(app), [7])
        handle = await send.aenqueue(1, conn=tx)
        await send.aenqueue_many([(2,), (3,)], conn=tx)
        assert await asyncio.to_thread(jobs, app) == []
    assert await handle.astatus() is State.AVAILABLE
    assert len(jobs(app)) == 3
    assert orders(app) == [(7,)]


@pytest.mark.asyncio
async def test_async_rollback(app: Rota, send: Any) -> None:
    """An exception in the block undoes all of it, in async code too."""
    with pytest.raises(OwnError):  # noqa: PT012 - a block is the point
        async with app.transaction() as tx:
            await tx.aexecute(insert(app), [7])
            await send.aenqueue(1, conn=tx)
            fail()
    assert jobs(app) == []
    assert orders(app) == []


@pytest.mark.asyncio
async def test_many_at_once(app: Rota) -> None:
    """Those who wait for a lock leave whoever has it the thread that he needs to go on."""
    turn = 0

    async def one() -> None:
        nonlocal turn
        async with app.transaction() as tx:
            await tx.aexecute("UPDATE orders SET id = id + 1")
            await asyncio.sleep(0.001)
            turn += 1

    with app.transaction() as tx:
        tx.execute(insert(app), [0])
    await asyncio.wait_for(asyncio.gather(*(one() for _ in range(40))), 20)
    assert orders(app) == [(40,)]
    assert turn == 40


def test_the_drivers_connection(app: Rota, send: Any) -> None:
    """The driver's connection is the caller's to use, for enqueue as well."""
    with app.transaction() as tx:
        tx.connection.execute(insert(app), [7])
        send.enqueue(1, conn=tx.connection)
        assert jobs(app) == []
    assert len(jobs(app)) == 1
    assert orders(app) == [(7,)]


def test_after_its_end(app: Rota, send: Any) -> None:
    """A transaction that has ended takes no jobs, with an error of Rota's own."""
    with app.transaction() as tx:
        pass
    with pytest.raises(RotaError, match="not open"):
        send.enqueue(1, conn=tx)
    with pytest.raises(RotaError, match="not open"):
        tx.execute("SELECT 1")
    assert jobs(app) == []


def test_one_after_the_other(app: Rota, send: Any) -> None:
    """Transactions do not influence those that follow, however they end."""
    for number in range(6):
        try:
            with app.transaction() as tx:
                send.enqueue(number, conn=tx)
                if number % 2:
                    fail()
        except OwnError:
            pass
    assert sorted(job.args for job in jobs(app)) == [f'{{"number":{n}}}' for n in (0, 2, 4)]


def test_a_transaction_of_another_app(app: Rota, send: Any, tmp_path: Any) -> None:
    """A transaction in the other kind of database is refused."""
    url = f"sqlite:///{tmp_path}/elsewhere.db"
    if app.database.store.name == "sqlite":
        with pytest.raises(RotaError):
            Rota("postgresql://127.0.0.1:1/nowhere").database.begin()
        return
    with Rota(url) as other, other.transaction() as tx, pytest.raises(ConfigError, match="keeps"):
        send.enqueue(1, conn=tx)
    assert jobs(app) == []


def test_connections_are_not_left_behind(postgres_url: str, request: Any) -> None:
    """Many transactions do not leave many connections behind."""
    from rota.store.migrate import migrate

    del request
    with Rota(postgres_url) as app, closing(app.database.store.connect()) as own:
        migrate(app.database.store, own)
        for _ in range(20):
            with app.transaction() as tx:
                tx.execute("SELECT 1")
        with closing(psycopg.connect(postgres_url)) as admin:
            [(count,)] = admin.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            ).fetchall()
    assert count < 10
