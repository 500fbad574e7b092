"""Flows on all stores: what follows when jobs of nodes end, by whatever way."""

from typing import Any

import pytest

from rota.model.flow import Condition, FlowState, Graft, NodeState
from rota.model.headers import NodeId, node_of
from rota.model.job import JobId
from rota.model.memory import Holder
from rota.model.states import Move, State
from rota.model.transfer import Transfer
from rota.store.connections import Connection
from rota.store.operation import Begin, Statement, Steps, operation
from rota.store.protocol import Store
from tests.store.factories import claim, enqueue, open_session, rescued, running, settle, settlement
from tests.store.flowing import Flowing, node

FINISHED, FAILED = Condition.FINISHED, Condition.FAILED


def test_a_chain_runs_link_by_link(store: Store, connection: Connection) -> None:
    """A job that waits is scheduled and not claimed, until the one before has completed."""
    flow = Flowing(store, connection, node("a"), node("b", 0), node("c", 1))
    [last] = flow.jobs("c")
    assert flow.states == {"a": "running", "b": "waiting", "c": "waiting"}
    assert flow.state_of_job(last) is State.SCHEDULED
    assert flow.run() == ["a", "b", "c"]
    assert flow.states == {"a": "completed", "b": "completed", "c": "completed"}
    assert flow.state is FlowState.COMPLETED


def test_a_fan_in_waits_for_all(store: Store, connection: Connection) -> None:
    """A node that waits for several begins when the last job of the last of them has ended, and once."""
    flow = Flowing(store, connection, node("a", jobs=3), node("b", jobs=2), node("c", 0, 1))
    jobs = [job.id for job in flow.claim()]
    for job in jobs[:-1]:
        flow.settle(job)
        flow.decide()
        assert flow.claimed() == []
    flow.settle(jobs[-1])
    flow.decide()
    assert flow.claimed() == ["c"]
    flow.decide()
    assert flow.claimed() == []


@pytest.mark.parametrize("move", [Move.DISCARD, Move.CANCEL])
def test_what_needs_success_is_skipped(store: Store, connection: Connection, move: Move) -> None:
    """Its jobs are cancelled, and on to what waits for it; what waits for any end runs."""
    flow = Flowing(
        store, connection, node("a"), node("b", 0, jobs=3), node("c", 1), node("d", (1, FINISHED))
    )
    assert flow.run(a=move) == ["a", "d"]
    assert flow.states["b"] == flow.states["c"] == "skipped"
    assert {flow.state_of_job(job) for job in flow.jobs("b")} == {State.CANCELLED}
    [skipped] = [each for each in flow.graph.nodes if each.name == "b"]
    outcome, why = (
        ("failed", "a has failed") if move is Move.DISCARD else ("cancelled", "a was cancelled")
    )
    assert skipped.reason == why
    assert [each.reason for each in flow.graph.nodes if each.name == "c"] == ["b was skipped"]
    assert (flow.state.value, skipped.cancelled) == (outcome, 3)


def test_what_waits_for_a_failure(store: Store, connection: Connection) -> None:
    """Once all have ended it runs if one has failed; if none has, it is skipped: no failure."""
    nodes = node("a"), node("b"), node("c", (0, FAILED), (1, FAILED))
    flow = Flowing(store, connection, *nodes)
    assert flow.run(b=Move.DISCARD) == ["a", "b", "c"]
    assert flow.state is FlowState.FAILED
    other = Flowing(store, connection, *nodes)
    assert other.run() == ["a", "b"]
    assert (other.states["c"], other.state) == ("skipped", FlowState.COMPLETED)


@pytest.mark.parametrize("move", [Move.RETRY, Move.SNOOZE, Move.RELEASE, Move.AGAIN])
def test_only_an_end_arrives(store: Store, connection: Connection, move: Move) -> None:
    """A run after which the job comes back says nothing to its node."""
    flow = Flowing(store, connection, node("a"), node("b", 0))
    [job] = flow.claim()
    flow.settle(job.id, move=move, delay=3600.0)
    flow.decide()
    [a, _] = flow.graph.nodes
    assert (a.state, a.left) == (NodeState.RUNNING, 1)


def test_a_refused_settlement_does_not_arrive(store: Store, connection: Connection) -> None:
    """What the fence refuses is written nowhere, and so it arrives nowhere: each job counts once."""
    flow = Flowing(store, connection, node("a", jobs=2), node("b", 0))
    one, _ = flow.claim()
    flow.settle(one.id)
    session, claimed = flow.held[one.id]
    assert settle(store, connection, session, flow.settling(claimed.id)) == [one.id]
    flow.decide()
    assert flow.graph.nodes[0].completed == 1
    assert flow.states["a"] == "running"


def test_cancelling_and_deleting_arrive(store: Store, connection: Connection) -> None:
    """Jobs that are cancelled, deleted or cleared before they ended have ended for their node."""
    flow = Flowing(store, connection, node("a", jobs=3), node("b", (0, FINISHED)))
    first, second, third = flow.jobs("a")
    connection.run(store.cancel([first]))
    connection.run(store.delete([second]))
    connection.run(store.clear("default", State.AVAILABLE, after=first, until=third, limit=10))
    flow.decide()
    assert flow.states["a"] == "cancelled"
    assert flow.claimed() == ["b"]


def test_cancelling_what_waits(store: Store, connection: Connection) -> None:
    """A job that waits for others can be cancelled, and its node ends without having begun."""
    flow = Flowing(store, connection, node("a"), node("b", 0), node("c", (1, FINISHED)))
    connection.run(store.cancel(flow.jobs("b")))
    flow.decide()
    assert flow.states == {"a": "running", "b": "cancelled", "c": "running"}
    assert sorted(flow.run()) == ["a", "c"]
    assert flow.state is FlowState.CANCELLED


def test_a_request_to_cancel_arrives(store: Store, connection: Connection) -> None:
    """A running job that comes back although it is to be cancelled has ended."""
    flow = Flowing(store, connection, node("a"))
    [job] = flow.claim()
    connection.run(store.cancel([job.id]))
    flow.settle(job.id, move=Move.RETRY, delay=3600.0)
    flow.decide()
    assert flow.states == {"a": "cancelled"}


def test_a_rescue_arrives(store: Store, connection: Connection) -> None:
    """A job that dies with its worker in its last attempt failed; one that returns did not end."""
    flow = Flowing(
        store,
        connection,
        node("a", options={"max_attempts": 1}),
        node("b", (0, FAILED), options={"max_attempts": 2}),
    )
    for _ in range(2):
        session = open_session(store, connection, timeout=0.02)
        assert len(claim(store, connection, session)) == 1
        rescued(store, connection, session)
        flow.decide()
    assert flow.states == {"a": "failed", "b": "running"}


def test_a_retry_by_hand_before_the_end(store: Store, connection: Connection) -> None:
    """A discarded job that is retried has not ended any more: its node waits for it again."""
    flow = Flowing(store, connection, node("a", jobs=2), node("b", 0))
    one, two = [job.id for job in flow.claim()]
    flow.settle(one, move=Move.DISCARD)
    flow.decide()
    assert connection.run(store.retry([one])) == [one]
    flow.settle(two)
    flow.decide()
    assert flow.states["a"] == "running"
    assert flow.run() == ["a", "b"]
    assert flow.graph.nodes[0].completed == 2


def test_a_retry_by_hand_after_the_end(store: Store, connection: Connection) -> None:
    """The job is left to a retry of its flow, which goes on with it.

    Alone it leaves its node, and nothing of that changes.
    """
    flow = Flowing(store, connection, node("a"), node("b", 0))
    flow.run(a=Move.DISCARD)
    [job] = flow.jobs("a")
    for only in (None, State.DISCARDED):
        assert connection.run(store.retry([job], only=only)) == []
    assert flow.state_of_job(job) is State.DISCARDED
    assert connection.run(store.flows.retry(flow.made.flow)) == [job]
    assert flow.run(a=Move.DISCARD) == ["a"]
    assert connection.run(store.retry([job], alone=True)) == [job]
    [claimed] = flow.claim()
    assert claimed.headers in {None, "{}"}
    flow.settle(job)
    flow.decide()
    assert flow.states == {"a": "failed", "b": "skipped"}
    assert flow.graph.nodes[0].failed == 1


def test_a_retry_by_hand_of_many(store: Store, connection: Connection) -> None:
    """Of all jobs those are left that their flows would run again: others run, in a node or alone."""
    [other] = enqueue(store, connection)
    session = open_session(store, connection)
    settle(
        store, connection, session, settlement(claim(store, connection, session)[0], Move.DISCARD)
    )
    flow = Flowing(store, connection, node("a", jobs=2), node("b"), node("c", 0), node("d", jobs=2))
    one, two, three, four, _ = [job.id for job in flow.claim()]
    flow.settle(one, four, move=Move.DISCARD)
    flow.settle(two, three)
    flow.decide()
    [skipped] = flow.jobs("c")
    assert flow.states == {"a": "failed", "b": "completed", "c": "skipped", "d": "running"}
    again = connection.run(store.flows.runs_again([*flow.made.nodes, NodeId(999)]))
    assert again == {flow.id("a"), flow.id("c")}
    back = connection.run(store.retry([one, two, three, four, skipped, other]))
    assert sorted(back) == [other, two, three, four]
    members = {job.id: node_of(job.headers) for job in flow.claim()}
    assert members == {other: None, two: None, three: None, four: flow.id("d")}
    assert flow.state_of_job(skipped) is State.CANCELLED
    assert connection.run(store.retry([skipped], alone=True)) == [skipped]


def test_a_retry_by_hand_of_what_was_skipped(store: Store, connection: Connection) -> None:
    """The job is left where a retry of its flow reaches it, also through others.

    What was skipped because all went well runs.
    """
    nodes = node("a"), node("b", (0, FAILED)), node("c", 1), node("d", 0), node("e", 3)
    flow = Flowing(store, connection, *nodes)
    flow.run(a=Move.DISCARD)
    [last] = flow.jobs("e")
    assert flow.states["d"] == flow.states["e"] == "skipped"
    assert connection.run(store.retry([last])) == []
    other = Flowing(store, connection, *nodes)
    other.run()
    [waited] = other.jobs("c")
    assert other.states["b"] == other.states["c"] == "skipped"
    assert connection.run(store.retry([waited])) == [waited]
    assert other.state is FlowState.COMPLETED


def test_a_retry_by_hand_of_what_was_cancelled(store: Store, connection: Connection) -> None:
    """A job of a flow that was cancelled is left to the retry of its flow."""
    flow = Flowing(store, connection, node("a"), node("b", 0))
    jobs = [*flow.jobs("a"), *flow.jobs("b")]
    assert connection.run(store.flows.stop(flow.made.flow, "enough"))
    assert flow.state is FlowState.CANCELLED
    assert connection.run(store.retry(jobs)) == []
    assert connection.run(store.flows.retry(flow.made.flow)) == jobs[:1]
    assert flow.run() == ["a", "b"]


def test_a_retry_by_hand_without_the_flow(store: Store, connection: Connection) -> None:
    """A job whose flow is gone runs."""
    flow = Flowing(store, connection, node("a"), keep=0.0)
    flow.run(a=Move.DISCARD)
    [job] = flow.jobs("a")
    assert connection.run(store.retry([job])) == []
    assert connection.run(store.tidy()) is not None
    assert connection.run(store.flows.flow(flow.made.flow)) is None
    assert connection.run(store.retry([job])) == [job]


def test_what_waits_is_not_retried(store: Store, connection: Connection) -> None:
    """A retry by hand makes scheduled jobs available, but not those that wait for others."""
    flow = Flowing(store, connection, node("a"), node("b", 0))
    assert connection.run(store.retry(flow.jobs("b"))) == []
    assert flow.claimed() == ["a"]


def test_retrying_a_flow(store: Store, connection: Connection) -> None:
    """What failed runs again, and whatever waits for it begins anew; other completed work stays."""
    flow = Flowing(
        store, connection, node("a", jobs=3), node("b", 0), node("c", 1), node("d", (0, FAILED))
    )
    one, two, three = [job.id for job in flow.claim()]
    flow.settle(one, three)
    flow.settle(two, move=Move.DISCARD)
    flow.decide()
    assert flow.run() == ["d"]
    assert flow.state.value == "failed"
    assert connection.run(store.flows.retry(flow.made.flow)) == [two]
    flow.decide()
    assert flow.state.value == "running"
    assert flow.states == {"a": "running", "b": "waiting", "c": "waiting", "d": "waiting"}
    assert flow.run() == ["a", "b", "c"]
    assert flow.states["d"] == "skipped"
    assert flow.state is FlowState.COMPLETED
    assert connection.run(store.flows.retry(flow.made.flow)) == []
    assert flow.state is FlowState.COMPLETED


def test_retrying_a_flow_that_fails_again(store: Store, connection: Connection) -> None:
    """Each round is decided for itself."""
    flow = Flowing(store, connection, node("a"), node("b", (0, FINISHED)), node("c", 0))
    assert flow.run(a=Move.DISCARD) == ["a", "b"]
    for _ in range(2):
        connection.run(store.flows.retry(flow.made.flow))
        assert flow.states == {"a": "running", "b": "waiting", "c": "waiting"}
        assert flow.run(a=Move.DISCARD) == ["a", "b"]
        assert flow.states == {"a": "failed", "b": "completed", "c": "skipped"}
        assert flow.state is FlowState.FAILED
    assert flow.graph.flow.round == 2


def test_retrying_what_compensates(store: Store, connection: Connection) -> None:
    """A node that ran because another one failed is pending again.

    It runs if that one fails again, and is skipped if not.
    """
    flow = Flowing(
        store, connection, node("a"), node("b", (0, FAILED), jobs=2), node("c", 1),
        node("d", (1, FINISHED)),
    )  # fmt: skip
    assert flow.run(a=Move.DISCARD) == ["a", "b", "b", "c", "d"]
    assert flow.state.value == "failed"
    assert connection.run(store.flows.retry(flow.made.flow)) == list(flow.jobs("a"))
    flow.decide()
    assert flow.states == {"a": "running", "b": "waiting", "c": "waiting", "d": "waiting"}
    assert {flow.state_of_job(job) for job in flow.jobs("b")} == {State.SCHEDULED}
    assert flow.run(a=Move.DISCARD) == ["a", "b", "b", "c", "d"]
    assert flow.graph.nodes[1].completed == 2
    connection.run(store.flows.retry(flow.made.flow))
    assert flow.run() == ["a", "d"]
    assert flow.states == {"a": "completed", "b": "skipped", "c": "skipped", "d": "completed"}
    assert {flow.state_of_job(job) for job in flow.jobs("b")} == {State.CANCELLED}
    assert flow.state is FlowState.COMPLETED


def test_retrying_what_compensates_and_has_failed(store: Store, connection: Connection) -> None:
    """It awaits the retried node, with its completed jobs; alone it runs at once, without them."""
    flow = Flowing(store, connection, node("a"), node("b", (0, FAILED), jobs=2))
    [job] = flow.claim()
    flow.settle(job.id, move=Move.DISCARD)
    flow.decide()
    one, two = [job.id for job in flow.claim()]
    flow.settle(one)
    flow.settle(two, move=Move.DISCARD)
    flow.decide()
    assert flow.states == {"a": "failed", "b": "failed"}
    connection.run(store.flows.retry(flow.made.flow))
    assert flow.run(a=Move.DISCARD) == ["a", "b", "b"]
    flow = Flowing(store, connection, node("a", jobs=2))
    one, two = [job.id for job in flow.claim()]
    flow.settle(one)
    flow.settle(two, move=Move.DISCARD)
    flow.decide()
    assert connection.run(store.flows.retry(flow.made.flow)) == [two]


def test_what_begins_anew_forgets(store: Store, connection: Connection) -> None:
    """It remembers no step of the round before and gives no result; what is retried alone does."""
    flow = Flowing(store, connection, node("a"), node("b", (0, FINISHED), jobs=2, wanted=True))
    [job] = flow.claim()
    remember(flow, job.id, "charge")
    flow.settle(job.id, move=Move.DISCARD)
    flow.decide()
    one, two = flow.claim()
    remember(flow, one.id, "refund")
    flow.settle(one.id, move=Move.DISCARD)
    flow.settle(two.id, given="7")
    flow.decide()
    assert connection.run(store.flows.count_results(flow.id("b"))) == 1
    connection.run(store.flows.retry(flow.made.flow))
    flow.decide()
    assert connection.run(store.flows.count_results(flow.id("b"))) == 0
    [again] = flow.claim()
    assert remembered(flow, again.id) == ["charge"]
    flow.settle(again.id)
    flow.decide()
    for job in flow.claim():
        assert remembered(flow, job.id) == []


def test_retrying_what_is_gone(store: Store, connection: Connection) -> None:
    """A job that was deleted counts as it did: its node ends as before."""
    flow = Flowing(store, connection, node("a"), node("b", (0, FAILED)), node("c", 1))
    assert flow.run(a=Move.DISCARD) == ["a", "b", "c"]
    assert connection.run(store.delete(flow.jobs("b"))) == list(flow.jobs("b"))
    connection.run(store.flows.retry(flow.made.flow))
    flow.decide()
    assert flow.states == {"a": "running", "b": "completed", "c": "running"}


@pytest.mark.parametrize("before", [True, False])
def test_a_deadline_of_a_flow_that_is_retried(
    store: Store, connection: Connection, *, before: bool
) -> None:
    """It holds in the next round, unless it has passed."""
    flow = Flowing(store, connection, node("a"), deadline=3600.0 if before else 0.0)
    if before:
        flow.run(a=Move.DISCARD)
    else:
        connection.run(store.flows.overlook())
    assert flow.state.ended
    connection.run(store.flows.retry(flow.made.flow))
    assert flow.graph.flow.stopping is None
    kept = connection.run(_deadlines(store))
    assert kept == ([flow.made.flow] if before else [])


def remember(flow: Flowing, job: JobId, name: str) -> None:
    """A job that is held writes down a step."""
    session, claimed = flow.held[job]
    holder = Holder(session, claimed.lease, job)
    assert flow.connection.run(flow.store.memory.remember(holder, name, "1"))


def remembered(flow: Flowing, job: JobId) -> list[str]:
    """The steps that a job remembers."""
    found = flow.connection.run(flow.store.memory.load([job]))
    return [row.name for row in found.get(job, [])]


@operation(Begin.NOTHING)
def _deadlines(store: Store) -> Steps[list[int]]:
    """The flows that are to be stopped, now or later."""
    table = "rota.flow_stop" if store.name == "postgres" else "rota_flow_stop"
    rows = yield Statement("stops", f"SELECT flow FROM {table}")()
    return [flow for (flow,) in rows]


def test_retrying_a_flow_that_was_stopped(store: Store, connection: Connection) -> None:
    """It goes on where it was."""
    flow = Flowing(store, connection, node("a"), node("b", 0, jobs=2), node("c", 1))
    [job] = flow.claim()
    flow.settle(job.id)
    flow.decide()
    assert connection.run(store.flows.stop(flow.made.flow, "enough"))
    assert flow.states == {"a": "completed", "b": "cancelled", "c": "cancelled"}
    assert len(connection.run(store.flows.retry(flow.made.flow))) == 2
    assert flow.run() == ["b", "b", "c"]
    assert flow.state is FlowState.COMPLETED


def test_stopping_a_flow(store: Store, connection: Connection) -> None:
    """Waiting jobs are cancelled, running ones asked to stop, and nothing begins, whoever ends."""
    flow = Flowing(store, connection, node("a", jobs=2), node("b", (0, FINISHED)))
    one, two = [job.id for job in flow.claim()]
    assert connection.run(store.flows.stop(flow.made.flow, "enough"))
    assert flow.graph.flow.stopping == "enough"
    flow.settle(one)
    flow.settle(two, move=Move.CANCEL)
    flow.decide()
    assert flow.states == {"a": "cancelled", "b": "cancelled"}
    record = flow.graph.flow
    assert (record.state, record.reason, record.stopping) == (FlowState.CANCELLED, "enough", None)
    assert not connection.run(store.flows.stop(flow.made.flow, "again"))


def test_a_deadline(store: Store, connection: Connection) -> None:
    """A flow past it is cancelled by whoever looks after the database."""
    flow = Flowing(store, connection, node("a"), node("b", 0), deadline=0.0)
    Flowing(store, connection, node("a"), deadline=3600.0)
    assert connection.run(store.look(["default"])).undecided
    assert connection.run(store.flows.overlook())
    assert flow.state is FlowState.CANCELLED
    assert flow.graph.flow.reason == "its deadline has passed"
    # The second look finds what the first one wrote, and the third nothing.
    connection.run(store.flows.overlook())
    assert not connection.run(store.flows.overlook())
    assert not connection.run(store.look(["default"])).undecided


def test_failing_fast(store: Store, connection: Connection) -> None:
    """The first failure of such a map cancels its other jobs; running ones are asked to stop."""
    flow = Flowing(store, connection, node("a", jobs=5, fail_fast=True), node("b", (0, FINISHED)))
    one, two = [job.id for job in flow.claim(2)]
    flow.settle(one, move=Move.DISCARD)
    flow.decide()
    [a, _] = flow.graph.nodes
    assert (a.failed, a.cancelled, a.state) == (1, 3, NodeState.RUNNING)
    assert connection.run(store.get([two]))[0].cancel_requested
    flow.settle(two, move=Move.CANCEL)
    flow.decide()
    assert flow.states == {"a": "failed", "b": "running"}


def test_a_graft_is_waited_for(store: Store, connection: Connection) -> None:
    """What a job adds is stored with its completion alone, and what waits for the job waits for it."""
    flow = Flowing(store, connection, node("a", jobs=2), node("b", 0))
    one, two = [job.id for job in flow.claim()]
    graft = Graft(flow.id("a"), [node("x"), node("y", 0, jobs=2)])
    flow.settle(one, move=Move.DISCARD, graft=graft)
    connection.run(store.retry([one]))
    assert len(flow.graph.nodes) == 2
    [again] = flow.claim()
    flow.settle(two, graft=graft)
    flow.settle(again.id)
    flow.decide()
    assert flow.states == {"a": "completed", "b": "waiting", "x": "running", "y": "waiting"}
    assert len(flow.graph.edges) == 4
    names = ["a", "b", "x", "y"]
    flow.names, flow.made = names, flow.made._replace(nodes=[each.id for each in flow.graph.nodes])
    assert flow.run() == ["x", "y", "y", "b"]
    assert flow.state is FlowState.COMPLETED


def test_results_are_given(store: Store, connection: Connection) -> None:
    """Results for others are kept in job order, whatever the number and retention of the jobs."""
    flow = Flowing(store, connection, node("a", jobs=3, wanted=True))
    jobs = [job.id for job in flow.claim()]
    for job in reversed(jobs):
        flow.settle(job, given=f'"{job}"', keep=0.0)
    flows = store.flows
    assert connection.run(flows.count_results(flow.id("a"))) == 3
    wanted = [(job, f'"{job}"') for job in jobs]
    assert connection.run(flows.results(flow.id("a"), 2)) == wanted[:2]
    assert connection.run(flows.results(flow.id("a"), 2, jobs[1])) == wanted[2:]


def test_a_delay_counts_from_the_release(store: Store, connection: Connection) -> None:
    """The jobs of a node with a delay wait for it when the node has been released."""
    options = {"delay": 3600.0}
    flow = Flowing(store, connection, node("a"), node("b", 0, options=options))
    flow.run()
    [job] = connection.run(store.get(flow.jobs("b")))
    assert flow.states["b"] == "running"
    assert job.scheduled_at is not None
    assert 3500 < (job.scheduled_at - job.enqueued_at).total_seconds() < 3700


def test_counts_stay_right(store: Store, connection: Connection) -> None:
    """The numbers of jobs of a queue are those that its jobs have."""
    flow = Flowing(
        store, connection, node("a", jobs=3), node("b", 0, jobs=4), node("c", (0, FAILED))
    )

    def counts() -> dict[str, int]:
        connection.run(store.squeeze())
        [queue] = connection.run(store.queues())
        return {state.value: jobs for state, jobs in queue.counts.items() if jobs}

    assert counts() == {"available": 3, "scheduled": 5}
    for job in flow.claim():
        flow.settle(job.id)
    flow.decide()
    assert counts() == {"available": 4, "cancelled": 1, "completed": 3}


def test_listing_flows(store: Store, connection: Connection) -> None:
    """The newest first, by name, by state, in pages."""
    one, two, three = (Flowing(store, connection, node("a")) for _ in range(3))
    [job] = one.claim(1)
    one.settle(job.id)
    one.decide()
    found = connection.run(store.flows.flows())
    assert [each.id for each in found] == [three.made.flow, two.made.flow, one.made.flow]
    ids = [each.id for each in connection.run(store.flows.flows(1, before=three.made.flow))]
    assert ids == [two.made.flow]
    assert connection.run(store.flows.flows(name="other")) == []
    assert len(connection.run(store.flows.flows(name="shop.order"))) == 3
    [ended] = connection.run(store.flows.flows(state=FlowState.COMPLETED))
    assert (ended.id, ended.nodes) == (one.made.flow, 1)


def test_nodes_come_in_pages(store: Store, connection: Connection) -> None:
    """A large flow is read piece by piece."""
    flow = Flowing(store, connection, *(node(f"n{number}") for number in range(5)))
    first = connection.run(store.flows.flow(flow.made.flow, limit=3))
    assert first is not None
    assert ([each.name for each in first.nodes], first.more) == (["n0", "n1", "n2"], True)
    rest = connection.run(store.flows.flow(flow.made.flow, limit=3, after=first.nodes[-1].id))
    assert rest is not None
    assert ([each.name for each in rest.nodes], rest.more) == (["n3", "n4"], False)


def test_jobs_of_no_node(store: Store, connection: Connection) -> None:
    """A job whose flow is gone, and one that has none, end like any other."""
    session, [job] = running(store, connection, headers='{"rota.node":"987654"}')
    ended = settlement(job, Move.COMPLETE, node=987654)
    assert settle(store, connection, session, ended) == []
    decided = connection.run(store.flows.decide([NodeId(987654)]))
    assert (decided.ended, decided.released) == ([], [])


def test_arrivals_are_added_up(store: Store, connection: Connection, monkeypatch: Any) -> None:
    """Where a node has many rows of them, a look leaves one, and counts nothing twice."""
    monkeypatch.setattr("rota.store.deciding.MANY", 2)
    flow = Flowing(store, connection, node("a", jobs=9), node("b", 0))
    for number, job in enumerate(flow.claim()):
        flow.settle(job.id, move=Move.DISCARD if number == 4 else Move.COMPLETE)
        flow.decide()
    assert (flow.graph.nodes[0].completed, flow.graph.nodes[0].failed) == (8, 1)
    assert flow.states == {"a": "failed", "b": "skipped"}


def test_flows_go_when_their_retention_is_over(store: Store, connection: Connection) -> None:
    """With all that is known of them; those that run stay, and so do those that were retried."""
    gone = Flowing(store, connection, node("a", wanted=True), node("b", 0), keep=0.0)
    running = Flowing(store, connection, node("a"), keep=0.0)
    again = Flowing(store, connection, node("a"), keep=0.0)
    kept = Flowing(store, connection, node("a"))
    for job in gone.claim():
        member = node_of(job.headers)
        if member in running.made.nodes:
            continue
        move = Move.DISCARD if member in again.made.nodes else Move.COMPLETE
        gone.settle(job.id, move=move, given="1" if member == gone.id("a") else None)
    for flow in (gone, again, kept):
        flow.decide()
    for job in gone.claim():
        gone.settle(job.id)
    gone.decide()
    connection.run(store.flows.retry(again.made.flow))
    assert connection.run(store.tidy()) is not None
    assert connection.run(store.flows.flow(gone.made.flow)) is None
    assert connection.run(store.flows.results(gone.id("a"), 10)) == []
    assert (running.state, again.state) == (FlowState.RUNNING, FlowState.RUNNING)
    assert kept.state is FlowState.COMPLETED


def test_jobs_of_flows_stay_in_their_database(store: Store, connection: Connection) -> None:
    """A transfer to another shard takes others alone."""
    flow = Flowing(store, connection, node("a"), node("b", 0))
    jobs = [*flow.jobs("a"), *flow.jobs("b"), *enqueue(store, connection)]
    transfer = Transfer("token", "acme", "eu", "us")
    taken = connection.run(store.transfers.take(jobs, transfer, lambda _: True))
    assert taken is not None
    assert [job.id for job in taken[1].jobs] == jobs[2:]
