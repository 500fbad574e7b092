"""Several databases as one app: where a job lies, and what is said where nothing tells."""

import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import aiosqlite
import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from rota import (
    ArgsError,
    BatchTask,
    ConfigError,
    Context,
    EnqueueCall,
    JobHandle,
    JobId,
    JobNotFound,
    Rota,
    State,
    StoreUnavailable,
    TaskAlreadyRegistered,
)
from rota.app.shards import Shards
from rota.events import JobsEnqueued, Tidied
from rota.model import rendezvous

NAMES = ("eu", "us", "asia")


def urls_in(folder: Path) -> dict[str, str]:
    """The URLs of three databases."""
    return {name: f"sqlite:///{folder}/{name}.db" for name in NAMES}


@pytest.fixture
def rota(tmp_path: Path) -> Iterator[Shards]:
    """Three databases, and `tenant` as the key."""
    with Rota.shards(urls_in(tmp_path), key="{tenant}", pinned={"vip": "asia"}) as rota:
        yield rota


def declared(rota: Shards) -> tuple[Any, Any]:
    """A task with the key, and one without."""

    @rota.task(name="invoice")
    def invoice(tenant: str, number: int = 0) -> None:
        del tenant, number

    @rota.task(name="ping")
    def ping(number: int = 0) -> None:
        del number

    return invoice, ping


def counts(rota: Shards) -> dict[str, int]:
    """How many jobs lie where."""
    return {name: shard.jobs.count() for name, shard in rota.items() if shard.jobs.count()}


# By what is said, and by the key ------------------------------------------------------------------


def test_on_says_where(rota: Shards) -> None:
    """Within `on` jobs lie on that shard, even if their key belongs elsewhere; after it they do not."""
    invoice, ping = declared(rota)
    with rota.on("us") as shard:
        assert shard is rota["us"]
        assert rota.here == "us"
        assert ping.enqueue(1).shard == "us"
        with rota.on("eu"):
            ping.enqueue(2)
        assert invoice.enqueue("vip").shard == "us"
    assert counts(rota) == {"eu": 1, "us": 2}
    assert invoice.enqueue("vip").shard == "asia"


def test_the_key_says_where(rota: Shards) -> None:
    """Jobs of one key lie together, those of many keys on all shards, where `of` says."""
    invoice, _ = declared(rota)
    for number in range(60):
        tenant = f"tenant {number % 20}"
        assert invoice.enqueue(tenant, number).shard == rota.of(tenant)
    found = counts(rota)
    assert set(found) == set(NAMES)
    assert sum(found.values()) == 60
    assert all(count % 3 == 0 for count in found.values())


def test_a_pinned_key(rota: Shards) -> None:
    """A key that is pinned lies where it is pinned, whatever its hash says."""
    invoice, _ = declared(rota)
    assert rendezvous.chosen("vip", NAMES) != "asia"
    assert rota.of("vip") == invoice.enqueue("vip").shard == "asia"


def test_the_hash_never_changes() -> None:
    """These keys have the same shards in all versions and processes, however the names are ordered."""
    keys = ["", "acme", "Zürich", "7", "tenant:12"]
    known = [rendezvous.chosen(key, NAMES) for key in keys]
    assert known == ["us", "eu", "us", "asia", "asia"]
    assert [rendezvous.chosen(key, reversed(NAMES)) for key in keys] == known


def test_a_shard_that_is_added() -> None:
    """It takes its share of the keys, and no key changes between the others."""
    keys = [f"key {number}" for number in range(3000)]
    before = {key: rendezvous.chosen(key, NAMES) for key in keys}
    after = {key: rendezvous.chosen(key, [*NAMES, "africa"]) for key in keys}
    moved = [key for key in keys if before[key] != after[key]]
    assert {after[key] for key in moved} == {"africa"}
    assert 600 < len(moved) < 900
    assert all(900 < [*before.values()].count(name) < 1100 for name in NAMES)


def test_nothing_says_where(rota: Shards) -> None:
    """A job without key outside of `on` is refused, in words that help, and stored nowhere."""
    _, ping = declared(rota)
    with pytest.raises(ConfigError, match=r"nothing says .* 'ping' .*eu, us, asia.*\{tenant\}"):
        ping.enqueue(1)
    with pytest.raises(ConfigError, match="say on which shard"):
        _ = rota.here
    with pytest.raises(ConfigError, match="there is no shard 'mars'"):
        rota.on("mars")
    assert counts(rota) == {}


def test_many_jobs_of_one_call(rota: Shards) -> None:
    """They lie on one shard, all or none: where their keys have several, the call is refused."""
    invoice, _ = declared(rota)
    assert len(invoice.enqueue_many([("vip", 1), ("vip", 2)])) == 2
    assert counts(rota) == {"asia": 2}
    with pytest.raises(ConfigError, match="belong to several shards"):
        invoice.enqueue_many([(f"tenant {number}",) for number in range(20)])
    assert counts(rota) == {"asia": 2}
    with rota.on("eu"):
        invoice.enqueue_many([(f"tenant {number}",) for number in range(20)])
    assert counts(rota) == {"asia": 2, "eu": 20}


async def in_async_code(rota: Shards) -> None:
    """Enqueue by all that decides."""
    invoice, ping = declared(rota)
    assert (await invoice.aenqueue("vip")).shard == "asia"
    with rota.on("us"):
        assert (await ping.aenqueue()).shard == "us"
    assert len(await invoice.aenqueue_many([("vip",)])) == 1
    with pytest.raises(ConfigError, match="nothing says"):
        await ping.aenqueue()


@pytest.mark.asyncio
async def test_async_code(rota: Shards) -> None:
    """The same holds for async code."""
    await in_async_code(rota)
    assert counts(rota) == {"asia": 2, "us": 1}


# By the caller's connection -----------------------------------------------------------------------


def file_of(rota: Shards, name: str) -> str:
    """The file of a shard, with its tables."""
    rota[name].ready()
    return rota[name].url.removeprefix("sqlite:///")


def test_conn_leads(rota: Shards) -> None:
    """The job lies where the connection leads, in its transaction, whatever else says."""
    invoice, _ = declared(rota)
    with closing(sqlite3.connect(file_of(rota, "us"))) as conn, rota.on("eu"):
        handle = invoice.enqueue("vip", conn=conn)
        assert handle.shard == "us"
        conn.rollback()
        assert invoice.using(conn=conn).enqueue("vip").shard == "us"
        conn.commit()
    assert counts(rota) == {"us": 1}


def test_conn_of_sqlalchemy(rota: Shards) -> None:
    """A session of SQLAlchemy leads, too."""
    invoice, _ = declared(rota)
    engine = create_engine(f"sqlite:///{file_of(rota, 'eu')}")
    with Session(engine) as session:
        assert invoice.enqueue("vip", conn=session).shard == "eu"
        session.commit()
    engine.dispose()
    assert counts(rota) == {"eu": 1}


def test_own_transactions(rota: Shards) -> None:
    """The block of a transaction of Rota's own leads to its shard."""
    _, ping = declared(rota)
    with rota["us"].transaction() as tx:
        assert ping.enqueue(conn=tx).shard == "us"
    with rota.on("asia"), rota.transaction() as tx:
        ping.enqueue(conn=tx)
    assert counts(rota) == {"us": 1, "asia": 1}


@pytest.mark.asyncio
async def test_async_connections_lead(rota: Shards) -> None:
    """Async connections, sessions and blocks lead, and so do blocking ones in async code."""
    _, ping = declared(rota)
    async with aiosqlite.connect(file_of(rota, "us")) as conn:
        assert (await ping.aenqueue(conn=conn)).shard == "us"
        await conn.commit()
    engine = create_async_engine(f"sqlite+aiosqlite:///{file_of(rota, 'eu')}")
    async with AsyncSession(engine) as session:
        assert (await ping.aenqueue(conn=session)).shard == "eu"
        await session.commit()
    await engine.dispose()
    async with rota["asia"].transaction() as tx:
        assert (await ping.aenqueue(conn=tx)).shard == "asia"
    with closing(sqlite3.connect(file_of(rota, "us"))) as blocking:
        assert (await ping.aenqueue(conn=blocking)).shard == "us"
        blocking.commit()
    assert counts(rota) == {"us": 2, "eu": 1, "asia": 1}


def test_conn_leads_to_none(rota: Shards, tmp_path: Path) -> None:
    """A connection to another database is refused, and its transaction has no job."""
    invoice, _ = declared(rota)
    with closing(sqlite3.connect(tmp_path / "other.db")) as conn:
        with pytest.raises(ConfigError, match="none of the shards eu, us, asia"):
            invoice.enqueue("vip", conn=conn)
        assert conn.execute("SELECT count(*) FROM sqlite_master").fetchall() == [(0,)]


def test_conn_is_of_another_kind(rota: Shards, postgres_url: str) -> None:
    """A connection to a kind of database that no shard is of is refused."""
    invoice, _ = declared(rota)
    with (
        psycopg.connect(postgres_url) as conn,
        pytest.raises(ConfigError, match="none of the shards"),
    ):
        invoice.enqueue("vip", conn=conn)


@pytest.mark.both
def test_conn_leads_while_another_shard_is_down(
    store: object, store_url: str, tmp_path: Path
) -> None:
    """A connection to one shard is recognised while another shard cannot be reached.

    A connection to no shard is not refused for good.
    """
    del store
    urls = {"down": "postgresql://nobody@127.0.0.1:1/nothing?connect_timeout=2", "up": store_url}
    with Rota.shards(urls) as rota:
        _, ping = declared(rota)
        with rota["up"].transaction() as tx:
            handle = ping.enqueue(conn=tx)
        assert handle.shard == "up"
        assert handle.status is State.AVAILABLE
        other = tmp_path / "other.db"
        with (
            Rota(f"sqlite:///{other}") as elsewhere,
            elsewhere.transaction() as tx,
            pytest.raises((StoreUnavailable, ConfigError)),
        ):
            ping.enqueue(conn=tx)


def test_two_names_of_one_database(tmp_path: Path) -> None:
    """Two shards that are one database are found out before a job lies there under the wrong name."""
    file = tmp_path / "rota.db"
    urls = {"eu": f"sqlite:///{file}", "us": f"sqlite:///{tmp_path}/./rota.db"}
    with Rota.shards(urls) as rota:
        _, ping = declared(rota)
        with (
            closing(sqlite3.connect(file_of(rota, "eu"))) as conn,
            pytest.raises(ConfigError, match="shards eu and us are the same database"),
        ):
            ping.enqueue(conn=conn)


# Handles ------------------------------------------------------------------------------------------


def test_references(rota: Shards) -> None:
    """Jobs of two shards with one id are told apart by their references, which find them again."""
    invoice, ping = declared(rota)
    with rota.on("eu"):
        first: JobHandle[Any] = ping.enqueue(1)
    with rota.on("us"):
        second = invoice.enqueue("vip", 2)
    assert (first.id, first.reference, second.reference) == (second.id, "eu:1", "us:1")
    assert repr(second) == "<JobHandle us:1>"
    assert rota.job("us:1").record().task == "invoice"
    assert rota.job("eu:1").record().task == "ping"
    rota.job(first.reference).cancel()
    assert (first.status, second.status) == (State.CANCELLED, State.AVAILABLE)
    with pytest.raises(JobNotFound):
        rota.job("asia:1").record()


@pytest.mark.parametrize("reference", ["1", "eu:", "eu:x", ":", "", "eu:-1", f"eu:{2**70}"])
def test_no_reference(rota: Shards, reference: str) -> None:
    """What is no reference is said to be none."""
    with pytest.raises(JobNotFound, match="does not name a job of several databases"):
        rota.job(reference)


def test_a_reference_to_no_shard(rota: Shards) -> None:
    """A reference to a shard that there is not names those that there are."""
    with pytest.raises(ConfigError, match="no shard 'mars'; the shards are eu, us, asia"):
        rota.job("mars:1")


def test_the_reference_of_a_single_database(tmp_path: Path) -> None:
    """Where one database is the app, a handle's reference is its id, and it has no shard."""
    with Rota(f"sqlite:///{tmp_path}/rota.db") as rota:

        @rota.task(name="ping")
        def ping() -> None: ...

        handle = ping.enqueue()
        assert (handle.shard, handle.reference) == (None, "1")


# What is declared for all -------------------------------------------------------------------------


def test_each_shard_is_an_app(rota: Shards) -> None:
    """A shard has the tasks that were declared for all, and its own jobs, queues and cron entries."""
    invoice, _ = declared(rota)
    assert [*rota] == [*NAMES]
    assert all(isinstance(shard, Rota) for shard in rota.values())
    rota["eu"].cron("@daily", args=("acme",))(invoice.using(priority=3))
    rota["us"].cron("@hourly", name="bills", args=("acme",))(invoice)
    [entry] = rota["eu"].cron.declarations()
    assert (entry.task, entry.priority) == ("invoice", 3)
    assert [*rota["us"].cron.declared] == ["bills"]
    rota["us"].queue("default").pause()
    assert [name for name, shard in rota.items() if shard.admin.queues()] == ["us"]


def test_declared_twice(rota: Shards) -> None:
    """A task's name is taken once for all shards."""
    declared(rota)
    with pytest.raises(TaskAlreadyRegistered):
        declared(rota)


def test_retention_and_queues(rota: Shards) -> None:
    """What the app, a task and a queue say of retention holds on each shard."""

    @rota.task(name="kept", retention=7)
    def kept() -> None: ...

    @rota.task(name="quick", queue="mail")
    def quick() -> None: ...

    rota.queue("mail", retention=3, max_attempts=2)
    for shard in rota.values():
        assert shard.tasks["kept"].keeps["default"].completed == 7
        assert shard.tasks["quick"].keeps["mail"].completed == 3
    with pytest.raises(ConfigError, match="already declared"):
        rota.queue("mail", retention=4)
    with rota.on("us"):
        assert quick.enqueue().record().max_attempts == 2


def test_subscribers_know_where(rota: Shards) -> None:
    """A subscriber hears of all shards, and is told on which one it happened."""
    _, ping = declared(rota)
    heard: list[tuple[str, JobId]] = []

    @rota.on(JobsEnqueued)
    def hear(event: JobsEnqueued) -> None:
        heard.extend((rota.here, job) for job in event.jobs)

    for name in ("us", "eu"):
        with rota.on(name):
            ping.enqueue()
    assert heard == [("us", 1), ("eu", 1)]


def test_log_lines_name_the_shard(rota: Shards, caplog: pytest.LogCaptureFixture) -> None:
    """What Rota logs of a shard names it, in the text and as a field."""
    caplog.set_level(logging.INFO, logger="rota")
    rota["us"].events.emit(Tidied(("swept 100%",)))
    [record] = caplog.records
    assert record.getMessage() == "shard us: upkeep: swept 100%"
    assert record.__dict__["shard"] == "us"


def test_middleware_around_enqueues(rota: Shards) -> None:
    """Middleware is around the enqueues of all shards, and may change all but the shard."""
    invoice, _ = declared(rota)
    seen: list[str] = []

    @rota.around_enqueue
    def look(call: EnqueueCall, call_next: Callable[[EnqueueCall], list[JobId]]) -> list[JobId]:
        seen.append(call.task.name)
        return call_next(call.using(priority=5))

    handle = invoice.enqueue("vip")
    assert (seen, handle.shard, handle.record().priority) == (["invoice"], "asia", 5)


def test_keys_of_batches(rota: Shards) -> None:
    """A job of a batch task has a key where its element is the parameter."""

    @rota.task(name="gather", batch=10)
    def gather(tenant: list[str]) -> None:
        del tenant

    assert isinstance(gather, BatchTask)
    assert gather.enqueue("vip").shard == "asia"


def test_a_key_that_cannot_be_made(tmp_path: Path) -> None:
    """A key that is a list is refused as any other key of that kind."""
    with Rota.shards(urls_in(tmp_path), key="{tenant}") as rota:

        @rota.task(name="odd")
        def odd(tenant: list[int]) -> None:
            del tenant

        with pytest.raises(ArgsError, match="key of task 'odd'"):
            odd.enqueue([1])


def test_direct_calls(rota: Shards) -> None:
    """A task is still called like its function; its context's transaction is the current shard's."""

    @rota.task(name="charge")
    def charge(ctx: Context) -> str:
        with ctx.transaction() as tx:
            tx.execute("CREATE TABLE charges (id)")
        return ctx.task

    with rota.on("us"):
        assert charge() == "charge"
    with closing(sqlite3.connect(file_of(rota, "us"))) as conn:
        assert conn.execute("SELECT * FROM charges").fetchall() == []


# What is given ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("urls", "why"),
    [
        ({}, "need a name and a URL"),
        ({"": "sqlite:///a.db"}, "a name consists of up to 50 letters"),
        ({"eu:1": "sqlite:///a.db"}, "a name consists of up to 50 letters"),
        ({"e u": "sqlite:///a.db"}, "a name consists of up to 50 letters"),
        ({"eu": "sqlite:///a.db", "us": "sqlite:///a.db"}, "two shards have the same URL"),
        ({"eu": "mysql://a"}, "not a database URL"),
    ],
)
def test_wrong_shards(urls: Mapping[str, str], why: str) -> None:
    """What cannot be shards is refused at once."""
    with pytest.raises(ConfigError, match=why):
        Rota.shards(urls)


def test_pinned_to_nowhere(tmp_path: Path) -> None:
    """A key that is pinned to a shard that there is not is refused at once."""
    with pytest.raises(ConfigError, match="no shard 'mars'"):
        Rota.shards(urls_in(tmp_path), pinned={"acme": "mars"})


def test_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without arguments the shards are those of ROTA_SHARDS, in their order."""
    given = " ".join(f"{name}={url}" for name, url in urls_in(tmp_path).items())
    monkeypatch.setenv("ROTA_SHARDS", given)
    with Rota.shards() as rota:
        assert {name: shard.url for name, shard in rota.items()} == urls_in(tmp_path)


@pytest.mark.parametrize(
    ("value", "why"),
    [("", "need a name"), ("sqlite:///a.db", "not NAME=URL"), ("a=b a=c", "a repeated name")],
)
def test_a_wrong_environment(value: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ROTA_SHARDS cannot mean is refused."""
    monkeypatch.setenv("ROTA_SHARDS", value)
    with pytest.raises(ConfigError, match=why):
        Rota.shards()


def test_passwords_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message about a variable that cannot be read hides passwords."""
    monkeypatch.setenv("ROTA_SHARDS", "postgresql://ada:secret@host/db")
    with pytest.raises(ConfigError) as caught:
        Rota.shards()
    assert "secret" not in str(caught.value)
