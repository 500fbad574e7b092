"""Sessions of another timeline: a standby has become the primary, and may lack the last commits.

Here the view that names the timeline is changed; a real failover is in
`tests/faults/test_failover.py`.
"""

import pytest

from rota.errors import LeaseLost
from rota.model.job import SessionId
from rota.model.states import Move
from tests.store.factories import settlement, until
from tests.store.keying import limited
from tests.store.postgres.database import Database


def fail_over(db: Database) -> None:
    """Be on the next timeline."""
    timeline = db.one("SELECT timeline FROM rota.here")
    db.sql(f"CREATE OR REPLACE VIEW rota.here AS SELECT {timeline + 1} AS timeline")


def claims(db: Database, session: SessionId, *, woken: bool = False) -> int:
    """How many jobs a claim gives."""
    return len(db.own.run(db.store.claim(session, ["default"], 10, woken=woken)))


def test_this_servers_timeline(db: Database) -> None:
    """It is the one that the control file names, too."""
    control = "SELECT timeline_id FROM pg_control_checkpoint()"
    assert db.one("SELECT timeline FROM rota.here") == db.one(control)


def test_a_session_ends_with_its_timeline(db: Database) -> None:
    """It can neither be renewed nor claim; a new one can."""
    session = db.session()
    db.enqueue(1)
    fail_over(db)
    assert not db.own.run(db.store.renew(session)).alive
    for woken in (False, True):
        with pytest.raises(LeaseLost):
            claims(db, session, woken=woken)
    new = db.session()
    assert db.own.run(db.store.renew(new)).alive
    assert claims(db, new) == 1


def test_a_claim_of_key_lanes(db: Database) -> None:
    """Nor does it get jobs with limits."""
    session = db.session()
    limited(db.store, db.own, ["a"])
    fail_over(db)
    for woken in (False, True):
        with pytest.raises(LeaseLost):
            claims(db, session, woken=woken)
    assert claims(db, db.session()) == 1


def test_no_id_is_given_twice(db: Database) -> None:
    """What a lost session holds by a lost lease is not what a new one holds."""
    lease = "SELECT last_value FROM rota.lease_id"
    before = db.one(lease), db.session()
    assert db.session() == before[1] + 1
    fail_over(db)
    session = db.session()
    assert session >= before[1] + 1000
    assert db.one(lease) >= before[0] + 2**32
    assert db.session() == session + 1
    assert db.one(lease) < before[0] + 2**33


def test_what_is_there_is_settled(db: Database) -> None:
    """A job whose claim came through the failover ends as it would have, and goes back unspent."""
    session = db.session()
    db.enqueue(2)
    one, two = db.claim(session)
    fail_over(db)
    db.session()
    assert db.own.run(db.store.settle(session, [settlement(one, Move.COMPLETE)])) == []
    db.own.run(db.store.close_session(session))
    [again] = db.claim(db.session())
    assert (again.id, again.attempt) == (two.id, 1)


def test_the_survivors_have_time(db: Database) -> None:
    """Earlier sessions are silent since the first new one opened, and not since their last sign."""
    db.enqueue(1)
    old = db.session(timeout=1.0)
    assert len(db.claim(old)) == 1
    until(lambda: True if db.one("SELECT now() - pg_postmaster_start_time() > '2 s'") else None)
    db.sql("UPDATE rota.heartbeat SET at = at - interval '1 hour'")
    fail_over(db)
    assert not db.own.run(db.store.look(["default"])).silent
    assert db.own.run(db.store.rescue()) == []
    new = db.session(timeout=600.0)
    assert not db.own.run(db.store.look(["default"])).silent
    assert db.own.run(db.store.rescue()) == []
    db.sql("UPDATE rota.session SET started_at = now() - interval '2 s' WHERE id = %s", new)
    assert db.own.run(db.store.look(["default"])).silent
    [rescue] = db.own.run(db.store.rescue())
    assert rescue.session == old


def test_sessions_of_an_older_rota(db: Database) -> None:
    """They know no timeline, and are rescued as before."""
    db.enqueue(1)
    session = db.session()
    assert len(db.claim(session)) == 1
    db.sql("UPDATE rota.session SET timeline = NULL")
    db.silence(session)
    [rescue] = db.own.run(db.store.rescue())
    assert len(rescue.available) == 1
