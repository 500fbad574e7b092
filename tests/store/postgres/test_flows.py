"""Flows under every meeting of those who end jobs, those who decide, and those who act by hand.

One side is stopped by a transaction that stays open, or by a lock that a third connection holds;
each node must then be released and ended once, and never not at all.
"""

from typing import Any

import pytest

from rota.errors import StoreUnavailable
from rota.model.flow import Condition, FlowOrder, FlowState, Graft
from rota.model.job import JobId
from rota.model.states import Move, State
from rota.store.operation import Begin, Operation, Query, Stepped, Steps
from rota.store.postgres import deciding as deciders
from tests.store.factories import until
from tests.store.flowing import Flowing, node, unique_node
from tests.store.postgres.database import Database, Later, Raw, holding, stopped

FINISHED = Condition.FINISHED


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deciders wait for locks, so that a test can stop them there."""
    monkeypatch.setattr(deciders, "PATIENCE", "0")


def settling(db: Database, flow: Flowing, job: JobId, raw: Raw, **rest: Any) -> None:
    """Settle a job in a transaction that stays open."""
    session, _ = flow.held[job]
    move = rest.pop("move", Move.COMPLETE)
    assert db.inside(raw, db.store.settle(session, [flow.settling(job, move, **rest)])) == []


def alone(query: Query) -> Operation[Any]:
    """One statement of a decider, which dies after it."""

    def steps() -> Steps[Any]:
        return (yield query)

    return Stepped("alone", steps(), Begin.NOTHING)


def overlook(db: Database) -> None:
    """What upkeep does, once."""
    db.own.run(db.store.flows.overlook())


def log_entries(db: Database, flow: Flowing, name: str) -> int:
    """How often the jobs of a node came into the log."""
    jobs = list(flow.jobs(name))
    return int(db.one("SELECT count(*) FROM rota.log WHERE id = ANY (%s)", jobs))


def built(db: Database, *nodes: Any) -> Flowing:
    return Flowing(db.store, db.own, *nodes)


def test_two_settlers_end_the_last_two_jobs_at_once(db: Database) -> None:
    """Neither sees the other's arrival before its commit.

    Who commits last sees both, and releases what waits.
    """
    flow = built(db, node("a", jobs=2), node("b", 0))
    one, two = (flow.claim(1)[0].id for _ in range(2))
    first, second = db.bare(), db.bare()
    settling(db, flow, one, first)
    settling(db, flow, two, second)
    # A look before the commit finds one of two.
    db.inside(second, db.store.flows.decide([flow.id("a")]))
    first.commit()
    flow.decide("a")
    assert flow.states == {"a": "running", "b": "waiting"}
    second.commit()
    flow.decide("a")
    assert flow.claimed() == ["b"]


def test_two_nodes_end_at_once(db: Database) -> None:
    """A node that waits for both is released by who ends its node last, though both end at once."""
    flow = built(db, node("a"), node("b"), node("c", 0, 1))
    for job in flow.claim():
        flow.settle(job.id)
    first, second = db.bare(), db.bare()
    first.execute("SELECT 1")
    db.inside(first, alone(deciders.END(nodes=[flow.id("a")], patience=None)))
    db.inside(second, alone(deciders.END(nodes=[flow.id("b")], patience=None)))
    first.commit()
    db.own.run(alone(deciders.RELEASE(nodes=[flow.id("a")], patience=None)))
    assert flow.states["c"] == "waiting"
    second.commit()
    db.own.run(alone(deciders.RELEASE(nodes=[flow.id("b")], patience=None)))
    assert flow.claimed() == ["c"]


@pytest.mark.parametrize("dies_after", ["the commit", "the end", "the release"])
def test_a_settler_that_dies(db: Database, dies_after: str) -> None:
    """Whatever statement is its last, upkeep goes on from there."""
    flow = built(db, node("a"), node("b", 0), node("c", (1, FINISHED)))
    [job] = flow.claim()
    overlook(db)
    flow.settle(job.id)
    if dies_after != "the commit":
        db.own.run(alone(deciders.END(nodes=[flow.id("a")], patience=None)))
    if dies_after == "the release":
        db.own.run(alone(deciders.RELEASE(nodes=[flow.id("a")], patience=None)))
    overlook(db)
    assert flow.run() == ["b", "c"]
    assert flow.state is FlowState.COMPLETED


def test_a_settler_that_dies_before_it_ends_the_flow(db: Database) -> None:
    """A node that has ended is looked at once more, and so is its flow."""
    flow = built(db, node("a"))
    [job] = flow.claim()
    overlook(db)
    flow.settle(job.id)
    db.own.run(alone(deciders.END(nodes=[flow.id("a")], patience=None)))
    assert flow.state.value == "running"
    overlook(db)
    assert flow.state is FlowState.COMPLETED


def test_an_arrival_that_commits_late(db: Database) -> None:
    """A mark does not pass what its snapshot saw running: it began before, nobody else looks."""
    flow = built(db, node("a"), node("b", 0))
    [job] = flow.claim()
    late = db.bare()
    settling(db, flow, job.id, late)
    # Others go on meanwhile, and marks with them.
    for _ in range(3):
        other = built(db, node("x"))
        [running] = other.claim()
        other.settle(running.id)
        overlook(db)
    late.commit()
    overlook(db)
    assert flow.claimed() == ["b"]


def test_upkeep_that_dies_before_its_mark(db: Database) -> None:
    """What it has not decided is found again: the mark comes last."""
    flow = built(db, node("a"), node("b", 0))
    [job] = flow.claim()
    flow.settle(job.id)
    third = holding(db, "LOCK TABLE rota.flow_mark IN SHARE MODE")
    killed = Later(db, db.store.flows.overlook())
    stopped(db, killed, third)
    db.sql("SELECT pg_terminate_backend(%s)", killed.pid)
    third.rollback()
    assert db.own.run(db.store.look(["default"])).undecided
    assert flow.states == {"a": "completed", "b": "running"}


def test_upkeep_that_dies_before_it_decides(db: Database) -> None:
    """It had looked and written nothing: no mark says that this was decided."""
    flow = built(db, node("a"), node("b", 0, jobs=2))
    [job] = flow.claim()
    flow.settle(job.id)
    third = holding(db, f"SELECT FROM rota.flow_node WHERE id = {flow.id('a')} FOR UPDATE")
    killed = Later(db, db.store.flows.overlook())
    stopped(db, killed, third)
    db.sql("SELECT pg_terminate_backend(%s)", killed.pid)
    third.rollback()
    with pytest.raises(StoreUnavailable):
        killed.result()
    overlook(db)
    assert flow.run() == ["b", "b"]


def test_a_settler_and_upkeep_decide_at_once(db: Database) -> None:
    """Both are in mid-release: the key lets one through, and the jobs come into the log once."""
    flow = built(db, node("a"), node("b", 0, jobs=3))
    [job] = flow.claim()
    flow.settle(job.id)
    third = holding(db, f"SELECT FROM rota.timer WHERE id = {flow.jobs('b')[-1]} FOR UPDATE")
    settler = Later(db, db.store.flows.decide([flow.id("a")]))
    stopped(db, settler, third)
    upkeep = Later(db, db.store.flows.overlook())
    until(lambda: db.waits_for(upkeep.pid, settler.pid) or None)
    third.rollback()
    assert settler.result().released == [flow.id("b")]
    upkeep.result()
    assert log_entries(db, flow, "b") == 3
    assert flow.run() == ["b"] * 3
    assert flow.state is FlowState.COMPLETED


def test_two_deciders_end_a_node_at_once(db: Database) -> None:
    """The second waits for the first one's key, and leaves the node to it."""
    flow = built(db, node("a"))
    [job] = flow.claim()
    flow.settle(job.id)
    first = db.bare()
    db.inside(first, alone(deciders.END(nodes=[flow.id("a")], patience=None)))
    second = Later(db, db.store.flows.decide([flow.id("a")]))
    stopped(db, second, first)
    first.commit()
    assert second.result().ended == []
    overlook(db)
    assert flow.state is FlowState.COMPLETED


def test_a_graft_against_an_arrival(db: Database) -> None:
    """The node's other job arrives before the graft commits: what waits begins after the additions."""
    flow = built(db, node("a", jobs=2), node("b", 0))
    one, two = (flow.claim(1)[0].id for _ in range(2))
    grafting = db.bare()
    settling(db, flow, one, grafting, graft=Graft(flow.id("a"), [node("x")]))
    flow.settle(two)
    flow.decide("a")
    assert flow.states == {"a": "running", "b": "waiting"}
    grafting.commit()
    flow.decide("a")
    assert flow.states == {"a": "completed", "b": "waiting", "x": "running"}


def test_a_graft_that_is_rolled_back(db: Database) -> None:
    """Nothing of it is there, and the job has not arrived."""
    flow = built(db, node("a"), node("b", 0))
    [job] = flow.claim()
    raw = db.bare()
    settling(db, flow, job.id, raw, graft=Graft(flow.id("a"), [node("x")]))
    raw.rollback()
    flow.decide("a")
    assert flow.states == {"a": "running", "b": "waiting"}


def test_a_retry_by_hand_before_the_nodes_end(db: Database) -> None:
    """The decider has summed up before the retry committed: it must not end the node for that."""
    flow = built(db, node("a", jobs=2), node("b", (0, FINISHED)))
    one, two = (flow.claim(1)[0].id for _ in range(2))
    flow.settle(one, move=Move.DISCARD)
    flow.settle(two)
    retrying = db.bare()
    assert db.inside(retrying, db.store.retry([one])) == [one]
    decider = Later(db, db.store.flows.decide([flow.id("a")]))
    stopped(db, decider, retrying)
    retrying.commit()
    assert decider.result().ended == []
    assert flow.states == {"a": "running", "b": "waiting"}
    assert flow.run() == ["a", "b"]


def test_a_retry_by_hand_after_the_nodes_end(db: Database) -> None:
    """The node ends while the retry waits for it: the job is then left to a retry of its flow."""
    flow = built(db, node("a"), node("b", (0, FINISHED)))
    [job] = flow.claim()
    flow.settle(job.id, move=Move.DISCARD)
    deciding = db.bare()
    db.inside(deciding, alone(deciders.END(nodes=[flow.id("a")], patience=None)))
    retry = Later(db, db.store.retry([job.id]))
    stopped(db, retry, deciding)
    deciding.commit()
    assert retry.result() == []
    assert flow.graph.nodes[0].failed == 1
    assert db.own.run(db.store.flows.retry(flow.made.flow)) == [job.id]


@pytest.mark.parametrize("keys", [None, ["x", "y"]], ids=["plain", "unique"])
def test_a_job_that_ends_during_a_retry_by_hand(db: Database, keys: list[str] | None) -> None:
    """The job fails, and its node ends, after the retry has locked the others' nodes.

    It keeps its node.
    """
    names = ("one", "two")
    nodes = [
        unique_node(name, keys=[key]) if keys else node(name)
        for name, key in zip(names, keys or names, strict=True)
    ]
    flow = built(db, *nodes)
    one, two = (flow.claim(1)[0].id for _ in range(2))
    [timed] = db.enqueue(1, delay=600.0)
    third = holding(db, f"SELECT FROM rota.timer WHERE id = {timed} FOR UPDATE")
    retry = Later(db, db.store.retry([one, two, timed]))
    stopped(db, retry, third)
    flow.settle(two, move=Move.DISCARD)
    flow.decide("two")
    assert flow.states == {"one": "running", "two": "failed"}
    third.rollback()
    assert retry.result() == [timed]
    assert db.own.run(db.store.flows.retry(flow.made.flow)) == [two]


def test_a_flows_retry_against_a_decider(db: Database) -> None:
    """What would be skipped because of a failure that is being retried is not.

    It is decided anew, and by upkeep if need be.
    """
    flow = built(db, node("a"), node("b", 0), node("c", (0, FINISHED)))
    [job] = flow.claim()
    flow.settle(job.id, move=Move.DISCARD)
    db.own.run(alone(deciders.END(nodes=[flow.id("a")], patience=None)))
    retrying = db.bare()
    assert db.inside(retrying, db.store.flows.retry(flow.made.flow)) == [job.id]
    decider = Later(db, db.store.flows.decide([flow.id("a")]))
    stopped(db, decider, retrying)
    retrying.commit()
    assert decider.result().released == []
    assert flow.states == {"a": "running", "b": "waiting", "c": "waiting"}
    assert sorted(flow.run()) == ["a", "b", "c"]
    assert flow.state is FlowState.COMPLETED


def test_cancelling_a_job_that_is_being_released(db: Database) -> None:
    """The cancel waits for the release, finds the job in the log, and it arrives once."""
    flow = built(db, node("a"), node("b", 0, jobs=2), node("c", (1, FINISHED)))
    [job] = flow.claim()
    flow.settle(job.id)
    waiting, last = flow.jobs("b")
    third = holding(db, f"SELECT FROM rota.timer WHERE id = {last} FOR UPDATE")
    decider = Later(db, db.store.flows.decide([flow.id("a")]))
    stopped(db, decider, third)
    cancel = Later(db, db.store.cancel([waiting]))
    until(lambda: db.waits_for(cancel.pid, decider.pid) or None)
    third.rollback()
    decider.result()
    assert cancel.result() == {waiting: State.CANCELLED}
    assert flow.run() == ["b", "c"]
    assert (flow.graph.nodes[1].completed, flow.graph.nodes[1].cancelled) == (1, 1)


def test_a_release_that_meets_a_cancel(db: Database) -> None:
    """The job was cancelled first: the release moves the others, and the node counts each once."""
    flow = built(db, node("a"), node("b", 0, jobs=2))
    [job] = flow.claim()
    flow.settle(job.id)
    one, _ = flow.jobs("b")
    cancelling = db.bare()
    db.inside(cancelling, db.store.cancel([one]))
    decider = Later(db, db.store.flows.decide([flow.id("a")]))
    stopped(db, decider, cancelling)
    cancelling.commit()
    decider.result()
    assert flow.run() == ["b"]
    assert flow.states["b"] == "cancelled"


def test_a_flow_in_a_transaction_of_a_caller(db: Database) -> None:
    """It is there with the commit, and a rollback leaves nothing."""
    raw = db.bare()
    order = FlowOrder("shop.order", [node("a"), node("b", 0)], 60.0)
    made = db.inside(raw, db.store.flows.create(order))
    assert db.own.run(db.store.flows.flow(made.flow)) is None
    raw.rollback()
    made = db.inside(raw, db.store.flows.create(order))
    raw.commit()
    found = db.own.run(db.store.flows.flow(made.flow))
    assert found is not None
    assert [each.name for each in found.nodes] == ["a", "b"]
    for table in ("flow", "flow_node", "flow_edge", "timer", "log"):
        wanted = 2 if table == "flow_node" else 1
        assert db.one(f"SELECT count(*) FROM rota.{table}") == wanted


def test_jobs_without_flows_write_nothing_of_them(db: Database) -> None:
    """Enqueue, claim and settlement touch no table of flows."""
    session = db.session()
    db.enqueue(3)
    db.settle(session, db.claim(session))
    for table in ("flow", "flow_node", "flow_arrival", "flow_fact"):
        assert db.one(f"SELECT count(*) FROM rota.{table}") == 0
    assert not db.own.run(db.store.look(["default"])).undecided


def test_a_callers_open_transaction_holds_no_decider(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has locked is left, and decided once it has ended; other flows go on meanwhile."""
    monkeypatch.undo()
    held, free = (built(db, node("a"), node("b", 0, jobs=2)) for _ in range(2))
    held.claim(2)
    free.held = held.held
    for flow in (held, free):
        flow.settle(*flow.jobs("a"))
    caller = db.bare()
    db.inside(caller, db.store.cancel(list(held.jobs("b"))))
    decided = db.own.run(db.store.flows.decide([held.id("a"), free.id("a")]))
    assert decided.released == [free.id("b")]
    for _ in range(2):
        overlook(db)
        assert db.own.run(db.store.look(["default"])).undecided
    caller.rollback()
    overlook(db)
    assert held.states["b"] == "running"
    overlook(db)
    assert not db.own.run(db.store.look(["default"])).undecided
