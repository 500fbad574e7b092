"""Unique jobs in flows: what becomes of a node when another enqueue replaces a job of it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from rota import JobExists, Unique
from rota.model.enqueued import Enqueued
from rota.model.flow import FlowOrder, FlowState, Graft, NodeOrder
from rota.model.job import JobFilter, Keys, Order
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import record, run_inside, spec_of
from tests.store.flowing import Flowing, node, unique_node

MANY = 1200
"""More than PostgreSQL takes in single statements."""

REPLACE = Unique(on_conflict="replace")
DEBOUNCE = Unique(on_conflict="debounce", cap=600)


def replace(
    store: Store, connection: Connection, *keys: str, unique: Unique = REPLACE, **options: Any
) -> Enqueued:
    """Enqueue jobs with these keys from elsewhere."""
    spec = spec_of(unique=unique, **options)
    args = [f'{{"new":"{key}"}}' for key in keys]
    return connection.run(store.enqueue(Order(spec, args, Keys(unique=keys))))


def replacing(name: str, *after: int, keys: Sequence[str], **options: Any) -> NodeOrder:
    """A node of a flow whose jobs replace others that wait with their keys."""
    made = node(name, *after, jobs=len(keys), options={"unique": REPLACE, **options})
    return made._replace(order=made.order._replace(keys=Keys(unique=keys)))


def overlook(store: Store, connection: Connection) -> None:
    """What upkeep does within a second."""
    connection.run(store.flows.overlook())


@pytest.mark.parametrize(
    "options",
    [{}, {"delay": 60.0}, {"unique": DEBOUNCE, "delay": 60.0}],
    ids=["now", "later", "debounced"],
)
@pytest.mark.parametrize("delay", [None, 60.0], ids=["available", "scheduled"])
def test_a_member_that_is_replaced(
    store: Store, connection: Connection, delay: float | None, options: dict[str, Any]
) -> None:
    """It leaves its node, which counts it as cancelled; its run with new args is not the node's."""
    flow = Flowing(store, connection, unique_node("a", keys=["x", "y"], delay=delay), node("b", 0))
    first, second = flow.jobs("a")
    assert replace(store, connection, "x", **options).replaced == [first]
    overlook(store, connection)
    [member, _] = flow.graph.nodes
    assert (member.state, member.left, member.cancelled) == ("running", 1, 1)
    assert record(store, connection, first).args == '{"new":"x"}'
    connection.run(store.cancel([second]))
    overlook(store, connection)
    assert flow.states == {"a": "cancelled", "b": "skipped"}
    assert flow.state is FlowState.CANCELLED
    connection.run(store.retry([first]))
    [job] = flow.claim()
    assert (job.id, job.headers) == (first, None)
    flow.settle(first)
    assert flow.graph.nodes[0].completed == 0


def test_a_member_that_waits_and_is_replaced(store: Store, connection: Connection) -> None:
    """It begins at the time of the new enqueue, and its node does not wait for it."""
    flow = Flowing(store, connection, node("a"), unique_node("b", 0, keys=["x"]), node("c", 1))
    [waiting] = flow.jobs("b")
    assert replace(store, connection, "x").replaced == [waiting]
    assert flow.state_of_job(waiting) is State.AVAILABLE
    overlook(store, connection)
    assert flow.states["b"] == "cancelled"
    assert flow.states["c"] == "skipped"
    jobs = {job.id for job in flow.claim()}
    assert jobs == {*flow.jobs("a"), waiting}
    flow.settle(waiting)
    flow.settle(*flow.jobs("a"))
    flow.decide()
    assert flow.claim() == []
    assert flow.state is FlowState.CANCELLED


def test_a_member_that_comes_back_and_is_replaced(store: Store, connection: Connection) -> None:
    """So does one that has failed and waits for its next attempt."""
    flow = Flowing(store, connection, unique_node("a", keys=["x"]))
    [job] = flow.jobs("a")
    flow.claim()
    flow.settle(job, move=Move.RETRY, delay=60.0)
    assert replace(store, connection, "x").replaced == [job]
    overlook(store, connection)
    assert flow.states == {"a": "cancelled"}


def test_a_member_that_is_replaced_twice(store: Store, connection: Connection) -> None:
    """It arrives once: its second replacement replaces a job of no node."""
    flow = Flowing(store, connection, unique_node("a", keys=["x", "y"]))
    [first, _] = flow.jobs("a")
    times: list[dict[str, Any]] = [{}, {"delay": 60.0}, {}]
    for options in times:
        assert replace(store, connection, "x", **options).replaced == [first]
    overlook(store, connection)
    [member] = flow.graph.nodes
    assert (member.state, member.cancelled) == ("running", 1)


def test_a_member_that_is_not_replaced(store: Store, connection: Connection) -> None:
    """A member that runs stays its node's, as does one where the second enqueue is skipped."""
    flow = Flowing(store, connection, unique_node("a", keys=["x", "y"]))
    first, second = flow.jobs("a")
    assert replace(store, connection, "x", unique=Unique()).skipped == [first]
    flow.claim()
    assert replace(store, connection, "x", "y").skipped == [first, second]
    flow.settle(first, second)
    flow.decide()
    assert flow.states == {"a": "completed"}


def test_many_members_that_are_replaced(store: Store, connection: Connection) -> None:
    """Of many jobs at once those that are members arrive at their nodes, and the others at none."""
    keys = [f"x{number}" for number in range(MANY)]
    flow = Flowing(
        store, connection, node("0"), unique_node("a", keys=keys[:800]),
        unique_node("b", 0, keys=keys[800:1000]),
    )  # fmt: skip
    replace(store, connection, *keys[1000:])
    stored = replace(store, connection, *keys)
    assert len(stored.replaced) == MANY
    overlook(store, connection)
    assert flow.states == {"0": "running", "a": "cancelled", "b": "cancelled"}
    assert [each.cancelled for each in flow.graph.nodes] == [0, 800, 200]


def test_retrying_a_flow_whose_member_was_replaced(store: Store, connection: Connection) -> None:
    """Its node ends again: the job has left it."""
    flow = Flowing(store, connection, unique_node("a", keys=["x"]), node("b", 0))
    replace(store, connection, "x", delay=60.0)
    overlook(store, connection)
    assert flow.state is FlowState.CANCELLED
    connection.run(store.flows.retry(flow.made.flow))
    overlook(store, connection)
    assert flow.states == {"a": "cancelled", "b": "skipped"}
    assert flow.claim() == []


def test_a_member_that_was_replaced_is_left_alone(store: Store, connection: Connection) -> None:
    """Nothing that its former node or flow undergoes reaches it: no skip and no stop cancels it."""
    flow = Flowing(
        store, connection, unique_node("a", keys=["x", "y"], delay=60.0), node("b"),
        unique_node("c", 1, keys=["z", "w"]),
    )  # fmt: skip
    replaced = replace(store, connection, "x", "z").replaced
    connection.run(store.flows.stop(flow.made.flow, "enough"))
    overlook(store, connection)
    assert {flow.state_of_job(job) for job in replaced} == {State.AVAILABLE}
    assert flow.state_of_job(flow.jobs("a")[1]) is State.CANCELLED
    assert flow.state_of_job(flow.jobs("c")[1]) is State.CANCELLED


@pytest.mark.parametrize("options", [{}, {"delay": 60.0}], ids=["available", "scheduled"])
def test_a_node_that_replaces(
    store: Store, connection: Connection, options: dict[str, Any]
) -> None:
    """The job that was there is now the node's, with new args, beside jobs whose keys were free."""
    [there] = replace(store, connection, "x", **options)
    flow = Flowing(store, connection, replacing("a", keys=["x", "y"]), node("b", 0))
    assert there in flow.jobs("a")
    assert len(set(flow.jobs("a"))) == 2
    assert record(store, connection, there).args == '{"number":0}'
    assert flow.run() == ["a", "a", "b"]
    assert flow.graph.nodes[0].completed == 2
    assert flow.state is FlowState.COMPLETED


def test_a_waiting_node_that_replaces(store: Store, connection: Connection) -> None:
    """The job about to begin waits for what the node waits for, and is cancelled if that fails."""
    for move, state in ((Move.COMPLETE, State.COMPLETED), (Move.DISCARD, State.CANCELLED)):
        [there] = replace(store, connection, "x")
        flow = Flowing(store, connection, node("a"), replacing("b", 0, keys=["x"]))
        assert flow.jobs("b") == [there]
        assert flow.state_of_job(there) is State.SCHEDULED
        assert flow.claimed() == ["a"]
        flow.settle(*flow.jobs("a"), move=move)
        flow.decide()
        connection.run(store.stage(100))
        flow.run()
        assert flow.state_of_job(there) is state


def test_a_waiting_node_that_debounces(store: Store, connection: Connection) -> None:
    """Its cap lets it begin only once what it waits for has ended; its delay counts from then."""
    capped = Unique(on_conflict="debounce", cap=0.001)
    [there] = replace(store, connection, "x", unique=Unique(on_conflict="debounce"), delay=600.0)
    waiting = replacing("b", 0, keys=["x"], unique=capped, delay=3600.0)
    flow = Flowing(store, connection, node("a"), waiting)
    connection.run(store.stage(100))
    assert flow.run() == ["a"]
    job = record(store, connection, there)
    assert job.scheduled_at is not None
    assert 3500 < (job.scheduled_at - datetime.now(UTC)).total_seconds() < 3700
    assert flow.states == {"a": "completed", "b": "running"}


def test_a_node_that_meets_a_running_job(store: Store, connection: Connection) -> None:
    """It cannot be replaced, so the node's own job counts as cancelled.

    Of a key that comes twice the last one counts.
    """
    [running] = replace(store, connection, "x")
    flow = Flowing(store, connection, node("z"))
    flow.claim()
    flow = Flowing(store, connection, replacing("a", keys=["x"]), replacing("b", keys=["y", "y"]))
    [single] = flow.jobs("b")
    assert flow.jobs("a") == []
    assert record(store, connection, single).args == '{"number":1}'
    flow.decide()
    flow.run()
    assert flow.states == {"a": "cancelled", "b": "cancelled"}
    assert [each.cancelled for each in flow.graph.nodes] == [1, 1]
    assert flow.state_of_job(running) is State.RUNNING


def test_a_flow_that_replaces_a_member_of_another(store: Store, connection: Connection) -> None:
    """The job changes flows: it counts as cancelled in the first, then for the second alone."""
    first = Flowing(store, connection, unique_node("a", keys=["x"]), node("b", 0))
    second = Flowing(store, connection, replacing("a", keys=["x"]), node("b", 0))
    assert second.jobs("a") == first.jobs("a")
    overlook(store, connection)
    assert first.states == {"a": "cancelled", "b": "skipped"}
    assert second.states == {"a": "running", "b": "waiting"}
    assert second.run() == ["a", "b"]
    assert first.state is FlowState.CANCELLED
    assert second.state is FlowState.COMPLETED


def test_what_a_job_adds_replaces(store: Store, connection: Connection) -> None:
    """Even a waiting job of the flow: its node counts it as cancelled, and goes on without it."""
    flow = Flowing(
        store, connection, node("a"), unique_node("b", keys=["x"], delay=60.0), node("c", 0)
    )
    [job] = flow.claim()
    flow.settle(job.id, graft=Graft(flow.id("a"), [replacing("n", keys=["x"])]))
    overlook(store, connection)
    assert flow.states == {"a": "completed", "b": "cancelled", "c": "waiting", "n": "running"}
    [added] = flow.claim()
    assert added.id == flow.jobs("b")[0]
    flow.settle(added.id)
    overlook(store, connection)
    assert flow.claimed() == ["c"]


def test_a_refusal_in_a_callers_transaction(store: Store, connection: Connection) -> None:
    """It leaves nothing of the flow, and the transaction can go on, as after an accepted flow."""
    refuse = {"unique": Unique(on_conflict="raise")}
    [taken] = replace(store, connection, "x")
    nodes = node("a", jobs=3), unique_node("b", keys=["z", "x"], **refuse)
    transaction = store.transaction()
    with pytest.raises(JobExists) as caught:
        run_inside(store, transaction, store.flows.create(FlowOrder("refused", nodes, 60.0)))
    assert caught.value.job == taken
    nodes = node("a"), unique_node("b", 0, keys=["z"], **refuse)
    made = run_inside(store, transaction, store.flows.create(FlowOrder("fine", nodes, 60.0)))
    transaction.commit()
    assert [flow.name for flow in connection.run(store.flows.flows())] == ["fine"]
    jobs = {job for jobs in made.jobs for job in jobs}
    found = connection.run(store.list_jobs(JobFilter(limit=10)))
    assert {job.id for job in found} == {taken, *jobs}


def test_a_job_that_is_left_takes_no_key(store: Store, connection: Connection) -> None:
    """A retry by hand that leaves a job to its flow leaves its key to others, too."""
    flow = Flowing(store, connection, unique_node("a", keys=["x"]))
    flow.run(a=Move.DISCARD)
    [job] = flow.jobs("a")
    assert connection.run(store.retry([job])) == []
    other = Flowing(store, connection, unique_node("a", keys=["x"]))
    assert other.run() == ["a"]
    assert connection.run(store.retry([job], alone=True)) == [job]
