"""Task lanes on PostgreSQL: several workers that make the same lane, and the cost of idle ones."""

import pytest

from rota.model.job import JobId, JobSpec, Keys, Order
from rota.model.settlement import passed_on
from rota.store.postgres import claim, settle_write
from rota.store.postgres.claim_round import Part
from tests.store.factories import until
from tests.store.postgres.database import Database, Later, ids

KNOWN = ["shop.known"]


def meet(db: Database, count: int = 1) -> list[JobId]:
    """Have jobs passed on by a worker that does not know their task."""
    jobs = db.enqueue(count, task="shop.new")
    session = db.session()
    met = db.own.run(db.store.claim(session, ["default"], 100, tasks=KNOWN))
    db.own.run(db.store.settle(session, [passed_on(job) for job in met]))
    return jobs


@pytest.mark.parametrize("committed", [True, False])
def test_two_workers_make_a_lane(db: Database, *, committed: bool) -> None:
    """The second one waits for the first one's transaction, and then uses its lane or makes one."""
    jobs = db.enqueue(2, task="shop.new")
    session, other = db.session(), db.session()
    first, second = (
        db.own.run(db.store.claim(one, ["default"], 1, tasks=KNOWN)) for one in (session, other)
    )
    slow = db.bare()
    slow.execute(settle_write.PASS_ON_LANES.text, {"jobs": ids(first)})
    later = Later(db, db.store.settle(other, [passed_on(job) for job in second]))
    until(lambda: db.waits_for(later.pid, slow.info.backend_pid) or None)
    slow.commit() if committed else slow.rollback()
    assert later.result() == []
    assert db.sql("SELECT count(*) FROM rota.lane WHERE task = 'shop.new'") == [(1,)]
    assert db.own.run(db.store.settle(session, [passed_on(job) for job in first])) == []
    assert db.sql("SELECT count(*) FROM rota.lane WHERE task = 'shop.new'") == [(1,)]
    assert db.own.run(db.store.claim(session, ["default"], 10, tasks=KNOWN)) == []
    found = db.own.run(db.store.claim(session, ["default"], 10, tasks=["shop.new"]))
    assert sorted(ids(found)) == jobs


def test_idle_task_lanes_are_not_claimed_from(db: Database) -> None:
    """A woken claim takes no turn for a task lane in which nothing is: it was that of a deploy."""
    meet(db)
    lane = db.one("SELECT id FROM rota.lane WHERE task IS NULL")
    plain = Part(lane, 0, ready=False, key_lanes=False)
    assert db.own.run(claim.probe(["default"], KNOWN)) == [plain]
    [_, keys] = db.own.run(claim.probe(["default"], ["shop.new"]))
    assert keys == Part(lane, 0, ready=True, key_lanes=True)
    assert len(db.own.run(db.store.claim(db.session(), ["default"], 10))) == 1
    assert db.own.run(claim.probe(["default"], ["shop.new"])) == [plain]


def test_names_that_are_long(db: Database) -> None:
    """Names and keys of any length that is possible have their lane."""
    wide = "".join(chr(0x4E00 + number * number % 20_011) for number in range(500))
    queue, task = wide[:200], wide[200:400]
    spec = JobSpec(task=task, queue=queue)
    [job] = db.own.run(db.store.enqueue(Order(spec, ["{}"], Keys(fair=[wide]))))
    session = db.session()
    [met] = db.own.run(db.store.claim(session, [queue], 10, tasks=KNOWN))
    db.own.run(db.store.settle(session, [passed_on(met)]))
    assert db.own.run(db.store.claim(session, [queue], 10, tasks=KNOWN)) == []
    assert ids(db.own.run(db.store.claim(session, [queue], 10, tasks=[task]))) == [job]
