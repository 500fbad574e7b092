"""A dump that was restored: into another cluster, or into a clone, whose transaction ids are behind."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from rota.doctor.examine import examine
from rota.errors import LeaseLost
from rota.measure.servers import PostgresServer
from rota.model.job import JobId, SessionId, SessionInfo
from rota.model.states import State
from rota.store.health import PostgresFacts
from rota.store.postgres import health
from rota.store.postgres.origin import ORIGIN_SEQUENCES
from rota.store.postgres.store import PostgresStore
from tests.cli.by_hand import psql
from tests.store.factories import until
from tests.store.postgres.database import KEEP, Database, Later, dumped, holding, ids, stopped

CLUSTERS = pytest.mark.parametrize("clone", [False, True])
"""Whether the dump was restored into a clone of its cluster, which has the same name."""


def restore(db: Database, *, clone: bool = False, ahead: int = 1_000_000) -> None:
    """Make the tables look as if a dump from another cluster, older by `ahead`, was restored."""
    db.sql("BEGIN")
    moved = f"(({{}})::text::int8 + {ahead})::text::xid8"
    for table in ("log", "timer", "cursor", "tally", "memory"):
        db.sql(f"UPDATE rota.{table} SET xid = {moved.format('xid')}")
    db.sql(
        "UPDATE rota.cursor SET hole_xids = ARRAY(SELECT "
        + moved.format("hole")
        + " FROM unnest(hole_xids) WITH ORDINALITY AS hole (hole, n) ORDER BY n)"
    )
    for table in ("timer_mark", "tally_mark", "signal_mark"):
        db.sql(
            "UPDATE rota.{1} SET snapshot = ({0} || ':' || {0} || ':')::pg_snapshot".format(
                f"(pg_snapshot_xmax(snapshot)::text::int8 + {ahead})::text", table
            )
        )
    if not clone:
        db.sql("UPDATE rota.origin SET system_identifier = 1")
    db.sql("COMMIT")


def own_name(db: Database) -> int:
    """The name of the cluster itself."""
    return int(db.one("SELECT system_identifier FROM pg_control_system()"))


@CLUSTERS
def test_a_restored_database(db: Database, *, clone: bool) -> None:
    """Available, running, delayed and finished jobs are all there again, and each just once."""
    session = db.session()
    done, kept = db.enqueue(2)
    db.settle(session, db.claim(session, 1))
    db.settle(session, db.claim(session, 1), keep=KEEP)
    late = db.bare()
    cut = db.enqueue(3, conn=late)
    passed = db.enqueue(1)
    running = db.claim(session)
    late.commit()
    running += db.claim(session, 1)
    urgent = db.enqueue(1, priority=-1)
    available = db.enqueue(2, headers='{"trace":"a"}')
    due = db.enqueue(2, delay=0.0)
    scheduled = db.enqueue(2, delay=600.0)
    restore(db, clone=clone)
    successor = db.session()
    db.own.run(db.store.stage(100))
    claimed = db.claim_all(successor, 2)
    assert sorted(ids(claimed)) == sorted([*cut, *passed, *urgent, *available, *due])
    assert {job.attempt for job in claimed} == {1}
    assert [job.id for job in claimed if job.headers == '{"trace":"a"}'] == available
    assert db.settle(session, running) == ids(running)
    assert [job.id for job in db.own.run(db.store.get([done, kept]))] == [kept]
    assert [job.state for job in db.own.run(db.store.get(scheduled))] == [State.SCHEDULED] * 2
    db.settle(successor, claimed)
    again = db.enqueue(3)
    assert ids(db.claim_all(db.session(), 2)) == again


@CLUSTERS
def test_jobs_enqueued_before_the_first_worker(db: Database, *, clone: bool) -> None:
    """What is enqueued after the restore and before any worker came is not lost."""
    session = db.session()
    db.enqueue(2)
    db.settle(session, db.claim(session, 1))
    [old] = [row[0] for row in db.sql("SELECT max(id) FROM rota.log")]
    restore(db, clone=clone)
    new = db.enqueue(2)
    nested = db.bare()
    nested.execute("SAVEPOINT one")
    new += db.enqueue(1, conn=nested)
    nested.execute("RELEASE SAVEPOINT one")
    nested.commit()
    assert sorted(ids(db.claim_all(db.session()))) == [old, *new]


def test_a_worker_that_was_moved_claims_nothing(db: Database) -> None:
    """It has not noticed yet that its tables are in another cluster: its claim would bury new jobs."""
    session = db.session()
    old = db.enqueue(4)
    db.settle(session, db.claim(session, 1))
    restore(db)
    new = db.enqueue(2)
    with pytest.raises(LeaseLost):
        db.claim(session, 1)
    assert sorted(ids(db.claim_all(db.session()))) == sorted([*old[1:], *new])


@CLUSTERS
@pytest.mark.parametrize("ring", ["log", "cursor"])
def test_a_worker_that_was_moved_tidies_nothing(db: Database, ring: str, *, clone: bool) -> None:
    """Nor does it turn rings or copy leased rows.

    They would count as restored, and so would new jobs before them.
    """
    session = db.session()
    _, running = db.enqueue(2)
    db.settle(session, db.claim(session, 1))
    db.claim(session, 1)
    db.sql(f"SELECT setval('rota.{ring}_turn', 1)")
    restore(db, clone=clone)
    new = db.enqueue(2)
    db.own.run(db.store.tidy())
    assert sorted(ids(db.claim_all(db.session()))) == [running, *new]


def test_jobs_committed_while_the_logs_are_anchored(db: Database) -> None:
    """A producer that commits while the first worker is at it, or after, loses nothing."""
    [old] = db.enqueue(1)
    restore(db)
    during, after = db.bare(), db.bare()
    one = db.enqueue(1, conn=during)
    other = db.enqueue(1, conn=after)
    # Stops a deletion of rows that have been read already, and no producer.
    third = holding(db, "LOCK TABLE rota.log_3 IN SHARE MODE")
    opening = Later(db, db.store.open_session(_info()))
    stopped(db, opening, third)
    during.commit()
    third.rollback()
    session = opening.result()
    claimed = ids(db.claim_all(session))
    after.commit()
    claimed += ids(db.claim_all(session))
    assert sorted(claimed) == [old, *one, *other]


def test_two_workers_after_a_restore(db: Database) -> None:
    """The logs are anchored once, by the first worker, and no job is there twice."""
    jobs = db.enqueue(5)
    restore(db)
    third = holding(db, "SELECT FROM rota.lane FOR NO KEY UPDATE")
    openings = [Later(db, db.store.open_session(_info())) for _ in range(3)]
    blocked = "SELECT count(*) FROM unnest(%s::int[]) AS pid WHERE pg_blocking_pids(pid) <> '{}'"
    pids = [opening.pid for opening in openings]
    until(lambda: True if db.one(blocked, pids) == len(pids) else None)
    third.rollback()
    alive = [opening.result() for opening in openings]
    assert db.one("SELECT count(*) FROM rota.session") == 3
    assert ids(db.claim_all(alive[0], 2)) == jobs
    assert db.claim(alive[1]) == []


@CLUSTERS
def test_a_worker_that_outlived_the_restore(db: Database, *, clone: bool) -> None:
    """A session of the old cluster cannot be renewed: its worker opens a new one."""
    session = db.session()
    jobs = db.enqueue(2)
    db.claim(session, 1)
    restore(db, clone=clone)
    assert not db.own.run(db.store.renew(session)).alive
    assert sorted(ids(db.claim_all(db.session()))) == jobs


def test_sequences_that_did_not_come(db: Database) -> None:
    """Logical replication brings none: no number is given twice."""
    session = db.session()
    jobs = db.enqueue(5)
    leases = [job.lease for job in db.claim(session)]
    restore(db)
    for name in ("job_id", "lease_id", "session_id_seq", "lane_id_seq"):
        db.sql(f"SELECT setval('rota.{name}', 1, false)")
    successor = db.session()
    assert successor > session
    assert db.enqueue(1)[0] > max(jobs)
    assert min(job.lease for job in db.claim_all(successor)) > max(leases)
    [lane] = db.enqueue(1, priority=7)
    assert lane in ids(db.claim_all(successor))


def test_sequences_that_came(db: Database) -> None:
    """They are left alone, beside producers that take numbers from them."""
    session = db.session()
    db.enqueue(2, delay=600.0)
    db.enqueue(5)
    db.claim(session)
    restore(db)
    assert db.sql(ORIGIN_SEQUENCES.text) == []
    db.sql("SELECT setval('rota.job_id', 3)")
    assert db.sql(ORIGIN_SEQUENCES.text) == [(7,)]


def test_timers_after_a_restore_are_not_walked_again_and_again(db: Database) -> None:
    """Timers with transaction ids of the future do not make every staging look at all of them."""
    db.enqueue(20, delay=600.0)
    restore(db)
    db.session()
    db.own.run(db.store.stage(10))
    marks = db.one("SELECT count(*) FROM rota.timer_mark")
    for _ in range(3):
        db.own.run(db.store.stage(10))
    assert db.one("SELECT count(*) FROM rota.timer_mark") == marks


def test_a_cluster_that_was_upgraded(db: Database) -> None:
    """After pg_upgrade the rows have another system's name and sound ids: no job runs again."""
    session = db.session()
    jobs = db.enqueue(4)
    db.settle(session, db.claim(session, 2))
    db.claim(session, 1)
    db.sql("UPDATE rota.origin SET system_identifier = 1")
    assert sorted(ids(db.claim_all(db.session()))) == jobs[2:]


AHEAD = "(pg_snapshot_xmax(pg_current_snapshot())::text::int8 + 1000000)::text"
TRACES = {
    "cursor": f"UPDATE rota.cursor SET xid = {AHEAD}::xid8",
    "timer": f"UPDATE rota.timer SET xid = {AHEAD}::xid8",
    "timer_mark": f"UPDATE rota.timer_mark SET snapshot = ({AHEAD} || ':' || {AHEAD} || ':')::pg_snapshot",
    "tally_mark": f"UPDATE rota.tally_mark SET snapshot = ({AHEAD} || ':' || {AHEAD} || ':')::pg_snapshot",
    "tally": f"UPDATE rota.tally SET xid = {AHEAD}::xid8",
    "log": f"UPDATE rota.log SET xid = {AHEAD}::xid8",
}
"""Ids that are still to come, one table at a time."""

SEEN_BY_A_SIGN_OF_LIFE = {"cursor", "timer_mark", "tally_mark"}


@pytest.mark.parametrize("trace", TRACES)
def test_every_trace_of_a_restore_counts(db: Database, trace: str) -> None:
    """Whatever shows it: the doctor says so, the first worker puts it right, and it stays so."""
    session = db.session()
    db.enqueue(1)
    assert db.settle(session, db.claim(session)) == []
    db.own.run(db.store.squeeze())
    [old] = db.enqueue(1)
    [delayed] = db.enqueue(1, delay=0.0)
    assert not foreign(db)
    assert db.own.run(db.store.renew(session)).alive
    db.sql(TRACES[trace])
    assert foreign(db)
    assert db.own.run(db.store.renew(session)).alive is (trace not in SEEN_BY_A_SIGN_OF_LIFE)
    [new] = db.enqueue(1)
    successor = db.session()
    assert not foreign(db)
    assert db.own.run(db.store.renew(successor)).alive
    db.own.run(db.store.stage(10))
    # A dump's cursors lie before what waits; here they were moved beyond it.
    waiting = {delayed, new} if trace == "cursor" else {old, delayed, new}
    assert waiting <= set(ids(db.claim_all(successor)))


def foreign(db: Database) -> bool:
    """Whether the doctor sees a restored dump."""
    facts = db.own.run(health.health(pooled=False))
    assert facts.unseen == {}
    assert isinstance(facts, PostgresFacts)
    return facts.foreign


# Dumps, and servers of their own ------------------------------------------------------------------


def burn(url: str, count: int) -> None:
    """Use transaction ids up, as a production does all day."""
    with closing(psycopg.connect(url, autocommit=True)) as raw:
        raw.execute(
            "DO $$ BEGIN FOR number IN 1.."
            f"{count} LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$"
        )


@contextmanager
def cloned(server: PostgresServer, folder: Path) -> Iterator[None]:
    """Copy the server's files, and put the copy in their place at the end."""
    clone = folder.with_name(f"{folder.name}-clone")
    with server.down():
        subprocess.run(["cp", "-a", folder, clone], check=True)  # noqa: S607 - owners stay
    yield
    with server.down():
        shutil.rmtree(folder)
        clone.rename(folder)


def test_a_newer_dump_in_a_clone(postgres_server: PostgresServer) -> None:
    """A clone made from files gets a later dump of production, whose ids are still to come there."""
    url = postgres_server.create_database("production")
    with Database(url) as db:
        name = own_name(db)
        folder = Path(db.one("SHOW data_directory"))
    with cloned(postgres_server, folder):
        with Database(url) as db:
            burn(url, 20_000)
            session = db.session()
            done, held, waiting = (db.enqueue(1)[0] for _ in range(3))
            assert db.settle(session, db.claim(session, 1)) == []
            assert ids(db.claim(session, 1)) == [held]
            [delayed] = db.enqueue(1, delay=0.0)
            db.own.run(db.store.squeeze())
        text = dumped(url)
    url = postgres_server.create_database("staging")
    psql(url, text, "-v", "ON_ERROR_STOP=1")
    with Database(url) as db:
        assert own_name(db) == name
        assert foreign(db)
        new = db.enqueue(2)
        [later] = db.enqueue(1, delay=0.0)
        session = db.session()
        db.own.run(db.store.stage(10))
        assert sorted(ids(db.claim_all(session))) == sorted([held, waiting, delayed, *new, later])
        assert done not in ids(db.claim_all(session))
        again = db.enqueue(1)
        assert ids(db.claim_all(session)) == again


WAYS = ["whole", "data", "replicated"]
"""A dump; one of the data alone, after `rota migrate`; logical replication."""


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """The URL of an empty database in another cluster, which no other test uses."""
    with PostgresServer.start() as server:
        yield server.create_database("copy")


@pytest.mark.large
@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("postgres_server", [{"wal_level": "logical"}], indirect=True)
def test_completed_jobs_do_not_run_again(
    postgres_server: PostgresServer, elsewhere: str, way: str, *, ahead: bool
) -> None:
    """However rows came into another cluster, whose ids are ahead or behind: what is done is done."""
    url = postgres_server.create_database("shop")
    with Database(url) as old:
        later, earlier = (elsewhere, url) if ahead else (url, elsewhere)
        burn(later, next_id(earlier) + 20_000)
        session = old.session()
        settled(old, session)
        if way == "replicated":
            left = replicated(old, session, elsewhere)
        else:
            left = settled(old, session)
            if way == "data":
                Database(elsewhere).__exit__()
            # Of a partition pg_dump does not know that its foreign key wants the sessions first.
            options = ["--data-only", "--disable-triggers"] if way == "data" else []
            psql(elsewhere, dumped(url, *options))
    with Database(elsewhere) as db:
        assert (next_id(elsewhere) > next_id(url)) == ahead
        new = []
        if way != "replicated":  # which leaves the sequences behind: a worker has to come first
            new = db.enqueue(2)
            nested = db.bare()
            nested.execute("SAVEPOINT one")
            new += db.enqueue(1, conn=nested)
            nested.execute("RELEASE SAVEPOINT one")
            nested.commit()
        first = db.session()
        assert sorted(ids(db.claim_all(first))) == sorted([*left, *new])
        assert max(left) < min(db.enqueue(2))
        assert len(db.claim_all(first)) == 2


def settled(db: Database, session: SessionId) -> list[JobId]:
    """Jobs of which most are done, as a batch and one by one; those that run, and those that wait."""
    done = [*db.enqueue(20), *(db.enqueue(1)[0] for _ in range(20))]
    claimed = [job for job in db.claim_all(session) if job.id in done]
    assert db.settle(session, claimed[:30]) == []
    assert db.settle(session, claimed[30:], keep=KEEP) == []
    held = db.enqueue(2)
    claimed = db.claim(session)
    assert ids(claimed) == held
    db.own.run(db.store.squeeze())
    return [*sorted(held_jobs(db)), *db.enqueue(1)]


def held_jobs(db: Database) -> list[JobId]:
    """The jobs in leases."""
    return [JobId(job) for (job,) in db.sql("SELECT unnest(jobs) FROM rota.lease")]


def next_id(url: str) -> int:
    """How far the transaction ids of a server have come."""
    with closing(psycopg.connect(url)) as raw:
        row = raw.execute("SELECT pg_current_xact_id()::text::int8").fetchone()
        assert row is not None
        return int(row[0])


def replicated(old: Database, session: SessionId, url: str) -> list[JobId]:
    """Bring all rows into another cluster by logical replication, those that come meanwhile, too."""
    psql(url, dumped(old.url, "--schema-only"), "-v", "ON_ERROR_STOP=1")
    old.sql("CREATE PUBLICATION everything FOR ALL TABLES")
    seen = (
        "SELECT (SELECT count(*) FROM rota.log), (SELECT max(seq) FROM rota.cursor),"
        " (SELECT max(seq) FROM rota.tally_mark)"
    )
    with closing(psycopg.connect(url, autocommit=True)) as new:
        new.execute(
            sql.SQL("CREATE SUBSCRIPTION copy CONNECTION {} PUBLICATION everything").format(
                sql.Literal(old.url)
            )
        )
        missing = "SELECT count(*) FROM pg_subscription_rel WHERE srsubstate <> 'r'"
        until(lambda: new.execute(missing).fetchone() == (0,) or None)
        left = settled(old, session)
        [there] = old.sql(seen)
        until(lambda: new.execute(seen).fetchone() == there or None)
        with closing(PostgresStore(url)) as store, closing(store.connect()) as connection:
            [found] = [f for f in examine(store, connection).findings if f.subject == "replication"]
        new.execute(found.advice)
    return left


def _info() -> SessionInfo:
    return SessionInfo(host="beta", pid=1, queues=("default",), timeout=600.0)
