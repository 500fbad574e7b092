"""What the observer sees of PostgreSQL, and that a held transaction really holds the horizon."""

import re
from collections.abc import Iterator
from contextlib import closing, nullcontext

import psycopg
import pytest

from rota import Rota
from rota.measure.bench.holder import held
from rota.measure.bench.observer import Observer
from rota.measure.bench.scratch import Scratch
from rota.store.migrate import migrate
from rota.store.opening import open_store
from tests.fixtures.workers import until


@pytest.fixture
def url(postgres_url: str) -> str:
    """A database with Rota's tables."""
    store = open_store(postgres_url)
    with closing(store.connect()) as connection:
        migrate(store, connection)
    store.close()
    return postgres_url


@pytest.fixture
def observer(url: str) -> Iterator[Observer]:
    """An observer that counts from another database of the server."""
    server = re.sub(r"^(\w+://[^/?]*)(/[^?]*)?", r"\1/postgres", url)
    with closing(Observer(url, Scratch(server=server, folder=None))) as observer:
        yield observer


def execute(url: str, *statements: str) -> None:
    """Run statements on a connection of their own; its end reports their statistics."""
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_dead_rows_are_counted(url: str, observer: Observer) -> None:
    """A deleted row counts as dead, in the log and in all tables; an inserted row does not."""
    before = observer.tables()
    row = (
        "INSERT INTO rota.log (id, lane, segment, max_attempts, task, args)"
        " VALUES (1, 1, 0, 1, 'x', '{}')"
    )
    execute(url, row, "DELETE FROM rota.log", "UPDATE rota.timer_mark SET seq = seq + 1")
    until(lambda: observer.tables().made != before.made, "the statistics")
    after = observer.tables()
    assert (after.log_made, before.log_made) == (1, 0)
    assert (after.log_dead, before.log_dead) == (1, 0)
    assert after.made is not None
    assert before.made is not None
    assert after.made - before.made == 2
    assert after.bytes > before.bytes > 0


def test_the_observer_is_not_counted(url: str, observer: Observer) -> None:
    """Looking at the number of transactions adds none; another session's are seen."""
    server = re.sub(r"^(\w+://[^/?]*)(/[^?]*)?", r"\1/postgres", url)
    before = observer.transactions()
    assert before is not None
    with closing(Observer(url, Scratch(server=server, folder=None))) as other:
        for _ in range(100):
            other.transactions()
    # Its end has reported whatever it did in the database; so will the end of these.
    execute(url, *["SELECT 1"] * 50)
    until(lambda: (observer.transactions() or 0) >= before + 50, "the statistics")
    assert (observer.transactions() or 0) < before + 100


def test_wal_grows_with_what_is_written(url: str, observer: Observer) -> None:
    """Bytes of WAL are those that were written in between."""
    before = observer.wal()
    with Rota(url) as app:
        app.task(name="wal")(lambda text: text).enqueue_many([("x" * 1000,)] * 100)
    after = observer.wal()
    assert before is not None
    assert after is not None
    assert after.bytes - before.bytes > 100_000


@pytest.mark.parametrize("holding", [True, False])
def test_held(url: str, observer: Observer, *, holding: bool) -> None:
    """Under a held snapshot vacuum cannot remove newer dead rows; without it, it can."""
    with held(url) if holding else nullcontext():
        execute(url, "UPDATE rota.timer_mark SET seq = seq + 1", "VACUUM rota.timer_mark")
        left = observer.tables()
        with closing(psycopg.connect(url)) as connection:
            holders = connection.execute(
                "SELECT backend_xid IS NOT NULL AND backend_xmin IS NOT NULL FROM pg_stat_activity"
                " WHERE datname = current_database() AND state = 'idle in transaction'"
            ).fetchall()
        assert holders == ([(True,)] if holding else [])
        with closing(psycopg.connect(url)) as connection:
            page = connection.execute("SELECT ctid::text FROM rota.timer_mark").fetchone()
        assert page == ("(0,2)",)
        if holding:
            assert left.oldest is not None
            assert left.oldest > 0
        execute(url, "UPDATE rota.timer_mark SET seq = seq + 1")
        with closing(psycopg.connect(url)) as connection:
            page = connection.execute("SELECT ctid::text FROM rota.timer_mark").fetchone()
    # Freed space is used again, or is not free.
    assert page == (("(0,3)",) if holding else ("(0,1)",))
