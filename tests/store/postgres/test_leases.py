"""The leases' ring: dead ones go even under a held horizon, and those that are held stay."""

from collections.abc import Callable

import psycopg
import pytest

from rota.model.job import ClaimedJob, JobId, SessionId
from rota.model.settlement import Settlement
from rota.model.states import Move
from rota.store.operation import Begin, Operation, Statement
from rota.store.postgres import rings, settle
from tests.store.factories import until
from tests.store.postgres.database import KEEP, Database, Later, Raw, begin, explained, ids


@pytest.fixture(autouse=True)
def small_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every round of housekeeping turns the leases."""
    monkeypatch.setattr(rings, "LEASE_SIZE", 0)


def turned(db: Database) -> int:
    """The slot that new leases do not go to, after a turn."""
    db.own.run(rings.turn_slots())
    return 1 - int(db.one("SELECT last_value % 2 FROM rota.lease_turn"))


def completing(jobs: list[ClaimedJob]) -> list[Settlement]:
    return [Settlement(job.id, job.lease, Move.COMPLETE, 0.0, KEEP) for job in jobs]


def pages(db: Database) -> int:
    """Bytes of both tables."""
    return int(db.one("SELECT pg_relation_size('rota.lease_0') + pg_relation_size('rota.lease_1')"))


def test_dead_leases_go_under_a_held_horizon(db: Database) -> None:
    """Vacuum could not remove one of them; after the load not a page is left."""
    held = db.bare()
    held.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    held.execute("SELECT pg_current_xact_id(), count(*) FROM rota.queue")
    session = db.session()
    for _ in range(300):
        db.enqueue()
        db.settle(session, db.claim(session), keep=KEEP)
    assert pages(db) > 0
    for _ in range(3):
        db.own.run(db.store.tidy())
    assert pages(db) == 0
    held.rollback()


@pytest.mark.parametrize("indexed", [False, True])
def test_settling_walks_no_dead_leases(db: Database, *, indexed: bool) -> None:
    """A lease is found by its id; by an index of sessions, every dead one would be looked at."""
    if indexed:
        # Versions differ in which of two indexes they take.
        db.sql("DROP INDEX rota.lease_order")
        db.sql("CREATE INDEX by_session ON rota.lease (session)")
    held = db.bare()
    held.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    held.execute("SELECT pg_current_xact_id(), count(*) FROM rota.queue")
    session = db.session()
    # Of a hundred jobs each, so that they fill many pages.
    for _ in range(300):
        db.enqueue(100)
        db.settle(session, db.claim(session))
    db.enqueue()
    [job] = db.claim(session)
    raw = db.bare(autocommit=True)
    begin(raw, Begin.DURABLE)
    jobs = f"{{{job.id}}}"
    plan = explained(raw, settle.SETTLE_WHOLE(lease=job.lease, session=session, jobs=jobs))
    raw.execute("ROLLBACK")
    held.rollback()
    looked_at = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    assert (looked_at <= 20) is not indexed, looked_at


@pytest.mark.parametrize("copied", [True, False])
def test_held_leases_are_copied_forward(
    db: Database, monkeypatch: pytest.MonkeyPatch, *, copied: bool
) -> None:
    """A job of hours keeps its lease through any number of turns; without the copy it is lost."""
    if not copied:
        nothing = Statement("lease_copy_forward", "SELECT 1")
        monkeypatch.setattr(rings, "LEASE_COPY_FORWARD", nothing)
    session = db.session()
    jobs = db.enqueue(3)
    claimed = db.claim(session)
    for _ in range(4):
        db.own.run(db.store.tidy())
    first = db.own.run(db.store.settle(session, completing(claimed[:1])))
    rest = db.own.run(db.store.settle(session, completing(claimed[1:])))
    assert [*first, *rest] == ([] if copied else jobs)


def settling(db: Database, session: SessionId, jobs: list[ClaimedJob]) -> Operation[list[JobId]]:
    return db.store.settle(session, completing(jobs))


def partly(db: Database, session: SessionId, jobs: list[ClaimedJob]) -> Operation[list[JobId]]:
    return db.store.settle(session, completing(jobs[:1]))


def releasing(db: Database, session: SessionId, jobs: list[ClaimedJob]) -> Operation[list[JobId]]:
    del jobs
    return db.store.release(session, [])


@pytest.mark.parametrize(
    ("what", "answer"),
    [(settling, 0), (partly, 0), (releasing, 2)],
    ids=["settling", "partly", "releasing"],
)
def test_who_waits_for_the_truncation_finds_the_lease(
    db: Database,
    what: Callable[[Database, SessionId, list[ClaimedJob]], Operation[list[JobId]]],
    answer: int,
) -> None:
    """A statement that waited for the table reads with a snapshot from after the wait."""
    session = db.session()
    db.enqueue(2)
    claimed = db.claim(session)
    slot = turned(db)
    housekeeper: Raw = db.bare()
    housekeeper.execute(rings.LEASE_LOCK[slot].text)
    waiting = Later(db, what(db, session, claimed))
    until(lambda: db.waits_for(waiting.pid, housekeeper.info.backend_pid) or None)
    housekeeper.execute(rings.LEASE_COPY_FORWARD.text)
    housekeeper.execute(rings.LEASE_TRUNCATE[slot].text)
    housekeeper.commit()
    assert len(waiting.result()) == answer


def test_a_rescue_that_waits_for_the_truncation(db: Database) -> None:
    """The jobs of a dead worker come back although its leases moved meanwhile."""
    session = db.session()
    jobs = db.enqueue(2)
    db.claim(session)
    db.silence(session)
    slot = turned(db)
    housekeeper = db.bare()
    housekeeper.execute(rings.LEASE_LOCK[slot].text)
    waiting = Later(db, db.store.rescue())
    until(lambda: db.waits_for(waiting.pid, housekeeper.info.backend_pid) or None)
    # As the housekeeper does it: the row of the session, which its copy refers to, may be locked.
    housekeeper.execute("SET LOCAL lock_timeout = '50ms'")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        housekeeper.execute(rings.LEASE_COPY_FORWARD.text)
    housekeeper.rollback()
    [rescue] = waiting.result()
    assert list(rescue.available) == jobs


def test_a_claim_that_is_a_turn_behind(db: Database) -> None:
    """A lease in the table that was just left is found, settled and copied like any other."""
    session = db.session()
    db.enqueue(2)
    one = db.claim(session, 1)
    turned(db)
    two = db.claim(session, 1)
    assert {*ids(one), *ids(two)} == {
        job for (job,) in db.sql("SELECT unnest(jobs) FROM rota.lease")
    }
    db.own.run(db.store.tidy())
    assert not db.own.run(db.store.settle(session, completing([*one, *two])))
