"""How many connections an app has, and what happens where none is free."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import psycopg
import pytest

from rota import ConfigError, ConnectionsInUse, LeaseLost, Rota, StoreError, StoreUnavailable, Task
from rota.model.job import SessionId
from rota.model.states import State
from rota.store import pool
from rota.store.pool import APART, CALL
from rota.store.protocol import Store
from tests.fixtures.workers import until

pytestmark = pytest.mark.both

OTHERS = (
    "datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
)
COUNT = f"SELECT count(*) FROM pg_stat_activity WHERE {OTHERS}"
BLOCKED = f"{COUNT} AND wait_event_type = 'Lock'"

Few = Callable[[int], Rota]


@pytest.fixture
def few(store: Store, store_url: str) -> Iterator[Few]:
    """Makes apps with few connections on one database."""
    del store  # it made the tables
    with ExitStack() as open_ones:
        yield lambda connections: open_ones.enter_context(Rota(store_url, connections=connections))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits long for a connection."""
    monkeypatch.setattr(pool, "PATIENCE", 0.05)


@pytest.fixture
def admin(few: Few, store_url: str) -> Iterator[Callable[[str], Any]]:
    """Asks the server for one value."""
    del few  # whose fixtures prepare the database
    with closing(psycopg.connect(store_url, autocommit=True)) as connection:

        def ask(sql: str) -> Any:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall()[0][0] if cursor.description else None

        yield ask


def send_of(app: Rota, fair: str | None = None) -> Task[[int], None, None]:
    """A task that nobody runs."""

    @app.task(name="send", fair=fair)
    def send(number: int) -> None:
        del number

    return send


def count(app: Rota) -> int:
    """How many jobs there are."""
    queues = app.database.run(app.database.store.queues())
    return sum(queue.counts.get(State.AVAILABLE, 0) for queue in queues)


postgres_only = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)


@postgres_only
@pytest.mark.parametrize("way", ["thread", "async"])
def test_many_producers_at_once(few: Few, admin: Callable[[str], Any], way: str) -> None:
    """110 threads, or 110 coroutines, enqueue over five connections."""
    app = few(5)
    send = send_of(app)
    send.enqueue(0)

    async def enqueue_all() -> None:
        await asyncio.gather(*(send.aenqueue(number) for number in range(110)))

    producers: list[Future[Any]] = []
    with closing(psycopg.connect(app.url)) as holder, ThreadPoolExecutor(110) as threads:
        holder.execute("LOCK TABLE rota.log IN SHARE MODE")
        if way == "thread":
            producers += [threads.submit(send.enqueue, number) for number in range(110)]
            until(lambda: len(threads._threads) == 110)
        else:
            producers.append(threads.submit(asyncio.run, enqueue_all()))
        try:
            seen = {until(lambda: admin(BLOCKED) == 4 and admin(COUNT) - 1)}
        finally:
            holder.rollback()
        while not all(producer.done() for producer in producers):
            seen.add(admin(COUNT) - 1)
        for producer in producers:
            producer.result()
    assert max(seen) <= 5
    assert count(app) == 111


@pytest.mark.timeout(30)
@pytest.mark.usefixtures("impatient")
def test_none_is_free(few: Few) -> None:
    """A transaction that finds none free is told what to do; its holder goes on, and so do calls."""
    app = few(3)
    # What an app says itself is not changed by a worker.
    app.database.allow_transactions(32)
    with app.transaction() as tx:
        with pytest.raises(ConnectionsInUse, match=r"for 0.05 seconds.*connections=6"):
            app.database.begin()
        assert count(app) == 0
        tx.execute("CREATE TABLE orders (id integer)")
    with app.transaction() as tx:
        assert tx.execute("SELECT count(*) FROM orders").fetchall() == [(0,)]


def test_those_that_wait_have_their_turn(few: Few) -> None:
    """Whoever waits gets the connection that is given back, the first one first."""
    store = few(3).database.store
    began: list[int] = []

    def begin(number: int) -> None:
        transaction = store.transaction()
        began.append(number)
        transaction.rollback()

    waiting = store.transaction()
    threads = [threading.Thread(target=begin, args=(number,)) for number in range(5)]
    for number, thread in enumerate(threads, 1):
        thread.start()
        until(lambda number=number: len(store._pool._waiting) == number)  # type: ignore[attr-defined, misc]
    waiting.rollback()
    for thread in threads:
        thread.join()
    assert began == [0, 1, 2, 3, 4]


@postgres_only
def test_calls_within_transactions(few: Few, monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions that all make calls, which need something done apart, do not wait for each other."""
    monkeypatch.setattr(pool, "PATIENCE", 5)
    app = few(4)
    send = send_of(app, fair="{number}")
    both = threading.Barrier(2)

    def work(number: int) -> None:
        with app.transaction() as tx:
            if number < 2:
                both.wait()
            tx.execute("SELECT 1")
            # Its lanes are new; they are made apart from its own transaction.
            send.enqueue_many([(2 * number,), (2 * number + 1,)])
            send.using(conn=tx).enqueue(1000 + number)

    with ThreadPoolExecutor(20) as threads:
        list(threads.map(work, range(20)))
    assert count(app) == 60


@postgres_only
@pytest.mark.timeout(60)
def test_what_is_done_apart_counts(few: Few) -> None:
    """A call that needs a second connection waits for it, and other calls leave it one."""
    app = few(3)
    store = app.database.store
    lending = store._pool  # type: ignore[attr-defined]
    send = send_of(app, fair="{number}")
    with ThreadPoolExecutor(2) as threads, store.lent():
        apart = lending.lend(APART)
        try:
            first = threads.submit(send.enqueue_many, [(1,), (2,)])
            until(lambda: [wait.loan for wait in lending._waiting] == [APART])
        finally:
            lending.give_back(apart)
        first.result()
        with store.lent():
            second = threads.submit(store.run, store.last_job())
            until(lambda: [wait.loan for wait in lending._waiting] == [CALL])
        second.result()
    assert count(app) == 2


@postgres_only
def test_an_idle_one_gives_way(few: Few, admin: Callable[[str], Any]) -> None:
    """Connections for calls and for transactions together are no more than there may be."""
    app = few(3)
    store = app.database.store
    with store.lent() as first, store.lent() as second:
        first.run(store.last_job())
        second.run(store.last_job())
    assert admin(COUNT) == 2
    with app.transaction() as tx:
        tx.execute("SELECT 1")
    assert admin(COUNT) == 3
    with store.lent() as first, store.lent() as second:
        first.run(store.last_job())
        second.run(store.last_job())
        third = store._pool.lend(APART)  # type: ignore[attr-defined]
        third.run(store.last_job())
        until(lambda: admin(COUNT) == 3)
        names = "string_agg(application_name, ' ')"
        assert admin(f"SELECT {names} FROM pg_stat_activity WHERE {OTHERS}") == "rota rota rota"
        store._pool.give_back(third)  # type: ignore[attr-defined]


@pytest.mark.usefixtures("impatient")
def test_after_errors(few: Few) -> None:
    """A call or a transaction that has failed, in whatever way, gives its connection back."""
    app = few(3)
    store = app.database.store
    for _ in range(4):
        with pytest.raises(LeaseLost):
            store.run(store.begin_lot(SessionId(4242), []))
        with pytest.raises(ZeroDivisionError), app.transaction():
            _ = 1 / 0
        with pytest.raises(StoreError, match=r"closed|ended"), app.transaction() as tx:
            getattr(tx.connection, "close" if store.name == "postgres" else "rollback")()
        transaction = store.transaction()
        transaction.commit()
        # Ended already: it is given back once.
        transaction.rollback()
    assert count(app) == 0


@postgres_only
@pytest.mark.usefixtures("impatient")
def test_after_a_lost_connection(few: Few, store_url: str) -> None:
    """A server that is away takes no connections away for ever, either."""
    away = few(3)
    away.use(store_url.replace("/rota_test_", "/none_"))
    for _ in range(4):
        for fail in (away.ready, away.database.store.transaction):
            with pytest.raises(Exception, match="none_") as caught:
                fail()
            assert not isinstance(caught.value, ConnectionsInUse)


@pytest.mark.usefixtures("impatient")
def test_a_forked_process(few: Few) -> None:
    """It knows of no loans: who has borrowed something is not there."""
    app = few(3)
    store = app.database.store
    with store.lent() as mine:
        mine.run(store.last_job())
        with store.lent():
            child = os.fork()
            if child == 0:
                try:
                    with store.lent() as one, store.lent() as another:
                        fine = one.run(store.last_job()) == another.run(store.last_job())
                    os._exit(0 if fine else 1)
                except BaseException:  # noqa: BLE001 - told by the status
                    os._exit(2)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
            with pytest.raises(ConnectionsInUse):
                store.run(store.last_job())
        assert mine.run(store.last_job()) == 0


@postgres_only
def test_lent_while_the_app_is_closed(few: Few, admin: Callable[[str], Any]) -> None:
    """What is lent at that moment is closed when it is given back."""
    app = few(3)
    with app.transaction() as tx:
        tx.execute("SELECT 1")
        app.close()
        until(lambda: admin(COUNT) == 1)
    until(lambda: admin(COUNT) == 0)
    assert count(app) == 0


@pytest.mark.parametrize("wrong", [2, 0, -1, True, 3.5, "10"])
def test_a_number_that_cannot_be(store_url: str, wrong: Any) -> None:
    """Three are needed: for a transaction, a call within it, and what that has done apart."""
    with pytest.raises(ConfigError, match="connections: must be a whole number of at least 3"):
        Rota(store_url, connections=wrong)


def test_the_family_of_the_error() -> None:
    """Who tries again later where the database is away does so here, too."""
    assert issubclass(ConnectionsInUse, StoreUnavailable)
