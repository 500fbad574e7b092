"""URLs: what libpq understands, and the one parameter that is Rota's own."""

from contextlib import closing
from urllib.parse import quote, urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rota.errors import ConfigError, PoolerUnannounced, StoreUnavailable
from rota.model.job import JobSpec, Order
from rota.store.opening import open_store
from rota.store.postgres.store import PostgresStore
from tests.fixtures.proxy import Proxy
from tests.store.postgres.database import Database


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_in_another_encoding(db: Database, encoding: str) -> None:
    """Text is text there, too: not bytes, nor letters of the driver's choice."""
    name = f"{db.admin.info.dbname}_{encoding.lower()}"
    db.sql(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    try:
        url = make_conninfo(db.url, dbname=name)
        with Database(
            f"postgresql://?{urlencode(conninfo_to_dict(url), quote_via=quote)}"
        ) as other:
            spec, args = JobSpec("größe"), ['{"name":"Zoë"}']
            other.own.run(other.store.enqueue(Order(spec, args)))
            [job] = other.claim(other.session())
            assert (job.task, job.args) == (spec.task, args[0])
    finally:
        db.sql(f"DROP DATABASE {name}")


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
@pytest.mark.parametrize("more", [{}, {"pooler": "transaction"}])
def test_a_url_without_a_host(db: Database, scheme: str, more: dict[str, str]) -> None:
    """Where libpq finds the server by itself or by parameters; both spellings of the scheme."""
    parameters = {key: str(value) for key, value in conninfo_to_dict(db.url).items()}
    name = parameters.pop("dbname")
    url = f"{scheme}:///{name}?{urlencode(parameters | more, quote_via=quote)}"
    with closing(open_store(url)) as store, closing(store.connect()) as connection:
        assert connection.run(store.schema_version()) == max(store.migrations())
        assert connection.run(store.queues()) == []


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("postgresql:///shop", "postgresql:///shop"),
        ("postgres:///shop?pooler=transaction", "postgres:///shop"),
        ("postgresql://h/shop?a=1&pooler=transaction&b=x%20y", "postgresql://h/shop?a=1&b=x%20y"),
        ("postgresql://h/shop?options=a+b", "postgresql://h/shop?options=a+b"),
        ("postgresql://a:5432,b/x", "postgresql://a:5432,b/x?target_session_attrs=read-write"),
        ("postgresql:///x?host=a,b", "postgresql:///x?host=a,b&target_session_attrs=read-write"),
        (
            "postgresql://u:p@a:1,[::1]:2,[::2]/x?pooler=transaction&target_session_attrs=any",
            "postgresql://u:p@a:1,[::1]:2,[::2]/x?target_session_attrs=any",
        ),
    ],
)
def test_what_the_driver_is_given(url: str, read: str) -> None:
    """All but Rota's own parameter stays as it was written."""
    assert PostgresStore(url).connect().url == read


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://h:x/shop",
        "postgresql://h:1,i:x/shop",
        "postgresql://h:1,i:65536/shop",
        "postgresql://u:p#q@h/shop",
        "postgresql://[::1/shop",
        "postgres:///shop?pooler=session",
        "postgresql://h/?pooler=",
    ],
)
def test_refused(url: str) -> None:
    """A URL that cannot be meant is refused before any connection is made."""
    with pytest.raises(ConfigError):
        PostgresStore(url)


@pytest.mark.parametrize("url", ["postgresql+psycopg://h/shop", "POSTGRES://h/shop", "mysql://h"])
def test_another_scheme(url: str) -> None:
    """The message says what to write."""
    with pytest.raises(ConfigError, match=r"use postgresql://user@host/database"):
        open_store(url)


def test_a_pooler_that_the_url_does_not_name(db: Database) -> None:
    """Its next connection has another client's prepared statements; the message says what to add."""
    with closing(open_store(db.url)) as store, closing(store.connect()) as connection:
        for _ in range(10):
            connection.run(store.queues())
        raw = connection.raw()  # type: ignore[attr-defined]  # the driver's
        prepared = raw.execute("SELECT name FROM pg_prepared_statements", prepare=False).fetchall()
        assert prepared
        for (name,) in prepared:
            # Through the protocol, as another client would: the driver does not notice.
            raw.pgconn.exec_(f'DEALLOCATE "{name}"'.encode())
        with pytest.raises(PoolerUnannounced, match="pooler=transaction"):
            connection.run(store.queues())


def test_several_hosts(db: Database) -> None:
    """The first one that answers is used, and the next one when it has gone."""
    with Proxy(db.url) as one, Proxy(db.url) as two:
        url = one.url.replace(one.address, f"{one.address},{two.address}")
        with closing(open_store(url)) as store, closing(store.connect()) as connection:
            assert connection.run(store.queues()) == []
            assert (one.calls, two.calls) == (1, 0)
            one.close()
            assert connection.run(store.queues()) == []
            assert two.calls == 1


def test_a_host_that_only_reads(db: Database) -> None:
    """Of several hosts the one that can be written to is used; a single one is used as it is."""
    only_reads = "&options=-c%20default_transaction_read_only%3Don"
    with Proxy(db.url) as one, Proxy(db.url) as two:
        url = one.url.replace(one.address, f"{one.address},{two.address}")
        with (
            closing(open_store(url + only_reads)) as store,
            closing(store.connect()) as connection,
            pytest.raises(StoreUnavailable, match="read-only"),
        ):
            connection.run(store.queues())
        assert (one.calls, two.calls) == (1, 1)
        with (
            closing(open_store(one.url + only_reads)) as store,
            closing(store.connect()) as connection,
        ):
            assert connection.run(store.queues()) == []
