"""Connections that the server, or something on the way, has closed while nothing used them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from rota import Rota, StoreUnavailable, Task
from rota.measure.servers import PostgresServer
from rota.store.migrate import migrate
from rota.store.opening import open_store
from tests.fixtures.proxy import Proxy
from tests.store.factories import until
from tests.store.postgres.database import Database

ENDED = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@pytest.fixture
def proxy(db: Database) -> Iterator[Proxy]:
    """A way to the database that can be cut."""
    with Proxy(db.url) as proxy:
        yield proxy


@pytest.fixture
def app(proxy: Proxy) -> Iterator[Rota]:
    """An app that goes this way."""
    with closing(Rota(proxy.url)) as app:
        yield app


def send_of(app: Rota) -> Task[[int], None, None]:
    """A task of the app's."""

    @app.task(name="send")
    def send(number: int) -> None: ...

    return send


def test_ended_by_the_server(db: Database) -> None:
    """The next enqueue goes to a new connection, and so does the next transaction."""
    with closing(Rota(db.url)) as app:
        send = send_of(app)
        send.enqueue(1)
        assert db.sql(ENDED)
        send.enqueue(2)
        with app.transaction() as tx:
            send.using(conn=tx).enqueue(3)
        assert db.sql(ENDED)
        with app.transaction() as tx:
            send.using(conn=tx).enqueue(4)
        assert db.sql(ENDED)
        send.enqueue_many([number] for number in range(5, 8))
    assert db.one("SELECT count(*) FROM rota.log") == 7


def test_ended_by_a_restart(postgres_server: PostgresServer) -> None:
    """A server that has restarted in the meantime has closed them all."""
    with closing(Rota(postgres_server.create_database("restarted"))) as app:
        with closing(open_store(app.url)) as store, closing(store.connect()) as connection:
            migrate(store, connection)
        send = send_of(app)
        send.enqueue(1)
        postgres_server.restart()
        send.enqueue(2)


def test_cut_on_the_way(db: Database, proxy: Proxy, app: Rota) -> None:
    """Without a last word, too."""
    send = send_of(app)
    send.enqueue(1)
    assert proxy.calls
    proxy.cut()
    send.enqueue(2)
    assert db.one("SELECT count(*) FROM rota.log") == 2


def test_lost_while_it_was_used(db: Database, proxy: Proxy, app: Rota) -> None:
    """What may have been stored is not tried again: it would be stored twice."""
    send = send_of(app)
    send.enqueue(1)
    with ThreadPoolExecutor() as threads, proxy.silent(asking=False):
        second = threads.submit(send.enqueue, 2)
        until(lambda: True if db.one("SELECT count(*) FROM rota.log") == 2 else None)
        proxy.cut()
        with pytest.raises(StoreUnavailable):
            second.result()
    assert db.one("SELECT count(*) FROM rota.log") == 2
