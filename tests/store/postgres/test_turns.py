"""Claims of one lane take turns, and each sees what the one before it took."""

import pytest

from rota.model.job import JobId
from rota.model.states import State
from rota.store.operation import Statement
from rota.store.postgres import claim
from tests.store.factories import until
from tests.store.postgres.database import Database, Later, Raw, ids

ISOLATIONS = ["read committed", "repeatable read", "serializable"]


def claiming(db: Database, lane: int, size: int) -> tuple[Raw, list[int]]:
    """A claim that has taken its jobs and not ended yet."""
    raw = db.bare()
    session = db.session()
    raw.execute(claim.CLAIM_LOCK.text, {"lane": lane, "session": session})
    rows = raw.execute(
        claim.CLAIM.text, {"lane": lane, "session": session, "size": size}
    ).fetchall()
    return raw, [job for job, *_ in rows]


def only_lane(db: Database) -> int:
    """The lane, where there is one."""
    return int(db.one("SELECT id FROM rota.lane"))


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_claim_that_waited(db: Database, isolation: str) -> None:
    """It takes what the one before it left, whatever the database's default isolation is."""
    name = db.one("SELECT current_database()")
    db.sql(f"ALTER DATABASE {name} SET default_transaction_isolation = '{isolation}'")
    jobs = db.enqueue(5)
    first, taken = claiming(db, only_lane(db), 2)
    second = Later(db, db.store.claim(db.session(), ["default"], 10))
    until(lambda: db.waits_for(second.pid, first.info.backend_pid) or None)
    first.commit()
    assert taken == jobs[:2]
    assert ids(second.result()) == jobs[2:]


def two_lanes(db: Database) -> tuple[list[JobId], list[JobId]]:
    """Jobs of two priorities; the lower number comes first."""
    return db.enqueue(2), db.enqueue(2, priority=5)


def test_a_further_lane_is_not_waited_for(db: Database) -> None:
    """Its jobs are left to the claim that has it."""
    first, second = two_lanes(db)
    third = db.bare()
    third.execute("SELECT FROM rota.lane WHERE priority = 5 FOR NO KEY UPDATE")
    session = db.session()
    assert ids(db.claim(session)) == first
    third.rollback()
    assert ids(db.claim(session)) == second


def test_the_mark_of_a_lock_that_was_not_had(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: beside the lock the mark is made for rows, too, that the lock skips."""
    text = claim.CLAIM_TRY_LOCK.text
    head, _, _ = text.partition(", locked AS")
    _, _, rest = text.partition("FROM session")
    tables, _, _ = rest.partition(")\nSELECT")
    mark = "SELECT lane.queue, lane.priority, set_config('rota.locked_lane', lane.id::text, true)"
    flat = f"{head} {mark} FROM session{tables}"
    monkeypatch.setattr(claim, "CLAIM_TRY_LOCK", Statement("claim_try_lock", flat))
    two_lanes(db)
    third = db.bare()
    third.execute("SELECT FROM rota.lane WHERE priority = 5 FOR NO KEY UPDATE")
    db.claim(db.session())
    assert db.one("SELECT count(*) FROM rota.lease") == 2


def test_nothing_is_claimed_without_the_lock(db: Database) -> None:
    """The second half of a claim does nothing by itself."""
    [job] = db.enqueue(1)
    lane, session = only_lane(db), db.session()
    with db.bare() as raw:
        rows = raw.execute(claim.CLAIM.text, {"lane": lane, "session": session, "size": 9})
        assert rows.fetchall() == []
    assert ids(db.claim(session)) == [job]


def test_a_look_at_the_session_writes_nothing(db: Database) -> None:
    """A claim looks for each lane that it does not get; with a lock each look would be flushed."""
    session = db.session()
    with db.bare() as raw:
        assert raw.execute(claim.SESSION_ALIVE.text, {"session": session}).fetchall()
        [(xid,)] = raw.execute("SELECT pg_current_xact_id_if_assigned()").fetchall()
    assert xid is None


def test_a_pause_between_two_claims(db: Database) -> None:
    """It holds for the very next claim, also for one that goes to its lanes without a look."""
    jobs = db.enqueue(2)
    session, other = db.session(), db.connect()
    assert ids(db.claim(session, 1)) == jobs[:1]
    other.run(db.store.pause("default"))
    assert db.own.run(db.store.claim(session, ["default"], 1, woken=True)) == []
    other.run(db.store.resume("default"))
    assert ids(db.claim(session)) == jobs[1:]


def test_a_job_that_is_cancelled_while_it_is_claimed(db: Database) -> None:
    """The one who cancels waits for the claim, and asks its worker to stop."""
    [job] = db.enqueue(1)
    first, taken = claiming(db, only_lane(db), 1)
    cancelling = Later(db, db.store.cancel([job]))
    pid = first.info.backend_pid
    until(lambda: cancelling.ended or db.waits_for(cancelling.pid, pid) or None)
    first.commit()
    assert taken == [job]
    assert cancelling.result() == {job: State.RUNNING}
