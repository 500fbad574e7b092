"""Replacements of flows' jobs that meet releases, workers and each other.

A job leaves its node once, and the node hears of it.
"""

from threading import Thread
from typing import Any

from msgspec import convert

from rota import Unique
from rota.database.recognise import blocking_caller
from rota.model.enqueued import Enqueued
from rota.model.headers import node_of
from rota.model.job import ClaimedJob, Keys, Order
from rota.model.states import Move
from rota.store.execute import drive
from rota.store.operation import Operation, Query, Request, Rows, Surroundings, Where
from rota.store.postgres import claim
from rota.store.postgres import enqueue_keyed as keyed
from tests.store.factories import spec_of, until
from tests.store.flowing import Flowing, node, unique_node
from tests.store.postgres.database import Database, Later


def replacing(db: Database, key: str, **options: Any) -> Operation[Enqueued]:
    """Enqueue a job with this key from elsewhere."""
    spec = spec_of(unique=Unique(on_conflict="replace"), **options)
    return db.store.enqueue(Order(spec, ['{"new":true}'], Keys(unique=[key])))


def overlook(db: Database) -> None:
    """What upkeep does, once."""
    db.own.run(db.store.flows.overlook())


def test_a_release_beside_an_open_replacement(db: Database) -> None:
    """The node is released without the job, which is cancelled there when the replacement commits."""
    flow = Flowing(db.store, db.own, node("a"), unique_node("b", 0, keys=["x", "y"]), node("c", 1))
    replaced, other = flow.jobs("b")
    caller = db.bare()
    assert db.inside(caller, replacing(db, "x", delay=3600.0)).replaced == [replaced]
    [job] = flow.claim()
    flow.settle(job.id)
    flow.decide("a")
    assert flow.states["b"] == "running"
    db.own.run(db.store.stage(100))
    [job] = flow.claim()
    assert job.id == other
    flow.settle(other)
    flow.decide("b")
    assert flow.states["b"] == "running"
    caller.commit()
    overlook(db)
    assert flow.states == {"a": "completed", "b": "cancelled", "c": "skipped"}
    assert flow.claim() == []


def test_a_replacement_that_is_rolled_back(db: Database) -> None:
    """The job stays its node's."""
    flow = Flowing(db.store, db.own, unique_node("a", keys=["x"]))
    caller = db.bare()
    db.inside(caller, replacing(db, "x"))
    caller.rollback()
    overlook(db)
    assert flow.run() == ["a"]
    assert flow.states == {"a": "completed"}


def test_two_who_replace_a_member(db: Database) -> None:
    """The second one waits for the first, and finds a job that has left its node."""
    flow = Flowing(db.store, db.own, unique_node("a", keys=["x", "y"]))
    caller = db.bare()
    db.inside(caller, replacing(db, "x"))
    second = Later(db, replacing(db, "x"))
    until(lambda: db.waits_for(second.pid, caller.info.backend_pid) or None)
    caller.commit()
    assert second.result().replaced == [flow.jobs("a")[0]]
    overlook(db)
    [member] = flow.graph.nodes
    assert (member.state, member.cancelled) == ("running", 1)


def test_a_member_that_came_back_while_a_replacement_waited(db: Database) -> None:
    """What was committed since the replacement looked is looked at again.

    The new entry is the node's, too.
    """
    flow = Flowing(db.store, db.own, unique_node("a", keys=["x"]))
    [job] = flow.jobs("a")
    session, worker, caller = db.session(), db.bare(), db.bare(autocommit=True)
    given = {"lane": db.one("SELECT id FROM rota.lane"), "session": session, "size": 1}
    joined = blocking_caller(caller)
    back: list[Any] = []

    def execute(request: Request) -> Rows:
        if isinstance(request, Where):
            return [Surroundings(inside=False)]
        if isinstance(request, Query) and request.statement is keyed.KEYED_REPLACE_NOW and not back:
            # The claim begins after it was seen that the key is taken.
            worker.execute(claim.CLAIM_LOCK.text, given)
            [row] = worker.execute(claim.CLAIM_KEYED.text, given).fetchall()
            held = convert([*row[:4], "default", 0, *row[4:]], ClaimedJob)
            flow.held[job] = (session, held)
            back.append(flow.settling(job, Move.RETRY, delay=3600.0))
        return joined.execute(request)

    stored: list[Enqueued] = []
    steps = replacing(db, "x").steps
    thread = Thread(target=lambda: stored.append(drive(steps, execute)))
    thread.start()
    until(lambda: db.waits_for(caller.info.backend_pid, worker.info.backend_pid) or None)
    assert db.inside(worker, db.store.settle(session, back)) == []
    worker.commit()
    thread.join()
    assert stored[0].replaced == [job]
    overlook(db)
    assert flow.states == {"a": "cancelled"}
    [again] = flow.claim()
    assert (again.args, node_of(again.headers)) == ('{"new":true}', None)
