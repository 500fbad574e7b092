"""Completions in transactions that stay open, or prepared: they keep no worker waiting."""

import re
import secrets
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from rota.model.job import ClaimedJob, JobSpec, Order, SessionId
from rota.model.settlement import Settlement
from rota.model.states import Move, State
from rota.store.operation import Statement
from rota.store.postgres import rings, sessions
from tests.docs.pages import ROOT
from tests.store.factories import error_json, until
from tests.store.postgres.database import KEEP, Database, Later, Raw, ids


def completing(job: ClaimedJob) -> Settlement:
    """What completes a job and keeps it."""
    return Settlement(job.id, job.lease, Move.COMPLETE, 0.0, KEEP)


def state(db: Database, job: ClaimedJob) -> State:
    """Where a job is."""
    [found] = db.own.run(db.store.get([job.id]))
    return found.state


def singled_out(db: Database, session: SessionId, job: ClaimedJob) -> ClaimedJob:
    """The job under a lease of its own."""
    lease = db.own.run(db.store.single_out(session, job.id, job.lease))
    assert lease is not None
    return replace(job, lease=lease)


def complete(db: Database, session: SessionId, job: ClaimedJob, raw: Raw) -> None:
    """Settle a job in a transaction of the handler's own."""
    raw.execute("INSERT INTO effect VALUES (%s)", [job.id])
    assert db.inside(raw, db.store.settle(session, [completing(job)])) == []


def effects_of(db: Database) -> list[int]:
    """What handlers have written."""
    return [row[0] for row in db.sql("SELECT job FROM effect ORDER BY job")]


@pytest.fixture(autouse=True)
def effect(db: Database) -> None:
    """A table of the handlers'."""
    db.sql("CREATE TABLE effect (job bigint)")


@pytest.fixture
def gid(db: Database) -> Iterator[str]:
    """The name of a prepared transaction; it does not stay."""
    name = f"rota {secrets.token_hex(4)}"
    yield name
    if db.one("SELECT count(*) FROM pg_prepared_xacts WHERE gid = %s", name):
        db.sql(f"ROLLBACK PREPARED '{name}'")


def prepared(db: Database, session: SessionId, job: ClaimedJob, gid: str) -> None:
    """Complete a job in a transaction that is prepared, and whose session is gone."""
    raw = db.bare()
    complete(db, session, job, raw)
    raw.execute(f"PREPARE TRANSACTION '{gid}'".encode())
    raw.close()


@pytest.mark.parametrize("how", ["COMMIT", "ROLLBACK"])
def test_jobs_of_the_same_claim(db: Database, gid: str, how: str) -> None:
    """While the transaction of one job is prepared, the others are settled; then it is decided."""
    session = db.session()
    db.enqueue(3)
    jobs = db.claim(session)
    alone = singled_out(db, session, jobs[0])
    prepared(db, session, alone, gid)
    assert db.settle(session, jobs[1:2], keep=KEEP) == []
    assert db.settle(session, jobs[2:], keep=KEEP) == []
    assert state(db, alone) is State.RUNNING
    retry = Settlement(alone.id, alone.lease, Move.RETRY, 60.0, error=error_json(1, "E", "no"))
    assert db.own.run(db.store.settle_free(session, retry)) is None
    db.sql(f"{how} PREPARED '{gid}'")
    assert db.own.run(db.store.settle_free(session, retry)) == (
        [] if how == "ROLLBACK" else [retry.job]
    )
    assert state(db, alone) is (State.COMPLETED if how == "COMMIT" else State.RETRYABLE)
    assert effects_of(db) == ([alone.id] if how == "COMMIT" else [])


def test_a_successor_of_a_prepared_transaction(db: Database, gid: str) -> None:
    """It wakes no worker, which PostgreSQL could not prepare, and is there with the commit alone."""
    session = db.session()
    db.enqueue(1)
    [job] = db.claim(session)
    following = Order(JobSpec("next", wake=True), ["{}"])
    ended = completing(job)._replace(successor=following)
    sleeper = db.bare(autocommit=True)
    sleeper.execute("SELECT pg_advisory_lock_shared(7682001, hashtext('default'))")
    raw = db.bare()
    assert db.inside(raw, db.store.settle(session, [ended]), notify=False) == []
    raw.execute(f"PREPARE TRANSACTION '{gid}'".encode())
    assert db.one("SELECT count(*) FROM rota.log WHERE task = 'next'") == 0
    db.sql(f"COMMIT PREPARED '{gid}'")
    assert db.one("SELECT count(*) FROM rota.log WHERE task = 'next'") == 1


def test_which_jobs_a_prepared_transaction_completes(db: Database, gid: str) -> None:
    """The query that docs/guides/transactions.md shows names them."""
    session = db.session()
    db.enqueue(3)
    jobs = db.claim(session)
    prepared(db, session, singled_out(db, session, jobs[1]), gid)
    page = (ROOT / "docs" / "guides" / "transactions.md").read_text(encoding="utf-8")
    [query] = re.findall(r"^SELECT prepared.gid.*?;", page, re.MULTILINE | re.DOTALL)
    assert (gid, [jobs[1].id]) in db.sql(query)


def test_without_a_lease_of_its_own(db: Database, gid: str) -> None:
    """The mutant: a job that stays with the others keeps their settlements waiting."""
    session = db.session()
    db.enqueue(2)
    jobs = db.claim(session)
    prepared(db, session, jobs[0], gid)
    other = Later(db, db.store.settle(session, [completing(jobs[1])]))
    until(lambda: db.one("SELECT pg_blocking_pids(%s) <> '{}'", other.pid) or None)
    db.sql(f"COMMIT PREPARED '{gid}'")
    assert other.result() == []


@pytest.mark.parametrize("how", ["COMMIT", "ROLLBACK"])
def test_a_rescue_beside_a_prepared_transaction(db: Database, gid: str, how: str) -> None:
    """It takes over what is free, of this session and others; what is locked, when it is decided."""
    session, elsewhere = db.session(), db.session()
    db.enqueue(2)
    jobs = db.claim(session)
    [far] = db.enqueue(1)
    assert ids(db.claim(elsewhere)) == [far]
    alone = singled_out(db, session, jobs[0])
    prepared(db, session, alone, gid)
    for silent in (session, elsewhere):
        db.silence(silent)
    found = db.own.run(db.store.rescue())
    assert sorted(job for rescue in found for job in rescue.available) == sorted([jobs[1].id, far])
    assert db.own.run(db.store.rescue()) == []
    assert state(db, alone) is State.RUNNING
    assert db.sql("SELECT id FROM rota.session") == [(session,)]
    db.sql(f"{how} PREPARED '{gid}'")
    [last] = db.own.run(db.store.rescue())
    assert list(last.available) == ([] if how == "COMMIT" else [alone.id])
    assert state(db, alone) is (State.COMPLETED if how == "COMMIT" else State.AVAILABLE)
    assert effects_of(db) == ([alone.id] if how == "COMMIT" else [])
    assert db.one("SELECT count(*) FROM rota.session") == 0
    assert db.settle(session, jobs) == ids(jobs)


def test_a_rescue_that_waits_for_locks(
    db: Database, gid: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: without SKIP LOCKED one prepared transaction stops every rescue."""
    waiting = sessions.RESCUE_TAKE.text.replace("FOR UPDATE SKIP LOCKED", "FOR UPDATE")
    assert waiting != sessions.RESCUE_TAKE.text
    monkeypatch.setattr(sessions, "RESCUE_TAKE", Statement("rescue_take", waiting))
    session = db.session()
    db.enqueue(1)
    [job] = db.claim(session)
    prepared(db, session, job, gid)
    db.silence(session)
    rescue = Later(db, db.store.rescue())
    until(lambda: db.one("SELECT pg_blocking_pids(%s) <> '{}'", rescue.pid) or None)
    db.sql(f"COMMIT PREPARED '{gid}'")
    rescue.result()


@pytest.mark.parametrize("how", ["COMMIT", "ROLLBACK"])
def test_a_session_that_ends(db: Database, gid: str, how: str) -> None:
    """A worker can stop in order: its session stays for what is prepared, until a rescue."""
    session = db.session()
    db.enqueue(2)
    jobs = db.claim(session)
    alone = singled_out(db, session, jobs[0])
    prepared(db, session, alone, gid)
    db.own.run(db.store.close_session(session))
    assert state(db, jobs[1]) is State.AVAILABLE
    assert state(db, alone) is State.RUNNING
    db.sql(f"{how} PREPARED '{gid}'")
    db.silence(session)
    db.own.run(db.store.rescue())
    assert state(db, alone) is (State.COMPLETED if how == "COMMIT" else State.AVAILABLE)
    assert db.one("SELECT count(*) FROM rota.session") == 0


def test_a_rescue_before_a_completion(db: Database) -> None:
    """A transaction whose job was taken over is refused at its end, or meets the rescue and waits."""
    session = db.session()
    db.enqueue(2)
    jobs = db.claim(session)
    alone = singled_out(db, session, jobs[0])
    db.silence(session)
    raw = db.bare()
    raw.execute("INSERT INTO effect VALUES (1)")
    db.own.run(db.store.rescue())
    assert db.inside(raw, db.store.settle(session, [completing(alone)])) == [alone.id]
    raw.rollback()
    assert effects_of(db) == []


def test_singled_out_while_a_rescue_is_under_way(db: Database) -> None:
    """It waits for the rescue and finds nothing; no lease is left without a session."""
    session = db.session()
    db.enqueue(2)
    jobs = db.claim(session)
    db.silence(session)
    third = db.bare()
    third.execute("LOCK TABLE rota.log IN SHARE MODE")
    rescue = Later(db, db.store.rescue())
    until(lambda: db.waits_for(rescue.pid, third.info.backend_pid) or None)
    single = Later(db, db.store.single_out(session, jobs[0].id, jobs[0].lease))
    until(lambda: db.waits_for(single.pid, rescue.pid) or None)
    third.rollback()
    assert list(rescue.result()[0].available) == ids(jobs)
    assert single.result() is None
    assert db.one("SELECT count(*) FROM rota.lease") == 0


def test_under_an_old_snapshot(db: Database) -> None:
    """Dead rows of leases that were singled out go when their table is emptied, as those of claims."""
    old = db.bare()
    old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    old.execute("SELECT 1")
    session = db.session()
    db.enqueue(20)
    for job in db.claim(session):
        raw = db.bare()
        complete(db, session, singled_out(db, session, job), raw)
        raw.commit()
        raw.close()
    assert len(effects_of(db)) == 20
    assert db.one("SELECT count(*) FROM rota.lease") == 0
    current = db.one("SELECT last_value % 2 FROM rota.lease_turn")
    db.sql(rings.LEASE_TURN.text)
    done = db.own.run(rings.empty_slot("lease", current))
    assert done == [f"lease: table {current} is empty again"]
    assert db.one(f"SELECT pg_relation_size('rota.lease_{current}')") == 0
