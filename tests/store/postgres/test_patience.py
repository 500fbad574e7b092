"""How long Rota's connections wait: as long as the server is there, and no longer."""

import time
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from rota import Rota, StoreUnavailable
from rota.store.postgres import patience
from rota.store.postgres.connection import PostgresConnection
from rota.store.postgres.store import PostgresStore
from tests.fixtures.proxy import Proxy
from tests.store.factories import until
from tests.store.postgres.database import Database, Later

SHORT = 0.3
LIMIT = 10.0
"""Seconds that are too long, whatever else the machine does."""


@pytest.fixture
def proxy(db: Database) -> Iterator[Proxy]:
    """A way to the database that can go silent."""
    with Proxy(db.url) as proxy:
        yield proxy


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for seconds."""
    monkeypatch.setattr(patience, "SILENCE", SHORT)
    monkeypatch.setattr(patience, "ASKING", 2)
    monkeypatch.setitem(patience.REACH, "connect_timeout", 2)


@pytest.fixture
def own(proxy: Proxy) -> Iterator[PostgresConnection]:
    """A connection by way of the proxy, already made."""
    with closing(PostgresStore(proxy.url).connect()) as connection:
        connection.raw()
        yield connection


@pytest.mark.parametrize("asking", [True, False])
def test_a_server_that_says_nothing_any_more(
    db: Database, proxy: Proxy, own: PostgresConnection, *, asking: bool
) -> None:
    """An operation fails soon, and the next one works when the server is back."""
    with proxy.silent(asking=asking):
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="no answer within"):
            own.run(db.store.queues())
        assert time.monotonic() - began < LIMIT
    assert own.run(db.store.queues()) == []


def test_statements_that_go_at_once(db: Database, proxy: Proxy, own: PostgresConnection) -> None:
    """Nor does a claim wait without end."""
    session = db.session()
    db.enqueue(1)
    with proxy.silent(), pytest.raises(StoreUnavailable, match="no answer within"):
        own.run(db.store.claim(session, ["default"], 1, woken=True))
    assert len(own.run(db.store.claim(session, ["default"], 1, woken=True))) == 1


@pytest.mark.parametrize("connected", [True, False])
def test_an_enqueue(proxy: Proxy, *, connected: bool) -> None:
    """A producer gets an error within a stated time, also while it connects."""
    with closing(Rota(proxy.url)) as app:

        @app.task(name="send")
        def send() -> None: ...

        app.ready()
        if connected:
            send.enqueue()
        with proxy.silent(), pytest.raises(StoreUnavailable, match="cannot be reached"):
            send.enqueue()
        send.enqueue()


def test_a_lock_is_waited_for(db: Database, proxy: Proxy) -> None:
    """A statement that the server works on takes as long as it needs, however often it is asked."""
    with Database(proxy.url) as far, db.bare() as holder:
        holder.execute("LOCK TABLE rota.queue")
        later = Later(far, far.store.queues())
        asked_after(proxy)
        assert not later.ended
        assert db.waits_for(later.pid, holder.info.backend_pid)
        holder.rollback()
        assert later.result() == []


def test_a_server_that_refuses_is_there(db: Database, proxy: Proxy) -> None:
    """A refusal is an answer, too."""
    elsewhere = make_conninfo(db.url, dbname="postgres")
    allow = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
    name = sql.Identifier(db.admin.info.dbname)
    with (
        Database(proxy.url) as far,
        closing(psycopg.connect(elsewhere, autocommit=True)) as other,
        db.bare() as holder,
    ):
        holder.execute("LOCK TABLE rota.queue")
        later = Later(far, far.store.queues())
        other.execute(allow.format(name, False))
        asked_after(proxy)
        assert not later.ended
        other.execute(allow.format(name, True))
        holder.rollback()
        assert later.result() == []


def test_an_answer_that_was_lost(db: Database, proxy: Proxy, own: PostgresConnection) -> None:
    """A server that waits for its client, while the client waits for it, is not waited for."""
    with proxy.silent(new=False), pytest.raises(StoreUnavailable, match="lost on the way"):
        own.run(db.store.queues())
    assert own.run(db.store.queues()) == []


def test_behind_a_pooler(db: Database, proxy: Proxy) -> None:
    """There the server's process is another one each time: an answer at all has to do."""
    with (
        closing(PostgresStore(f"{proxy.url}&pooler=transaction").connect()) as connection,
        proxy.silent(),
        pytest.raises(StoreUnavailable, match="cannot be reached"),
    ):
        connection.run(db.store.queues())


@pytest.mark.parametrize(
    ("given", "is_set"),
    [("", "15000"), ("&tcp_user_timeout=7000", "7000")],
)
def test_the_systems_own_limits(proxy: Proxy, given: str, is_set: str) -> None:
    """They hold by default, and the URL may say others."""
    with closing(PostgresStore(proxy.url + given).connect()) as connection:
        options = {option.keyword: option.val for option in connection.raw().pgconn.info}
    assert options[b"tcp_user_timeout"] == is_set.encode()
    assert options[b"keepalives_idle"] == b"10"
    assert options[b"keepalives_interval"] == b"5"
    assert options[b"keepalives_count"] == b"3"


def test_a_connection_that_is_not_made_in_order(proxy: Proxy) -> None:
    """A connection that was lost while it got its settings is not used."""
    with closing(PostgresStore(proxy.url).connect()) as connection:
        with proxy.silent_after(b"SET jit"), pytest.raises(StoreUnavailable):
            connection.raw()
        assert connection.raw().execute("SHOW jit").fetchone() == ("off",)


def asked_after(proxy: Proxy) -> None:
    """Wait until a connection that waits for an answer has asked after the server, twice."""
    before = proxy.calls
    until(lambda: True if proxy.calls >= before + 2 else None)
