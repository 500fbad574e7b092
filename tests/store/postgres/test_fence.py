"""The fence between a worker and rescues that declare it dead, in both orders of every meeting.

One side is stopped in the middle of its transaction by a lock that a third connection holds; the
other side must wait for it, and must find afterwards that there is nothing left for it to do.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rota.errors import LeaseLost, StoreUnavailable
from rota.model.job import ClaimedJob, Rescue, SessionId
from rota.model.settlement import Settlement
from rota.model.states import Move, State
from rota.store.operation import Begin, Operation, Statement, Stepped, Steps
from rota.store.postgres import claim, sessions, settle
from tests.store.factories import until
from tests.store.postgres.database import KEEP, Database, Later, Raw, holding, ids, stopped


def behind(db: Database, loser: "Later[Any]", winner: "Later[Any]") -> None:
    """Wait until an operation waits for the other one."""
    until(lambda: db.waits_for(loser.pid, winner.pid) or None)


def dying(db: Database, count: int = 1) -> tuple[SessionId, list[ClaimedJob]]:
    """A session without a sign of life, and the jobs that it holds."""
    session = db.session()
    jobs = db.enqueue(count)
    claimed = db.claim(session, count)
    assert ids(claimed) == jobs
    db.silence(session)
    return session, claimed


def completing(jobs: list[ClaimedJob]) -> list[Settlement]:
    """Settlements that complete jobs and keep them."""
    return [Settlement(job.id, job.lease, Move.COMPLETE, 0.0, KEEP) for job in jobs]


def state(db: Database, job: ClaimedJob) -> State:
    """Where a job is."""
    [found] = db.own.run(db.store.get([job.id]))
    return found.state


@pytest.mark.parametrize("whole", [True, False])
def test_a_settlement_before_a_rescue(db: Database, *, whole: bool) -> None:
    """A rescue that meets a settlement leaves its lease alone; the next takes what is left of it."""
    session, jobs = dying(db, 2)
    settled = jobs if whole else jobs[:1]
    # Not the whole table: a statement locks that before it takes the jobs out of their lease.
    [(segment,)] = db.sql("SELECT last_value % 6 FROM rota.finished_turn")
    third = holding(db, f"LOCK TABLE rota.finished_{segment} IN SHARE MODE")
    settlement = Later(db, db.store.settle(session, completing(settled)))
    stopped(db, settlement, third)
    assert db.own.run(db.store.rescue()) == []
    third.rollback()
    assert settlement.result() == []
    [found] = db.own.run(db.store.rescue())
    assert list(found.available) == ([] if whole else [jobs[1].id])
    expected = [State.COMPLETED, State.COMPLETED if whole else State.AVAILABLE]
    assert [state(db, job) for job in jobs] == expected
    assert db.one("SELECT count(*) FROM rota.session") == 0


@pytest.mark.parametrize("whole", [True, False])
def test_a_rescue_before_a_settlement(db: Database, *, whole: bool) -> None:
    """A settlement that meets a rescue waits, is refused, and writes nothing."""
    session, jobs = dying(db, 2)
    settled = jobs if whole else jobs[:1]
    third = holding(db, "LOCK TABLE rota.log IN SHARE MODE")
    rescue = Later(db, db.store.rescue())
    stopped(db, rescue, third)
    settlement = Later(db, db.store.settle(session, completing(settled)))
    behind(db, settlement, rescue)
    third.rollback()
    assert list(rescue.result()[0].available) == ids(jobs)
    assert settlement.result() == ids(settled)
    assert [state(db, job) for job in jobs] == [State.AVAILABLE] * 2
    assert db.one("SELECT count(*) FROM rota.finished") == 0
    assert [(job.id, job.attempt) for job in db.claim(db.session())] == [
        (job.id, 1) for job in jobs
    ]


def dead_with_two_leases(db: Database) -> tuple[SessionId, list[ClaimedJob], Raw]:
    """A silent session, its two jobs, and a connection that has locked the lease of the first."""
    session = db.session()
    jobs: list[ClaimedJob] = []
    for _ in range(2):
        db.enqueue(1)
        jobs += db.claim(session)
    db.silence(session)
    third = holding(db, f"SELECT FROM rota.lease WHERE id = {jobs[0].lease} FOR UPDATE")
    return session, jobs, third


def test_a_rescue_and_a_settlement_of_several_leases(db: Database) -> None:
    """A rescue waits for no lease, so the two cannot wait for each other: it takes what is free."""
    session, jobs, third = dead_with_two_leases(db)
    settlement = Later(db, db.store.settle(session, completing(jobs[::-1])))
    stopped(db, settlement, third)
    [found] = db.own.run(db.store.rescue())
    assert list(found.available) == [jobs[1].id]
    third.rollback()
    assert settlement.result() == [jobs[1].id]
    [found] = db.own.run(db.store.rescue())
    assert (found.available, found.discarded) == ((), ())
    assert state(db, jobs[0]) is State.COMPLETED


def test_a_lease_that_stays_is_not_alone(db: Database) -> None:
    """A job is not to blame for its worker's death while another one of the session is locked."""
    _, jobs, third = dead_with_two_leases(db)
    [found] = db.own.run(db.store.rescue())
    assert (found.available, found.blamed) == ((jobs[1].id,), None)
    third.rollback()


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("fenced", [True, False])
def test_a_stranger_cannot_settle(
    db: Database, monkeypatch: pytest.MonkeyPatch, *, fenced: bool, whole: bool
) -> None:
    """Another session that knows the lease is refused; without the session's condition it is not."""
    if not fenced:
        for name, condition in (
            ("SETTLE_WHOLE", " AND session = %(session)s::int8"),
            ("SETTLE_FENCE", " AND lease.session = %(session)s::int8"),
        ):
            real: Statement = getattr(settle, name)
            assert condition in real.text
            monkeypatch.setattr(settle, name, Statement(name, real.text.replace(condition, "")))
    _, jobs = dying(db, 2)
    settled = jobs if whole else jobs[:1]
    stranger = db.session()
    refused = db.own.run(db.store.settle(stranger, completing(settled)))
    assert refused == (ids(settled) if fenced else [])
    assert state(db, jobs[0]) is (State.RUNNING if fenced else State.COMPLETED)


def test_an_old_lease_of_the_same_session(db: Database) -> None:
    """The lease is the token: a session that gave a job back and has it again settles it once."""
    session = db.session()
    db.enqueue(1)
    old = db.claim(session)
    db.settle(session, old, Move.RELEASE)
    new = db.claim(session)
    assert db.settle(session, old) == ids(old)
    assert state(db, new[0]) is State.RUNNING
    assert db.settle(session, new) == []


def test_a_claim_before_a_rescue(db: Database) -> None:
    """A rescue passes over a session that is claiming just now; the next one takes the claim too."""
    session, held = dying(db)
    [waiting] = db.enqueue(1)
    third = holding(db, "SELECT FROM rota.lane FOR NO KEY UPDATE")
    claiming = Later(db, db.store.claim(session, ["default"], 10))
    stopped(db, claiming, third)
    assert db.own.run(db.store.rescue()) == []
    third.rollback()
    assert ids(claiming.result()) == [waiting]
    [found] = db.own.run(db.store.rescue())
    assert sorted(found.available) == sorted([held[0].id, waiting])


def test_a_rescue_before_a_claim(db: Database) -> None:
    """A claim that meets the rescue of its session waits, and is told that the lease is lost."""
    session, [held] = dying(db)
    [waiting] = db.enqueue(1)
    third = holding(db, "LOCK TABLE rota.log IN SHARE MODE")
    rescue = Later(db, db.store.rescue())
    stopped(db, rescue, third)
    claiming = Later(db, db.store.claim(session, ["default"], 10))
    behind(db, claiming, rescue)
    third.rollback()
    assert list(rescue.result()[0].available) == [held.id]
    with pytest.raises(LeaseLost):
        claiming.result()
    assert db.one("SELECT count(*) FROM rota.lease") == 0
    assert sorted(ids(db.claim(db.session()))) == sorted([waiting, held.id])


def test_without_the_sessions_lock_a_dead_session_claims(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: a claim that only looks whether its session is there, without locking it."""
    looking = Statement("claim_lock", claim.CLAIM_LOCK.text.replace(" FOR KEY SHARE", ""))
    assert looking.text != claim.CLAIM_LOCK.text
    monkeypatch.setattr(claim, "CLAIM_LOCK", looking)
    db.try_no_light_claims()
    session, _ = dying(db)
    db.enqueue(1)
    third = holding(db, "SELECT FROM rota.lane FOR NO KEY UPDATE")
    later = Later(db, db.store.claim(session, ["default"], 10))
    stopped(db, later, third)
    [found] = db.own.run(db.store.rescue())
    assert len(found.available) == 1
    third.rollback()
    # The foreign key catches it, with an error that is not the one that a worker understands.
    with pytest.raises(Exception, match="foreign key"):
        later.result()


def test_a_renewal_before_a_rescue(db: Database) -> None:
    """A session that is renewing just now is passed over, and is alive afterwards."""
    session, [job] = dying(db)
    renewing = db.bare()
    assert renewing.execute(sessions.SESSION_RENEW.text, {"session": session}).fetchall()
    assert db.own.run(db.store.rescue()) == []
    renewing.commit()
    assert db.own.run(db.store.rescue()) == []
    assert db.settle(session, [job]) == []


def test_a_rescue_before_a_renewal(db: Database) -> None:
    """A renewal that meets a rescue waits, and learns that it comes too late."""
    session, [job] = dying(db)
    third = holding(db, "LOCK TABLE rota.log IN SHARE MODE")
    rescue = Later(db, db.store.rescue())
    stopped(db, rescue, third)
    renewal = Later(db, db.store.renew(session))
    behind(db, renewal, rescue)
    third.rollback()
    assert list(rescue.result()[0].available) == [job.id]
    assert not renewal.result().alive
    assert db.one("SELECT count(*) FROM rota.heartbeat WHERE session = %s", session) == 0


def test_a_renewal_between_a_rescuers_two_looks(db: Database) -> None:
    """A session that has renewed since it was found silent keeps its jobs."""
    session, [job] = dying(db)
    assert db.own.run(db.store.renew(session)).alive
    taking: Operation[list[Rescue]] = Stepped(
        "take_over", sessions.take_over([session], {}), Begin.DURABLE
    )
    assert db.own.run(taking) == []
    assert db.settle(session, [job]) == []


def test_two_rescuers(db: Database) -> None:
    """The second one does not wait for the first, and takes nothing."""
    session, [job] = dying(db)
    third = holding(db, "LOCK TABLE rota.log IN SHARE MODE")
    rescue = Later(db, db.store.rescue())
    stopped(db, rescue, third)
    assert db.own.run(db.store.rescue()) == []
    third.rollback()
    [found] = rescue.result()
    assert (found.session, list(found.available)) == (session, [job.id])
    assert db.own.run(db.store.rescue()) == []
    assert len(db.claim(db.session())) == 1


def test_a_claim_before_the_sessions_end(db: Database) -> None:
    """A session that is closed while it claims gives back what the claim got."""
    session = db.session()
    [job] = db.enqueue(1)
    third = holding(db, "SELECT FROM rota.lane FOR NO KEY UPDATE")
    claiming = Later(db, db.store.claim(session, ["default"], 10))
    stopped(db, claiming, third)
    end = Later(db, db.store.close_session(session))
    behind(db, end, claiming)
    third.rollback()
    claimed = claiming.result()
    assert ids(claimed) == [job]
    end.result()
    assert state(db, claimed[0]) is State.AVAILABLE
    assert db.settle(session, claimed) == [job]


def test_a_worker_that_is_frozen_in_the_middle_of_a_claim(db: Database) -> None:
    """The server ends its transaction: others claim from the lane, and its session is rescued."""
    session, [held] = dying(db)
    [waiting] = db.enqueue(1)
    lane = db.one("SELECT id FROM rota.lane")
    frozen = db.connect()
    locked, thaw = threading.Event(), threading.Event()

    def freeze() -> Steps[bool]:
        yield claim.CLAIM_LOCK(lane=lane, session=session)
        locked.set()
        assert thaw.wait(60)
        return bool((yield claim.CLAIM(lane=lane, session=session, size=10)))

    def half_a_claim() -> None:
        with pytest.raises(StoreUnavailable):
            frozen.run(Stepped("claim", freeze(), Begin.HASTY))

    with ThreadPoolExecutor(1) as pool:
        half = pool.submit(half_a_claim)
        try:
            assert locked.wait(20)
            assert db.own.run(db.store.rescue()) == []
            assert ids(db.claim(db.session())) == [waiting]
            [found] = db.own.run(db.store.rescue())
            assert list(found.available) == [held.id]
        finally:
            thaw.set()
        half.result()


def test_the_dead_do_nothing(db: Database) -> None:
    """After its rescue a session renews, claims and settles nothing, and nothing stays of it."""
    session, jobs = dying(db, 3)
    db.own.run(db.store.rescue())
    assert not db.own.run(db.store.renew(session)).alive
    with pytest.raises(LeaseLost):
        db.claim(session)
    assert db.settle(session, jobs) == ids(jobs)
    db.own.run(db.store.close_session(session))
    for table in ("session", "heartbeat", "lease"):
        assert db.one(f"SELECT count(*) FROM rota.{table}") == 0
    assert db.one("SELECT count(*) FROM rota.log WHERE entry = 1") == 3
