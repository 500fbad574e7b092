"""Queues that nothing is in any more: they cost a worker nothing, until their next job."""

import pytest

from rota.store import queue_names
from rota.store.execute import drive
from rota.store.operation import Begin, Operation, Query, Request, Rows, Single
from rota.store.postgres import claim, look
from tests.store.keying import limited
from tests.store.postgres.database import Database, buffers, ids

MANY = 400


@pytest.fixture
def tenants(db: Database) -> list[str]:
    """A queue for each of many tenants, all of whose jobs are done, in an empty log."""
    names = [f"tenant-{number}" for number in range(MANY)]
    db.sql("INSERT INTO rota.queue (name) SELECT unnest(%s::text[])", names)
    db.sql("INSERT INTO rota.lane (queue, priority) SELECT unnest(%s::text[]), 0", names)
    db.sql("INSERT INTO rota.cursor (slot, lane, seq, xid, id, taken, hole_xids, hole_ids)"
           " SELECT 0, id, 0, '0', 0, 0, '{}', '{}' FROM rota.lane")  # fmt: skip
    return names


def reads(db: Database, operation: Operation[object]) -> int:
    """The buffers that all statements of an operation touch."""
    total = 0

    def execute(query: Request) -> Rows:
        nonlocal total
        assert isinstance(query, Query)
        total += buffers(db, query, kind=Begin.READING)
        return db.own.run(Single("one", query, lambda rows: rows))

    drive(operation.steps, execute)
    return total


def test_idle_queues_cost_nothing(db: Database, tenants: list[str]) -> None:
    """A worker of hundreds of queues reads no more than one of a few, while most are not in use."""
    db.enqueue(1, queue=tenants[0])
    few, many = tenants[:5], tenants
    assert reads(db, claim.probe(many)) < reads(db, claim.probe(few)) + 50
    assert reads(db, look.Looks().look(many)) < reads(db, look.Looks().look(few)) + 50


def test_queues_in_use_are_not_told_apart(
    db: Database, tenants: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where many are in use, asking which ones would cost as much as looking at them."""
    used = MANY // 4
    for number in range(used):
        db.enqueue(1, queue=tenants[number])
    monkeypatch.setattr(queue_names, "MANY_USED", 10)
    probing = reads(db, claim.probe(tenants))
    assert len(db.own.run(claim.probe(tenants))) == used
    db.enqueue(1, queue=tenants[used])
    assert len(db.own.run(claim.probe(tenants))) == MANY
    asking = reads(db, claim.probe(tenants))
    monkeypatch.setattr(queue_names, "MANY", MANY)
    assert asking < reads(db, claim.probe(tenants)) + probing / 2


def test_the_next_job_of_an_idle_queue(db: Database, tenants: list[str]) -> None:
    """It is seen, claimed in its turn, and behind a hole as well."""
    session = db.session()
    late = db.bare()
    hidden = db.enqueue(1, conn=late, queue=tenants[7])
    [second] = db.enqueue(1, queue=tenants[300], priority=0)
    [first] = db.enqueue(1, queue=tenants[7])
    assert db.own.run(db.store.look(tenants)).available
    assert ids(db.claim(session, 10, tenants)) == [first, second]
    assert not db.own.run(db.store.look(tenants)).available
    late.commit()
    assert db.own.run(db.store.look(tenants)).available
    assert ids(db.claim(session, 10, tenants)) == hidden
    # Queues that are not asked for stay where they are.
    db.enqueue(1, queue="elsewhere")
    assert db.claim(session, 10, tenants) == []


def test_jobs_with_limits_in_an_idle_queue(db: Database, tenants: list[str]) -> None:
    """Jobs with limits are reached by the plain lane beside them, which may have no rows itself."""
    jobs = limited(db.store, db.own, ["a", "b"], queue=tenants[3])
    assert db.own.run(db.store.look(tenants)).available
    assert sorted(ids(db.claim(db.session(), 10, tenants))) == jobs


def test_paused_queues_stay_paused(db: Database, tenants: list[str]) -> None:
    """However many queues there are."""
    db.enqueue(1, queue=tenants[3])
    db.own.run(db.store.pause(tenants[3]))
    assert not db.own.run(db.store.look(tenants)).available
    assert db.claim(db.session(), 10, tenants) == []
