"""Flows of an app with several databases: each lies wholly on one of them."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from rota import ConfigError, Context, FlowState, Rota, Worker, WorkerConfig
from rota.app.shards import Shards

NAMES = ("eu", "us", "asia")
EU, US = "tenant 1", "tenant 5"
"""Keys of two shards."""


@pytest.fixture
def rota(tmp_path: Path) -> Iterator[Shards]:
    """Three databases, and `tenant` as the key; two tasks with it, and one without."""
    urls = {name: f"sqlite:///{tmp_path}/{name}.db" for name in NAMES}
    pinned = {EU: "eu", US: "us"}
    with Rota.shards(urls, key="{tenant}", pinned=pinned) as rota:

        @rota.task(name="invoice")
        def invoice(tenant: str, number: int = 0) -> str:
            del number
            return tenant

        @rota.task(name="mail")
        def mail(tenant: str) -> None:
            del tenant

        @rota.task(name="ping")
        def ping(ctx: Context) -> None:
            ctx.flow.add(rota.tasks["mail"], EU)

        yield rota


def flows(rota: Shards) -> dict[str, int]:
    """How many nodes of flows lie where."""
    found = {name: shard.flows.list() for name, shard in rota.items()}
    return {name: sum(flow.nodes for flow in many) for name, many in found.items() if many}


def test_the_keys_say_where(rota: Shards) -> None:
    """Nodes without a key, or that are given theirs as a result, lie where the others do."""
    invoice, mail, ping = (rota.tasks[name] for name in ("invoice", "mail", "ping"))
    with rota.flow("order") as f:
        f.add(ping)
        f.add(mail, f.add(invoice, US).result)
        f.map(invoice, [(US, 1), (US, 2)])
    assert f.handle.shard == "us"
    assert flows(rota) == {"us": 4}
    assert f.handle.job("invoice").shard == "us"


def test_keys_of_several_shards(rota: Shards) -> None:
    """They are refused, in words that help, and nothing is stored; `on` puts them together."""
    invoice = rota.tasks["invoice"]
    with pytest.raises(ConfigError, match=r"'invoice' to us, 'second' to eu.*on="):
        _build(rota, invoice, US, EU)
    with (
        pytest.raises(ConfigError, match="several shards"),
        rota.flow("order") as f,
    ):
        f.map(invoice, [(US,), (EU,)])
    assert flows(rota) == {}
    with rota.flow("order", on="asia") as f:
        f.map(invoice, [(US,), (EU,)])
    assert flows(rota) == {"asia": 1}


def test_what_says_where(rota: Shards) -> None:
    """`on=`, a block of `on`, and the shard's own app, which takes tasks that were declared for all."""
    invoice = rota.tasks["invoice"]
    with rota.flow("order", on="asia") as f:
        f.add(invoice, US)
    with rota.on("eu"), rota.flow("order") as f:
        f.add(invoice, US)
    with rota["us"].flow("order") as f:
        f.add(invoice.using(priority=3), EU)
    assert f.handle.shard == "us"
    assert f.handle.job("invoice").record().priority == 3
    assert flows(rota) == {"asia": 1, "eu": 1, "us": 1}
    with pytest.raises(ConfigError, match="no shard 'mars'"):
        rota.flow("order", on="mars")


def test_nothing_says_where(rota: Shards) -> None:
    """It is refused."""
    with (
        pytest.raises(ConfigError, match=r"nothing says to which shard flow 'order' belongs"),
        rota.flow("order") as f,
    ):
        f.add(rota.tasks["ping"])
    assert flows(rota) == {}


def test_conn_leads(rota: Shards) -> None:
    """The flow joins the transaction, wherever the keys belong, unless another shard was said."""
    invoice = rota.tasks["invoice"]
    rota["us"].ready()
    file = rota["us"].url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(file)) as conn:
        with rota.flow("order", conn=conn) as f:
            f.add(invoice, EU)
        conn.rollback()
        assert flows(rota) == {}
        with rota.flow("order", conn=conn) as f:
            f.add(invoice, EU)
        conn.commit()
        assert (f.handle.shard, flows(rota)) == ("us", {"us": 1})
        with pytest.raises(ConfigError, match="conn leads to shard us"):
            _build(rota, invoice, EU, on="eu", conn=conn)


def _build(rota: Shards, task: Any, *tenants: str, **options: Any) -> None:
    with rota.flow("order", **options) as f:
        for name, tenant in zip((None, "second"), tenants, strict=False):
            f.add(task, tenant, name=name)


@pytest.mark.asyncio
async def test_async_code(rota: Shards) -> None:
    """The same holds for `async with`."""
    invoice = rota.tasks["invoice"]
    async with rota.flow("order") as f:
        f.add(invoice, EU)
    assert f.handle.shard == "eu"
    rota["us"].ready()
    async with aiosqlite.connect(rota["us"].url.removeprefix("sqlite:///")) as conn:
        async with rota.flow("order", conn=conn) as f:
            f.add(invoice, EU)
        await conn.commit()
    assert flows(rota) == {"eu": 1, "us": 1}


def test_a_flow_runs_where_it_lies(rota: Shards) -> None:
    """A worker of all shards runs it, and what its jobs add lies beside them.

    That has the options of the shard's queues.
    """
    invoice, mail, ping = (rota.tasks[name] for name in ("invoice", "mail", "ping"))
    rota["us"].queue("default", max_attempts=7)
    with rota.flow("order") as f:
        sent = f.add(mail, f.add(invoice, US).result)
        f.add(invoice, US, 2, after=[f.add(ping), sent], name="last")
    assert f.handle.job("mail").record().max_attempts == 7
    Worker(rota, WorkerConfig(drain=True, poll=0.05)).run()
    assert f.handle.state is FlowState.COMPLETED
    assert flows(rota) == {"us": 5}
