"""The facts that `rota doctor` judges, from a real server."""

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from rota.doctor.examine import examine
from rota.doctor.finding import Severity
from rota.errors import StoreUnavailable
from rota.measure.servers import PostgresServer
from rota.store.postgres import health, probe
from rota.store.postgres.store import PostgresStore
from tests.fixtures.proxy import Proxy
from tests.store.factories import until
from tests.store.postgres.database import Database, Later, Raw
from tests.store.postgres.examining import facts_of, findings, held, look
from tests.store.schema import contraction


@pytest.fixture
def as_nobody(db: Database) -> Iterator[str]:
    """The URL of the same database for a role without any right."""
    role = f"rota_test_{secrets.token_hex(6)}"
    db.sql(f"CREATE ROLE {role}")
    yield f"{db.url}{'&' if '?' in db.url else '?'}options=-c%20role%3D{role}"
    db.sql(f"DROP OWNED BY {role}; DROP ROLE {role}")


# What holds the oldest snapshot -------------------------------------------------------------------


def test_a_held_snapshot(db: Database) -> None:
    """A session with a snapshot and an id: its name, since when, how many transactions ago."""
    raw = db.bare(name="report")
    raw.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    raw.execute("SELECT pg_current_xact_id(), count(*) FROM rota.queue")
    db.enqueue(3)
    holder = held(db, "report")
    assert holder is not None
    assert (holder.kind, holder.pid, holder.state) == (
        "session",
        raw.info.backend_pid,
        "idle in transaction",
    )
    assert holder.writes
    assert holder.age is not None
    assert holder.age >= 1
    assert holder.seconds is not None
    assert holder.touches == ()
    raw.rollback()
    assert held(db, "report") is None


def test_a_snapshot_without_an_id(db: Database) -> None:
    """A transaction that only reads holds rows back, too."""
    raw = db.bare(name="pg_dump")
    raw.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    raw.execute("SELECT count(*) FROM rota.queue")
    db.enqueue(3)
    holder = held(db, "pg_dump")
    assert holder is not None
    assert not holder.writes
    assert holder.age is not None
    assert holder.age >= 1


def test_a_session_without_a_snapshot(db: Database) -> None:
    """Idle in a READ COMMITTED transaction without an id, a session holds nothing back."""
    raw = db.bare(name="idle")
    raw.execute("SELECT 1")
    assert held(db, "idle") is None


def test_a_session_that_has_read_the_log(db: Database) -> None:
    """It holds no rows back, and still its locks keep the segments from being truncated."""
    raw = db.bare(name="reader")
    raw.execute("SELECT count(*) FROM rota.log")
    holder = held(db, "reader")
    assert holder is not None
    assert holder.age is None
    assert holder.touches == ("log_0", "log_1", "log_2", "log_3")


def test_a_producer_that_does_not_commit(db: Database) -> None:
    """It has locked the one segment that it wrote to."""
    raw = db.bare(name="producer")
    db.enqueue(1, conn=raw)
    holder = held(db, "producer")
    assert holder is not None
    assert holder.touches == ("log_0",)


def test_a_prepared_transaction(db: Database) -> None:
    """It is named by its identifier, with its age and what it has locked; then it is gone."""
    gid = f"it's {secrets.token_hex(4)}"
    raw = db.bare()
    raw.tpc_begin(gid)
    raw.execute("INSERT INTO rota.queue (name) VALUES ('mail'); SELECT count(*) FROM rota.cursor")
    raw.tpc_prepare()
    raw.close()
    try:
        holder = held(db, gid)
    finally:
        db.admin.tpc_rollback(gid)
    assert holder is not None
    assert (holder.kind, holder.pid) == ("prepared", None)
    assert holder.touches == ("cursor_0", "cursor_1")
    assert holder.age is not None
    assert held(db, gid) is None


def test_other_databases_do_not_count(db: Database, postgres_url: str) -> None:
    """A snapshot in another database of the server holds back nothing here."""
    elsewhere = psycopg.connect(postgres_url, dbname="postgres", application_name="elsewhere")
    with closing(elsewhere) as raw:
        raw.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        raw.execute("SELECT pg_current_xact_id()")
        assert held(db, "elsewhere") is None


@pytest.fixture(scope="module")
def hurt() -> Iterator[PostgresServer]:
    """A server with settings that hurt, and with logical decoding."""
    settings = {"wal_level": "logical", "autovacuum": "off", "synchronous_commit": "off"}
    with PostgresServer.start(settings=settings) as server:
        yield server


@pytest.mark.postgres
@pytest.mark.usefixtures("postgres_url")  # skips where there is no PostgreSQL
def test_slots_and_settings(hurt: PostgresServer) -> None:
    """Slots without a reader, and settings that hurt, are named."""
    with Database(hurt.create_database("slots")) as db:
        db.sql("SELECT pg_create_logical_replication_slot('forgotten', 'test_decoding')")
        db.sql("SELECT pg_create_physical_replication_slot('left', true)")
        facts = look(db)
        slots = {slot.name: slot for slot in facts.holders if slot.kind == "slot"}
        assert set(slots) == {"forgotten", "left"}
        assert not slots["forgotten"].active
        assert slots["forgotten"].catalog_age is not None
        assert slots["left"].age is None
        assert slots["left"].kept_log is not None
        titles = [finding.title for finding in findings(db, "horizon")]
        assert any("forgotten" in title for title in titles)
        hurting = {finding.title for finding in findings(db, "settings")}
        assert {"autovacuum is off", "synchronous_commit is off"} < hurting
        for name in slots:
            db.sql("SELECT pg_drop_replication_slot(%s)", name)


def test_our_own_settings_are_not_mistaken(db: Database) -> None:
    """Rota's connections set a timeout for themselves; what others would have is reported."""
    assert look(db).settings["idle_in_transaction_session_timeout"] == "0"
    name = db.one("SELECT current_database()")
    db.sql(f"ALTER DATABASE {name} SET idle_in_transaction_session_timeout = '7min'")
    assert look(db).settings["idle_in_transaction_session_timeout"] == "420000"


# Locks --------------------------------------------------------------------------------------------


def test_who_waits_and_who_is_in_front(db: Database) -> None:
    """A claim that waits for its lane is seen, and so is the session that holds it."""
    db.enqueue(1)
    session = db.session()
    holder = db.bare(name="holder")
    holder.execute("SELECT FROM rota.lane FOR UPDATE")
    claim = Later(db, db.store.claim(session, ["default"], 1))
    front = holder.info.backend_pid
    until(lambda: db.waits_for(claim.pid, front) or None)
    [one] = look(db).waits
    assert (one.pid, one.blockers, one.application) == (claim.pid, (front,), "rota")
    assert one.seconds is not None
    holder.rollback()
    assert len(claim.result()) == 1
    assert look(db).waits == ()


def test_the_doctor_does_not_wait(db: Database) -> None:
    """Behind an exclusive lock a part remains unseen; the others are told."""
    holder = db.bare()
    holder.execute("LOCK TABLE rota.session IN ACCESS EXCLUSIVE MODE")
    facts = facts_of(db.store)
    assert set(facts.unseen) == {"sessions", "tables", "tasks"}
    assert "lock timeout" in facts.unseen["sessions"]
    assert facts.work.schema == facts.work.newest
    [unseen] = findings(db, "unseen")
    assert unseen.severity is Severity.WARNING


# The connection -----------------------------------------------------------------------------------


def test_notify_arrives(db: Database) -> None:
    """Straight to the server it does; through a proxy that swallows notifications it does not."""
    assert db.store.hears(5.0) is True
    with Proxy(db.url, swallow=True) as proxy:
        store = PostgresStore(proxy.url)
        assert facts_of(store).unseen == {}
        assert store.hears(0.2) is False


def test_another_probe_is_no_answer(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the probe's own payload counts."""
    theirs = probe._notify
    monkeypatch.setattr(probe, "_notify", lambda _: theirs("another doctor's"))
    assert db.store.hears(0.2) is False


def test_a_known_pooler(db: Database) -> None:
    """A URL that names its pooler is not probed, and everything else is told there, too."""
    store = PostgresStore(f"{db.url}{'&' if '?' in db.url else '?'}pooler=transaction")
    assert store.hears(1.0) is None
    facts = facts_of(store)
    assert facts.unseen == {}
    assert facts.settings["idle_in_transaction_session_timeout"] == "0"


def test_nothing_leaks_into_a_pool(db: Database) -> None:
    """The limits that the doctor sets for itself do not stay with a pooler's connection."""
    pooled = PostgresStore(f"{db.url}{'&' if '?' in db.url else '?'}pooler=transaction")
    for store, limit in ((db.store, "5s"), (pooled, "0")):
        with closing(store.connect()) as connection:
            connection.run(store.health())
            assert connection.raw().execute("SHOW statement_timeout").fetchone() == (limit,)


@pytest.mark.usefixtures("postgres_url")  # skips where there is no PostgreSQL
def test_a_standby() -> None:
    """A server that only reads is told as that, and nothing fails on the way."""
    folder = Path(tempfile.mkdtemp(prefix="rota-")) / "data"
    folder.parent.chmod(0o755)
    with PostgresServer.start(folder=folder) as server:
        with closing(psycopg.connect(server.url)) as raw:
            [(data,)] = raw.execute("SHOW data_directory").fetchall()
        Path(data, "standby.signal").touch()
        server.restart()
        store = PostgresStore(server.url)
        with closing(store.connect()) as connection:
            found = examine(store, connection).findings
        Path(data, "standby.signal").unlink()
    worst = {
        finding.subject: finding.title for finding in found if finding.severity is Severity.CRITICAL
    }
    assert worst.keys() == {"server", "schema"}
    assert "standby" in worst["server"]
    assert all(
        finding.severity < Severity.WARNING for finding in found if finding.subject not in worst
    )
    folder.parent.rmdir()


def test_clock(db: Database) -> None:
    """On one machine the clocks agree."""
    server = look(db).server
    assert abs(server.ahead) < 1
    assert 0 < server.round_trip < 5
    assert server.connections >= 1


def test_names(db: Database) -> None:
    """Rota's connections are told from users' transactions, and a URL's own name stands."""
    names = "SELECT application_name FROM pg_stat_activity WHERE pid = %s"
    assert db.one(names, db.own.raw().info.backend_pid) == "rota"
    transaction = db.store.transaction()
    assert db.one(names, transaction.connection.info.backend_pid) == "rota.transaction"
    transaction.rollback()
    db.store.close()
    named = PostgresStore(f"{db.url}{'&' if '?' in db.url else '?'}application_name=shop")
    with closing(named.connect()) as connection:
        assert db.one(names, connection.raw().info.backend_pid) == "shop"


# Where little is to be seen -----------------------------------------------------------------------


def test_without_tables(postgres_url: str) -> None:
    """An empty database has a version of 0; the server is looked at all the same."""
    facts = facts_of(PostgresStore(postgres_url))
    assert facts.work.schema == 0
    assert facts.unseen == {}
    assert facts.tables == ()
    assert facts.settings


def test_newer_tables(db: Database) -> None:
    """Tables of another version are told, with what of them can be read."""
    db.sql("INSERT INTO rota.schema_version VALUES (99)")
    db.sql("ALTER TABLE rota.heartbeat RENAME COLUMN at TO moment")
    facts = facts_of(db.store)
    assert facts.work.schema == 99
    assert set(facts.unseen) == {"sessions"}
    [finding] = findings(db, "schema")
    assert "and works with them" in finding.title
    db.sql(contraction(db.store, 98))
    [finding] = findings(db, "schema")
    assert "version 99; this Rota knows" in finding.title
    assert "knows version 98" in finding.detail


def test_older_tables(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that a migration is missing are a critical finding."""
    newest = max(db.store.migrations())
    monkeypatch.setattr(health, "migrations", lambda: {newest + 1: ""})
    [finding] = findings(db, "schema")
    assert f"version {newest}; this Rota needs {newest + 1}" in finding.title


def test_without_rights(db: Database, as_nobody: str) -> None:
    """A role without rights learns that, and what the server shows to all roles."""
    raw: Raw = db.bare(name="held")
    raw.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    raw.execute("SELECT pg_current_xact_id()")
    facts = facts_of(PostgresStore(as_nobody))
    assert set(facts.unseen) == {"schema"}
    assert "permission denied" in facts.unseen["schema"]
    assert not facts.server.sees_all
    holder = next(holder for holder in facts.holders if holder.name == "held")
    assert holder.age is not None
    assert holder.seconds is None
    assert facts.tables


def test_with_rights_to_the_schema_only(db: Database, as_nobody: str) -> None:
    """What may not be read is unseen part by part."""
    role = as_nobody.rpartition("%3D")[2]
    for grant in (
        "USAGE ON SCHEMA rota",
        "SELECT ON rota.schema_version, rota.timer, rota.timer_mark",
    ):
        db.admin.execute(sql.SQL(f"GRANT {grant} TO {role}"))
    facts = facts_of(PostgresStore(as_nobody))
    assert facts.work.schema == facts.work.newest
    assert {"sessions", "queues", "rescued"} <= facts.unseen.keys()
    assert "timers" not in facts.unseen


def test_no_server() -> None:
    """A server that is not there is an error, not a finding."""
    with pytest.raises(StoreUnavailable):
        facts_of(PostgresStore("postgresql://nobody@127.0.0.1:1/none"))
