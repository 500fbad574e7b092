"""Links of chains: decided with the job's settlement where nobody else has to see it.

And where nobody has to be waited for.
"""

import pytest

from rota.model.flow import Condition, NodeOrder
from rota.model.job import JobId
from rota.model.settlement import Settled
from rota.model.states import Move
from tests.store.flowing import Flowing, node, unique_node
from tests.store.postgres.database import Database, holding


def settled(flow: Flowing, job: JobId, move: Move = Move.COMPLETE) -> Settled:
    """What the settlement of a job gives."""
    session, _ = flow.held[job]
    return flow.connection.run(flow.store.settle(session, [flow.settling(job, move)]))


def built(db: Database, *nodes: object) -> tuple[Flowing, JobId]:
    """A flow, and the first job of it, which is held."""
    flow = Flowing(db.store, db.own, *nodes)  # type: ignore[arg-type]
    return flow, flow.claim(1)[0].id


def test_a_link(db: Database) -> None:
    """What waits for the job is released by its settlement, all of it; nothing is left to decide."""
    flow, job = built(db, node("a"), node("b", 0), node("c", (0, Condition.FINISHED)), node("d", 1))
    assert settled(flow, job).decided == {flow.id("a")}
    assert flow.states == {"a": "completed", "b": "running", "c": "running", "d": "waiting"}


def test_the_end_of_a_chain(db: Database) -> None:
    """The last job is no link: somebody has to see whether the flow has ended."""
    flow, job = built(db, node("a"))
    assert settled(flow, job).decided == set()
    flow.decide("a")
    assert flow.state.ended


def test_what_waits_for_another_one(db: Database) -> None:
    """Whoever ends the other might not see this end before its commit: it is decided afterwards."""
    flow, job = built(db, node("a"), node("b"), node("c", 0, 1), node("d", 0))
    assert settled(flow, job).decided == set()
    assert flow.states["a"] == "running"


def test_a_failure_is_no_link(db: Database) -> None:
    """What is skipped because of it is decided afterwards, in bounded steps."""
    flow, job = built(db, node("a"), node("b", (0, Condition.FINISHED)))
    assert settled(flow, job, Move.DISCARD).decided == set()
    flow.decide("a")
    assert flow.states == {"a": "failed", "b": "running"}


@pytest.mark.parametrize("held", ["timer WHERE id = {job}", "flow WHERE id = {flow}"])
def test_a_settlement_waits_for_nobody(db: Database, held: str) -> None:
    """Somebody is about to cancel the job to be released, or to retry the flow.

    The settlement leaves it to others.
    """
    flow, job = built(db, node("a"), node("b", 0))
    ids = {"job": flow.jobs("b")[0], "flow": flow.made.flow}
    third = holding(db, f"SELECT FROM rota.{held.format(**ids)} FOR UPDATE")
    assert settled(flow, job).decided == set()
    assert flow.states == {"a": "running", "b": "waiting"}
    third.rollback()
    flow.decide("a")
    assert flow.states == {"a": "completed", "b": "running"}


def test_a_callers_transaction(db: Database) -> None:
    """It may stay open: nothing of a flow is decided in it."""
    flow, job = built(db, node("a"), node("b", 0))
    session, _ = flow.held[job]
    raw = db.bare()
    assert db.inside(raw, db.store.settle(session, [flow.settling(job)])) == []
    raw.commit()
    assert flow.states == {"a": "running", "b": "waiting"}


@pytest.mark.parametrize(
    "follower",
    [node("b", 0, options={"delay": 60.0}), unique_node("b", 0, keys=["one"])],
    ids=["delay", "unique"],
)
def test_what_does_not_begin_at_once(db: Database, follower: NodeOrder) -> None:
    """A job behind it that waits for its time, or has a unique key, is released afterwards.

    What knows about that releases it.
    """
    flow, job = built(db, node("a"), follower)
    assert settled(flow, job).decided == set()
    assert flow.states == {"a": "running", "b": "waiting"}
    flow.decide("a")
    assert flow.states["a"] == "completed"


def test_a_flow_that_is_stopped(db: Database) -> None:
    """It is being stopped, and its jobs are not cancelled yet: nothing is released any more."""
    flow, job = built(db, node("a"), node("b", 0))
    db.sql(
        "INSERT INTO rota.flow_stop (flow, since, next, reason) VALUES (%s, now(), now(), 'enough')",
        flow.made.flow,
    )
    assert settled(flow, job).decided == set()
    assert flow.states == {"a": "running", "b": "waiting"}


def test_a_link_of_its_second_try(db: Database) -> None:
    """A job that failed, was retried by hand and has completed goes on.

    What was counted against it was taken back.
    """
    flow, job = built(db, node("a"), node("b", (0, Condition.FINISHED)), node("c", 1))
    settled(flow, job, Move.DISCARD)
    db.own.run(db.store.retry([job]))
    [again] = [found.id for found in flow.claim() if found.id == job]
    assert settled(flow, again).decided == {flow.id("a")}
    assert flow.states == {"a": "completed", "b": "running", "c": "waiting"}


def test_a_lease_that_was_lost(db: Database) -> None:
    """Where the worker does not hold the job any more, its settlement releases nothing."""
    flow, job = built(db, node("a"), node("b", 0))
    session, _ = flow.held[job]
    db.sql("DELETE FROM rota.lease WHERE session = %s", session)
    assert settled(flow, job) == [job]
    assert flow.states == {"a": "running", "b": "waiting"}
