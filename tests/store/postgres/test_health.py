"""The facts that `rota doctor` judges, from a real server."""

import secrets
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg import sql

from rota.doctor import tables
from rota.doctor.examine import examine
from rota.doctor.finding import Finding, Severity
from rota.errors import StoreUnavailable
from rota.servers import PostgresServer
from rota.store.facts import HolderFacts, PostgresFacts
from rota.store.postgres import PostgresStore, health, probe, segments
from tests.store.factories import until
from tests.store.postgres.database import Database, Later, Raw
from tests.store.postgres.swallowing import swallowing


def facts_of(store: PostgresStore) -> PostgresFacts:
    """All facts, by a connection of their own."""
    with closing(store.connect()) as connection:
        facts = connection.run(store.health())
    assert isinstance(facts, PostgresFacts)
    return facts


def look(db: Database) -> PostgresFacts:
    """All facts of a test's database; every part was to be seen."""
    facts = facts_of(db.store)
    assert facts.unseen == {}
    return facts


def findings(db: Database, subject: str) -> list[Finding]:
    """What the doctor finds to be wrong about one subject."""
    with closing(db.store.connect()) as connection:
        found = examine(db.store, connection).findings
    return [one for one in found if one.subject == subject and one.severity > Severity.OK]


def held(db: Database, name: str) -> HolderFacts | None:
    """What is known of a holder by its name."""
    return next((one for one in look(db).holders if one.name == name), None)


@pytest.fixture
def as_nobody(db: Database) -> Iterator[str]:
    """The URL of the same database for a role without any right."""
    role = f"rota_test_{secrets.token_hex(6)}"
    db.sql(f"CREATE ROLE {role}")
    yield f"{db.url}{'&' if '?' in db.url else '?'}options=-c%20role%3D{role}"
    db.sql(f"DROP OWNED BY {role}; DROP ROLE {role}")


# Who holds the oldest snapshot --------------------------------------------------------------------


def test_a_held_snapshot(db: Database) -> None:
    """A session with a snapshot and an id: who it is, since when, how many transactions ago."""
    raw = db.bare(name="report")
    raw.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    raw.execute("SELECT pg_current_xact_id(), count(*) FROM rota.queue")
    db.enqueue(3)
    one = held(db, "report")
    assert one is not None
    assert (one.kind, one.pid, one.state) == (
        "session",
        raw.info.backend_pid,
        "idle in transaction",
    )
    assert one.writes
    assert one.age is not None
    assert one.age >= 1
    assert one.seconds is not None
    assert one.touches == ()
    raw.rollback()
    assert held(db, "report") is None


def test_a_session_without_a_snapshot(db: Database) -> None:
    """Idle in a READ COMMITTED transaction without an id, a session holds nothing back."""
    raw = db.bare(name="idle")
    raw.execute("SELECT 1")
    assert held(db, "idle") is None


def test_a_session_that_has_read_the_log(db: Database) -> None:
    """It holds no rows back, and still its locks keep the segments from being truncated."""
    raw = db.bare(name="reader")
    raw.execute("SELECT count(*) FROM rota.log")
    one = held(db, "reader")
    assert one is not None
    assert one.age is None
    assert one.touches == ("log_0", "log_1", "log_2", "log_3")


def test_a_producer_that_does_not_commit(db: Database) -> None:
    """It has locked the one segment that it wrote to."""
    raw = db.bare(name="producer")
    db.enqueue(1, conn=raw)
    one = held(db, "producer")
    assert one is not None
    assert one.touches == ("log_0",)


def test_a_prepared_transaction(db: Database) -> None:
    """It is named by its identifier, with its age and what it has locked; then it is gone."""
    gid = f"it's {secrets.token_hex(4)}"
    raw = db.bare()
    raw.tpc_begin(gid)
    raw.execute("INSERT INTO rota.queue (name) VALUES ('mail'); SELECT count(*) FROM rota.cursor")
    raw.tpc_prepare()
    raw.close()
    try:
        one = held(db, gid)
    finally:
        db.admin.tpc_rollback(gid)
    assert one is not None
    assert (one.kind, one.pid) == ("prepared", None)
    assert one.touches == ("cursor_0", "cursor_1")
    assert one.age is not None
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
    """Slots that nobody reads, and settings that hurt, are named."""
    with Database(hurt.create_database("slots")) as db:
        db.sql("SELECT pg_create_logical_replication_slot('forgotten', 'test_decoding')")
        db.sql("SELECT pg_create_physical_replication_slot('left', true)")
        facts = look(db)
        slots = {one.name: one for one in facts.holders if one.kind == "slot"}
        assert set(slots) == {"forgotten", "left"}
        assert not slots["forgotten"].active
        assert slots["forgotten"].catalog_age is not None
        assert slots["left"].age is None
        assert slots["left"].kept_log is not None
        titles = [one.title for one in findings(db, "horizon")]
        assert any("forgotten" in title for title in titles)
        hurting = {one.title for one in findings(db, "settings")}
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
    """Behind somebody's exclusive lock a part remains unseen; the others are told."""
    holder = db.bare()
    holder.execute("LOCK TABLE rota.session IN ACCESS EXCLUSIVE MODE")
    facts = facts_of(db.store)
    assert set(facts.unseen) == {"sessions", "tables"}
    assert "lock timeout" in facts.unseen["sessions"]
    assert facts.work.schema == 1
    [unseen] = findings(db, "unseen")
    assert unseen.severity is Severity.WARNING


# Rings --------------------------------------------------------------------------------------------


def ring(db: Database, name: str) -> list[Any]:
    """A ring's segments, in order."""
    return [one for one in look(db).tables if one.ring == name]


def test_rings_come_from_the_catalog(db: Database) -> None:
    """Each ring has its segments, and one of them is current; the discarded jobs are in none."""
    facts = look(db)
    sizes: dict[str, int] = {}
    for one in facts.tables:
        sizes[one.ring] = sizes.get(one.ring, 0) + 1
    assert (sizes["log"], sizes["cursor"], sizes["finished"]) == (4, 2, 6)
    assert next(one for one in facts.tables if one.name == "finished_discarded").ring == ""
    for name in sizes.keys() - {""}:
        assert [one.name for one in ring(db, name) if one.current] == [f"{name}_0"]
    db.sql("SELECT setval('rota.log_turn', 6)")
    assert [one.name for one in ring(db, "log") if one.current] == ["log_2"]


def test_a_full_ring(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that nobody has claimed, then a lock, keep it; after that it falls back."""
    monkeypatch.setattr(tables, "LARGE", {"log": 1})
    session = db.session()
    for number in range(4):
        db.sql("SELECT setval('rota.log_turn', %s)", number)
        db.enqueue(2)
    assert [one.unclaimed for one in ring(db, "log")] == [True, True, True, None]
    [backlog] = findings(db, "rings")
    assert "a backlog" in backlog.detail
    db.settle(session, db.claim_all(session))
    assert [one.unclaimed for one in ring(db, "log")] == [False, False, False, None]
    reader = db.bare(name="reader")
    reader.execute("SELECT count(*) FROM rota.log_1")
    [locked] = findings(db, "rings")
    assert f"Session {reader.info.backend_pid} has locked log_1" in locked.detail
    reader.rollback()
    db.own.run(db.store.tidy())
    assert findings(db, "rings") == []
    assert sum(one.size for one in ring(db, "log") if not one.current) == 0


def test_the_thresholds_leave_room() -> None:
    """A ring that turns in time is never called full."""
    assert tables.LARGE["log"] >= 2 * segments.LOG_SIZE
    assert tables.LARGE["cursor"] >= 2 * segments.CURSOR_SIZE
    assert tables.LARGE["finished"] >= 2 * segments.FINISHED_SIZE


def test_dead_rows(db: Database) -> None:
    """Rows that were deleted are counted, by the server's statistics."""
    db.sql("INSERT INTO rota.queue SELECT 'q' || n FROM generate_series(1, 500) AS n")
    db.sql("DELETE FROM rota.queue")
    db.admin.close()  # hands its statistics in

    def dead() -> bool | None:
        return any(one.name == "queue" and one.dead_rows >= 500 for one in look(db).tables) or None

    assert until(dead)
    assert look(db).server.dead_rows >= 500


# Work ---------------------------------------------------------------------------------------------


def test_a_dead_worker(db: Database) -> None:
    """Its silence and what it holds are told; a worker that has just spoken is alive."""
    session = db.session(timeout=5.0)
    db.enqueue(3)
    db.claim(session)
    [alive] = look(db).work.sessions
    assert alive.silent < 5
    assert (alive.worker, alive.leased, alive.queues) == ("alpha:4711", 3, ("default",))
    assert alive.oldest_lease is not None
    db.sql("UPDATE rota.heartbeat SET at = now() - interval '1 hour'")
    [dead] = findings(db, "sessions")
    assert dead.severity is Severity.CRITICAL
    assert "alpha:4711 has been silent for 1 h and still holds 3 jobs" in dead.title
    db.own.run(db.store.rescue())
    assert findings(db, "sessions") == []


def test_rescued_jobs(db: Database) -> None:
    """Jobs that lost their worker are found where they run again, and where they ended."""
    first = db.session(timeout=5.0)
    db.enqueue(2, task="shop.render", max_attempts=2)
    db.enqueue(1, task="shop.export", max_attempts=1)
    db.claim(first)
    db.sql("UPDATE rota.heartbeat SET at = now() - interval '1 hour'")
    db.own.run(db.store.rescue())
    assert {one.task: one.jobs for one in look(db).work.rescued} == {"shop.export": 1}
    again = db.claim(db.session())
    assert len(again) == 2
    assert {one.task: one.jobs for one in look(db).work.rescued} == {
        "shop.export": 1,
        "shop.render": 2,
    }


def test_the_oldest_available_job(db: Database) -> None:
    """Each lane tells how long ago its next job was enqueued, also one that committed late."""
    late = db.bare()
    db.enqueue(1, conn=late, queue="mail")
    late.execute("UPDATE rota.log SET enqueued_at = now() - interval '2 hours'")
    db.enqueue(1, queue="mail")
    db.enqueue(1, queue="video", priority=3)
    db.sql("UPDATE rota.log SET enqueued_at = now() - interval '1 hour'")
    db.own.run(db.store.pause("video"))
    session = db.session()
    assert len(db.claim(session, queues=["mail"])) == 1
    lanes = {(one.queue, one.priority): one for one in look(db).work.lanes}
    assert lanes["mail", 0].oldest is None
    assert lanes["video", 3].paused
    assert lanes["video", 3].oldest == pytest.approx(3600, abs=60)
    late.commit()
    lanes = {(one.queue, one.priority): one for one in look(db).work.lanes}
    assert lanes["mail", 0].oldest == pytest.approx(7200, abs=60)
    assert len(db.claim(session, queues=["mail"])) == 1
    assert all(one.oldest is None for one in look(db).work.lanes if one.queue == "mail")


def test_overdue_timers(db: Database) -> None:
    """What is due and not staged is told, on either side of the mark."""
    db.enqueue(1, delay=3600.0)
    assert look(db).work.overdue is None
    db.sql("UPDATE rota.timer SET run_at = now() - interval '10 minutes'")
    assert look(db).work.overdue == pytest.approx(600, abs=60)
    db.own.run(db.store.stage(10))
    assert look(db).work.overdue is None
    db.enqueue(1, delay=3600.0)
    db.sql("UPDATE rota.timer SET run_at = now() - interval '1 hour', xid = pg_current_xact_id()")
    assert look(db).work.overdue == pytest.approx(3600, abs=60)


# The connection -----------------------------------------------------------------------------------


def test_notify_arrives(db: Database) -> None:
    """Straight to the server it does; through somebody who swallows it, it does not."""
    assert db.store.hears(5.0) is True
    info = db.own.raw().info
    with swallowing(db.url, info.host, info.port) as url:
        store = PostgresStore(url)
        assert facts_of(store).unseen == {}
        assert store.hears(0.2) is False


def test_another_probe_is_no_answer(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the probe's own payload counts."""
    theirs = probe._notify
    monkeypatch.setattr(probe, "_notify", lambda _: theirs("somebody else's"))
    assert db.store.hears(0.2) is False


def test_a_known_pooler(db: Database) -> None:
    """A URL that names its pooler is not probed, and everything else is told there, too."""
    store = PostgresStore(f"{db.url}{'&' if '?' in db.url else '?'}pooler=transaction")
    assert store.hears(1.0) is None
    facts = facts_of(store)
    assert facts.unseen == {}
    assert facts.settings["idle_in_transaction_session_timeout"] == "0"


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
    db.sql("UPDATE rota.schema_version SET version = 99")
    db.sql("ALTER TABLE rota.heartbeat RENAME COLUMN at TO moment")
    facts = facts_of(db.store)
    assert facts.work.schema == 99
    assert set(facts.unseen) == {"sessions"}
    [finding] = findings(db, "schema")
    assert "version 99; this Rota knows" in finding.title


def test_older_tables(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that a migration is missing are a critical finding."""
    newest = max(db.store.migrations())
    monkeypatch.setattr(health, "migrations", lambda: {newest + 1: ""})
    [finding] = findings(db, "schema")
    assert f"version {newest}; this Rota needs {newest + 1}" in finding.title


def test_without_rights(db: Database, as_nobody: str) -> None:
    """A role without rights learns that, and what the server shows to everybody."""
    raw: Raw = db.bare(name="held")
    raw.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    raw.execute("SELECT pg_current_xact_id()")
    facts = facts_of(PostgresStore(as_nobody))
    assert set(facts.unseen) == {"schema"}
    assert "permission denied" in facts.unseen["schema"]
    assert not facts.server.sees_all
    one = next(one for one in facts.holders if one.name == "held")
    assert one.age is not None
    assert one.seconds is None
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
    assert facts.work.schema == 1
    assert {"sessions", "queues", "rescued"} <= facts.unseen.keys()
    assert "timers" not in facts.unseen


def test_no_server() -> None:
    """A server that is not there is an error, not a finding."""
    with pytest.raises(StoreUnavailable):
        facts_of(PostgresStore("postgresql://nobody@127.0.0.1:1/none"))
