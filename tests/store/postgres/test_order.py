"""Log order: the transactions of a lane by their first write, and late committers in their turn."""

from typing import Any

import psycopg
import pytest

from rota.model.states import Move
from tests.store.postgres.database import Database, Raw, ids

AMONG_HOLES = (
    "SELECT count(*) FROM (SELECT DISTINCT ON (lane) hole_xids FROM rota.cursor"
    " ORDER BY lane, seq DESC) AS newest, unnest(hole_xids) AS hole"
    " WHERE hole::text = ANY (%s)"
)


@pytest.fixture(params=["light", "any"], autouse=True)
def work(db: Database, request: pytest.FixtureRequest) -> None:
    """Claims by the statement for light work where that will do, and all by the one for any work."""
    if request.param == "any":
        db.try_no_light_claims()


def own_xid(raw: Raw) -> str:
    """The id of the transaction that a connection is in."""
    [(xid,)] = raw.execute("SELECT pg_current_xact_id()::text").fetchall()
    return str(xid)


def begun(db: Database) -> Raw:
    """A caller's transaction that has its place in the order already."""
    raw = db.bare()
    raw.execute("SELECT pg_current_xact_id()")
    return raw


def test_inside_one_transaction_as_enqueued(db: Database) -> None:
    """One, many, and a COPY of jobs in one transaction come out as they went in."""
    caller = db.bare()
    jobs = [
        *db.enqueue(1, conn=caller),
        *db.enqueue(3, conn=caller),
        *db.enqueue(300, conn=caller),
        *db.enqueue(1, conn=caller),
    ]
    caller.commit()
    session = db.session()
    assert ids(db.claim_all(session, 7)) == jobs


def test_transactions_by_their_first_write(db: Database) -> None:
    """A transaction that began to write first comes first, though it enqueued and committed last."""
    first, second = begun(db), begun(db)
    later = db.enqueue(2, conn=second)
    earlier = db.enqueue(2, conn=first)
    second.commit()
    first.commit()
    assert ids(db.claim(db.session())) == [*earlier, *later]


def test_transactions_that_interleave(db: Database) -> None:
    """Jobs that several transactions enqueued by turns come out transaction by transaction."""
    callers = [begun(db) for _ in range(3)]
    rounds = [[db.enqueue(1, conn=caller)[0] for caller in callers] for _ in range(4)]
    for caller in reversed(callers):
        caller.commit()
    session = db.session()
    assert ids(db.claim_all(session, 5)) == [row[number] for number in range(3) for row in rounds]


def test_a_late_committer_takes_its_turn_when_it_commits(db: Database) -> None:
    """What a claim had to pass comes before everything that is still unclaimed."""
    late = begun(db)
    delayed = db.enqueue(2, conn=late)
    passed = db.enqueue(2)
    session = db.session()
    assert ids(db.claim(session)) == passed
    waiting = db.enqueue(2)
    assert db.holes() >= 1
    late.commit()
    assert ids(db.claim(session)) == [*delayed, *waiting]


def test_a_hole_that_the_limit_cuts(db: Database) -> None:
    """A late transaction with more jobs than a claim takes is handed out over several claims."""
    late = begun(db)
    delayed = db.enqueue(10, conn=late)
    db.enqueue(1)
    session = db.session()
    db.claim(session)
    late.commit()
    after = db.enqueue(3)
    assert [ids(db.claim(session, 4)) for _ in range(5)] == [
        delayed[:4],
        delayed[4:8],
        [*delayed[8:], *after[:2]],
        after[2:],
        [],
    ]


def test_a_limit_that_ends_with_the_hole(db: Database) -> None:
    """A claim that takes exactly the rest of a hole leaves nothing behind and repeats nothing."""
    late = begun(db)
    delayed = db.enqueue(4, conn=late)
    db.enqueue(1)
    session = db.session()
    db.claim(session)
    late.commit()
    assert ids(db.claim(session, 4)) == delayed
    assert db.claim(session, 4) == []
    [after] = db.enqueue(1)
    assert ids(db.claim(session, 4)) == [after]


def test_holes_of_several_transactions(db: Database) -> None:
    """Each late transaction comes when it commits; one that rolls back leaves nothing."""
    callers = [begun(db) for _ in range(4)]
    jobs = [db.enqueue(3, conn=caller) for caller in callers]
    db.enqueue(1)
    session = db.session()
    db.claim(session)
    assert db.holes() >= 4
    callers[2].commit()
    assert ids(db.claim(session)) == jobs[2]
    callers[1].rollback()
    assert db.claim(session) == []
    callers[3].commit()
    callers[0].commit()
    assert ids(db.claim(session, 4)) == [*jobs[0], jobs[3][0]]
    assert ids(db.claim(session, 4)) == jobs[3][1:]
    assert db.claim(session) == []


def test_a_cut_hole_before_one_that_is_still_running(db: Database) -> None:
    """A claim remembers both: where the limit cut one transaction, and that another one runs."""
    early, running = begun(db), begun(db)
    cut = db.enqueue(5, conn=early)
    unseen = db.enqueue(2, conn=running)
    db.enqueue(1)
    session = db.session()
    db.claim(session)
    early.commit()
    assert ids(db.claim(session, 2)) == cut[:2]
    running.commit()
    assert ids(db.claim(session, 4)) == [*cut[2:], unseen[0]]
    assert ids(db.claim(session, 4)) == unseen[1:]


def test_a_hole_in_a_passed_gap_of_a_second_claim(db: Database) -> None:
    """A transaction that began between two claims becomes a hole of the second one."""
    session = db.session()
    db.enqueue(1)
    db.claim(session)
    late = begun(db)
    delayed = db.enqueue(1, conn=late)
    db.enqueue(1)
    db.claim(session)
    late.commit()
    assert ids(db.claim(session)) == delayed


def test_the_same_transaction_in_several_lanes(db: Database) -> None:
    """Each lane has its own cursor, so a late transaction is late in each of them."""
    late = begun(db)
    delayed = {priority: db.enqueue(2, conn=late, priority=priority) for priority in (-1, 0, 1)}
    for priority in (-1, 0):
        db.enqueue(1, priority=priority)
    session = db.session()
    assert len(db.claim(session)) == 2
    late.commit()
    assert ids(db.claim(session)) == [*delayed[-1], *delayed[0], *delayed[1]]


def test_a_savepoint_belongs_to_its_transaction(db: Database) -> None:
    """Jobs of savepoints come in the place of the whole transaction; rolled-back ones never."""
    caller, other = begun(db), begun(db)
    kept = db.enqueue(1, conn=caller)
    caller.execute("SAVEPOINT one")
    db.enqueue(2, conn=caller)
    caller.execute("ROLLBACK TO SAVEPOINT one")
    kept += db.enqueue(1, conn=caller)
    caller.execute("SAVEPOINT two")
    theirs = db.enqueue(1, conn=other)
    kept += db.enqueue(1, conn=caller)
    caller.execute("RELEASE SAVEPOINT two")
    other.commit()
    session = db.session()
    assert ids(db.claim(session)) == theirs
    caller.commit()
    assert ids(db.claim(session)) == kept


def test_a_prepared_transaction_is_still_running(db: Database) -> None:
    """Jobs of a two-phase commit appear with its second phase, also after their owner is gone."""
    caller = begun(db)
    delayed = db.enqueue(2, conn=caller)
    caller.execute("PREPARE TRANSACTION 'rota order'")
    caller.close()
    passed = db.enqueue(1)
    session = db.session()
    assert ids(db.claim(session)) == passed
    db.sql("COMMIT PREPARED 'rota order'")
    assert ids(db.claim(session)) == delayed


def test_a_claim_does_not_trip_over_its_own_transaction(db: Database) -> None:
    """A claim of several lanes has a transaction id itself; newer ones come out all the same."""
    db.enqueue(1, priority=-1)
    late = begun(db)
    delayed = db.enqueue(1, conn=late)
    db.enqueue(1)
    session = db.session()
    db.claim(session)
    released = db.enqueue(1)
    late.commit()
    assert ids(db.claim(session)) == [*delayed, *released]
    assert db.claim(session) == []


@pytest.mark.parametrize("limit", [1, 100])
def test_holes_disappear(db: Database, limit: int) -> None:
    """Transactions that have committed are no holes any more (those of other tests may be)."""
    callers = [begun(db) for _ in range(20)]
    xids = [own_xid(caller) for caller in callers]
    jobs = [db.enqueue(1, conn=caller)[0] for caller in callers]
    db.enqueue(1)
    session = db.session()
    db.claim(session)
    assert db.holes() >= 20
    assert db.one(AMONG_HOLES, xids) == 20
    for caller in callers:
        caller.commit()
    assert ids(db.claim_all(session, limit)) == jobs
    for _ in range(2):
        db.enqueue(1)
        db.claim(session)
    assert db.one(AMONG_HOLES, xids) == 0


def test_released_jobs_line_up_again(db: Database) -> None:
    """A job that comes back takes its turn behind what is there, in a claim of any limit."""
    jobs = db.enqueue(3)
    session = db.session()
    claimed = db.claim(session, 2)
    db.settle(session, claimed, Move.RELEASE)
    assert ids(db.claim_all(session, 1)) == [jobs[2], *jobs[:2]]


@pytest.mark.parametrize("count", [1, 3, 300])
@pytest.mark.parametrize("options", [{}, {"delay": 0.001}], ids=["now", "later"])
def test_two_phase_commit(db: Database, count: int, options: dict[str, Any]) -> None:
    """A transaction that sends no wake can be prepared while a worker sleeps; another one cannot."""
    sleeper = db.bare(autocommit=True)
    sleeper.execute("SELECT pg_advisory_lock_shared(7682001, hashtext('default'))")
    loud = db.bare()
    db.enqueue(count, conn=loud, **options)
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="NOTIFY"):
        loud.execute("PREPARE TRANSACTION 'loud'")
    loud.rollback()
    quiet = db.bare()
    jobs = [
        *db.enqueue(count, conn=quiet, wake=False, **options),
        *db.enqueue(count, conn=quiet, wake=False, **options),
    ]
    name = f"quiet {db.one('SELECT current_database()')}"
    quiet.execute(f"PREPARE TRANSACTION '{name}'")
    session = db.session()
    assert db.claim(session) == []
    sleeper.execute(f"COMMIT PREPARED '{name}'")
    while db.one("SELECT EXISTS (SELECT FROM rota.timer)"):
        db.own.run(db.store.stage(1000))
    assert ids(db.claim_all(session, 100)) == jobs
