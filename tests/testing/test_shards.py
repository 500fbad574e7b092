"""The kit of several databases: each shard has a transaction of the test's own."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from shutil import copyfile
from typing import Any

import aiosqlite
import pytest

from rota import PROVIDED, ConfigError, Rota
from rota.app.shards import Shards
from rota.testing import ShardKits
from tests.testing.conftest import connect, stored

NAMES = ("eu", "us")


@pytest.fixture
def urls(tmp_path: Path, migrated_sqlite: Path, postgres_url: str) -> Mapping[str, str]:
    """A file, and a database of PostgreSQL's, with Rota's tables."""
    copyfile(migrated_sqlite, tmp_path / "eu.db")
    with Rota(postgres_url) as app:
        app.admin.migrate()
    return {"eu": f"sqlite:///{tmp_path}/eu.db", "us": postgres_url}


@pytest.fixture
def app(urls: Mapping[str, str]) -> Iterator[Shards]:
    """An app of both, with `tenant` as the key; "acme" lies on eu."""
    with Rota.shards(urls, key="{tenant}", pinned={"acme": "eu", "vip": "us"}) as app:
        yield app


@pytest.fixture
def connections(urls: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    """A connection to each, whose transaction is rolled back; nothing stays."""
    with ExitStack() as stack:
        found = {name: stack.enter_context(closing(connect(url))) for name, url in urls.items()}
        yield found
        for connection in found.values():
            connection.rollback()
    assert [stored(url) for url in urls.values()] == [0, 0]


@pytest.fixture
def kits(app: Shards, connections: Mapping[str, Any]) -> Iterator[ShardKits]:
    """The kits on these."""
    with ShardKits(connections, app=app) as kits:
        yield kits


def declared(app: Shards) -> tuple[Any, Any, list[str]]:
    """A task with the key, one that hops between shards as often as told, and where they ran."""
    ran: list[str] = []

    @app.task(name="invoice")
    def invoice(tenant: str) -> None:
        ran.append(f"{tenant} {app.here}")

    @app.task(name="hop")
    def hop(more: int) -> None:
        ran.append(f"hop {app.here}")
        if more:
            with app.on("us" if app.here == "eu" else "eu"):
                hop.enqueue(more - 1)

    return invoice, hop, ran


def test_each_shard_has_its_kit(app: Shards, kits: ShardKits) -> None:
    """A job is seen on the shard where it lies, and runs there when all are drained."""
    invoice, _, ran = declared(app)
    invoice.enqueue("acme")
    invoice.enqueue("vip")
    kits["eu"].assert_enqueued(invoice, tenant="acme")
    kits["eu"].refute_enqueued(invoice, tenant="vip")
    kits["us"].assert_enqueued(invoice, tenant="vip")
    assert [*kits] == [*NAMES]
    assert kits.drain().completed == 2
    assert sorted(ran) == ["acme eu", "vip us"]


def test_draining_follows_jobs_across(app: Shards, kits: ShardKits) -> None:
    """A drain ends when no shard has jobs left, wherever handlers enqueue; `limit` is for all."""
    _, hop, ran = declared(app)
    with app.on("us"):
        hop.enqueue(3)
    assert kits.drain().completed == 4
    assert ran == ["hop us", "hop eu", "hop us", "hop eu"]
    with app.on("us"):
        hop.enqueue(9)
    with pytest.raises(ConfigError, match="attempts were made"):
        kits.drain(limit=5)
    assert len(kits.drain(recursive=False)) == 1


def test_one_job(app: Shards, kits: ShardKits) -> None:
    """`run` finds the shard as `enqueue` does, and refuses where nothing says which."""
    invoice, hop, ran = declared(app)
    assert kits.run(invoice, "vip").completed
    assert ran == ["vip us"]
    with pytest.raises(ConfigError, match="nothing says to which shard"):
        kits.run(hop, 0)
    with app.on("eu"):
        assert kits.run(hop, 0).completed


def test_inline(app: Shards, kits: ShardKits) -> None:
    """Jobs of one id on two shards are two: each runs as it is enqueued, and nothing else does."""
    invoice, hop, ran = declared(app)
    invoice.enqueue("acme")
    with kits.inline():
        invoice.enqueue("vip")
        assert ran == ["vip us"]
        with app.on("us"):
            hop.enqueue(2)
    assert ran == ["vip us", "hop us", "hop eu", "hop us"]
    assert kits.drain().completed == 1


def test_the_callers_connection(
    app: Shards, kits: ShardKits, connections: Mapping[str, Any]
) -> None:
    """A job that joins a connection lies on the shard of that connection."""
    _, hop, _ = declared(app)
    hop.enqueue(0, conn=connections["us"])
    kits["us"].assert_enqueued(hop)
    kits["eu"].refute_enqueued(hop)


def test_resources(app: Shards, kits: ShardKits) -> None:
    """What is provided is there on all shards."""

    @app.task(name="equipped", store_result=True)
    def equipped(tenant: str, engine: str = PROVIDED) -> str:
        return f"{tenant} {engine}"

    kits.provide(engine="an engine")
    assert kits.run(equipped, "vip").result == "vip an engine"
    assert kits.run(equipped, "acme").result == "acme an engine"


def test_every_shard_has_a_connection(app: Shards, connections: Mapping[str, Any]) -> None:
    """A shard with no connection would commit, as would every enqueue before: both are refused."""
    invoice, _, _ = declared(app)
    with ShardKits(app=app) as kits:
        with pytest.raises(ConfigError, match="has no connection yet"):
            invoice.enqueue("acme")
        with pytest.raises(ConfigError, match="a connection for each shard is needed"):
            kits.use({"eu": connections["eu"]})
        kits.use(connections)
        invoice.enqueue("acme")
        kits["eu"].assert_enqueued(invoice)
    assert not app["eu"].database.confined


@pytest.mark.asyncio
async def test_async(tmp_path: Path, migrated_sqlite: Path) -> None:
    """The async twins do the same on async connections."""
    urls = {name: f"sqlite:///{tmp_path}/{name}.db" for name in NAMES}
    for name in NAMES:
        copyfile(migrated_sqlite, tmp_path / f"{name}.db")
    with Rota.shards(urls, key="{tenant}", pinned={"acme": "eu", "vip": "us"}) as app:
        ran: list[str] = []

        @app.task(name="later")
        async def later(tenant: str, more: int = 0) -> None:
            ran.append(f"{tenant} {app.here}")
            if more:
                await later.aenqueue("vip" if tenant == "acme" else "acme", more - 1)

        connections = {name: await aiosqlite.connect(tmp_path / f"{name}.db") for name in NAMES}
        try:
            with ShardKits(connections, app=app) as kits:
                await later.aenqueue("vip", 2)
                assert (await kits.adrain()).completed == 3
                assert (await kits.arun(later, "acme")).completed
                with kits.inline():
                    await later.aenqueue("acme", 1)
            assert ran == ["vip us", "acme eu", "vip us", "acme eu", "acme eu", "vip us"]
        finally:
            for connection in connections.values():
                await connection.rollback()
                await connection.close()
    for name in NAMES:
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as file:
            assert file.execute("SELECT count(*) FROM rota_job").fetchone() == (0,)
