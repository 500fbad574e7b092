"""Reading on a hot standby, while Rota empties its tables on the primary."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

from rota.measure.servers import PostgresServer
from rota.store.postgres import clearing, rings
from tests.faults.processes import until
from tests.fixtures.standby import catch_up, standby_of
from tests.store.postgres.database import Database

pytestmark = pytest.mark.large

Reader = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def db(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """A database whose rings turn whenever they can, with a table of somebody else."""
    for size in ("LOG_SIZE", "LEASE_SIZE", "CURSOR_SIZE", "TALLY_SIZE"):
        monkeypatch.setattr(rings, size, 0)
    monkeypatch.setattr(clearing, "REST", 0.0)
    with Database(postgres_server.create_database("shop")) as db:
        db.sql("CREATE TABLE public.article AS SELECT generate_series(1, 100) AS id")
        yield db


@pytest.fixture
def standby(postgres_server: PostgresServer, db: Database) -> Iterator[PostgresServer]:
    """A server that follows."""
    assert db.enqueue(10)
    with standby_of(postgres_server) as standby:
        catch_up(postgres_server, standby)
        yield standby


def reading(db: Database, standby: PostgresServer, query: str) -> Reader:
    """A snapshot on the standby, known to the primary, that has read something and goes on."""
    raw = psycopg.connect(standby.url.replace("/postgres?", "/shop?"))
    raw.execute("SET idle_in_transaction_session_timeout = 0")
    raw.commit()
    raw.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    assert raw.execute(query).fetchall()
    [(xmin,)] = raw.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::int8")
    told = "SELECT backend_xmin::text::int8 <= %s FROM pg_stat_replication"
    until(lambda: db.sql(told, xmin) == [(True,)], "the primary to hear of it")
    return raw


def patience(standby: PostgresServer, delay: str) -> None:
    """How long replay waits for readers there; of their snapshots the primary hears."""
    with psycopg.connect(standby.url, autocommit=True) as admin:
        admin.execute(f"ALTER SYSTEM SET max_standby_streaming_delay = '{delay}'".encode())
        admin.execute("ALTER SYSTEM SET hot_standby_feedback = on")
        admin.execute("ALTER SYSTEM SET wal_receiver_status_interval = '1s'")
        admin.execute("SELECT pg_reload_conf()")
        shown = "SELECT current_setting('max_standby_streaming_delay')"
        until(lambda: admin.execute(shown).fetchone() == (delay,), "the setting")


def work(db: Database) -> None:
    """Jobs run, and the log is emptied behind them."""
    session = db.session()
    db.settle(session, db.claim_all(session))
    for _ in range(8):
        db.own.run(db.store.tidy())
    assert sum(db.sizes()) == 0


def test_readers_of_other_tables_are_left_alone(
    postgres_server: PostgresServer, db: Database, standby: PostgresServer
) -> None:
    """Neither do they keep replay waiting, however long they read."""
    patience(standby, "0")
    with closing(reading(db, standby, "SELECT count(*) FROM public.article")) as reader:
        work(db)
        catch_up(postgres_server, standby)
        assert reader.execute("SELECT count(*) FROM public.article").fetchall() == [(100,)]


def test_a_reader_of_jobs_is_ended(
    postgres_server: PostgresServer, db: Database, standby: PostgresServer
) -> None:
    """When the delay is over, though the primary knows of it; then replay goes on."""
    patience(standby, "0")
    with closing(reading(db, standby, "SELECT count(*) FROM rota.job")) as reader:
        work(db)
        catch_up(postgres_server, standby)
        with pytest.raises(psycopg.Error, match="conflict with recovery"):
            reader.execute("SELECT count(*) FROM rota.job")


def test_a_standby_for_reports(
    postgres_server: PostgresServer, db: Database, standby: PostgresServer
) -> None:
    """Without a limit of the delay the reader goes on, and replay waits until it has ended."""
    patience(standby, "-1")
    with closing(reading(db, standby, "SELECT count(*) FROM rota.job")) as reader:
        work(db)
        with psycopg.connect(standby.url.replace("/postgres?", "/shop?"), autocommit=True) as admin:
            waits = "SELECT relation::regclass FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"
            until(lambda: admin.execute(waits).fetchall(), "replay to wait")
            assert reader.execute("SELECT count(*) FROM rota.job").fetchall() == [(10,)]
            # What is not to be emptied can be read meanwhile, as it was.
            assert admin.execute("SELECT count(*) FROM public.article").fetchall() == [(100,)]
        reader.commit()
        catch_up(postgres_server, standby)
        assert reader.execute("SELECT count(*) FROM rota.job").fetchall() == [(0,)]
