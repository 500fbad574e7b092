"""Faults that workflows of other queues are known for, each as a flow that has not got it."""

import pytest

from rota.model.flow import Condition, FlowState, Graft
from rota.model.headers import node_of
from rota.model.job import JobId
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import claim, enqueue, open_session, rescued, settle
from tests.store.flowing import Flowing, node

FINISHED = Condition.FINISHED


def test_a_job_of_a_map_that_runs_twice(store: Store, connection: Connection) -> None:
    """What waits begins once, with each result once: neither lost, nor early, nor counted twice."""
    flow = Flowing(store, connection, node("a", jobs=2, wanted=True), node("b", 0))
    session = open_session(store, connection, timeout=0.02)
    first, second = claim(store, connection, session)
    flow.held |= {job.id: (session, job) for job in (first, second)}
    flow.settle(first.id, given='"first"')
    late = flow.settling(second.id, given='"late"')
    rescued(store, connection, session)
    [again] = flow.claim()
    assert settle(store, connection, session, late) == [second.id]
    flow.decide()
    assert flow.states == {"a": "running", "b": "waiting"}
    flow.settle(again.id, given='"again"')
    flow.decide()
    assert settle(store, connection, session, late) == [second.id]
    assert [text for _, text in connection.run(store.flows.results(flow.id("a"), 10))] == [
        '"first"',
        '"again"',
    ]
    assert flow.run() == ["b"]
    assert flow.state is FlowState.COMPLETED


def test_nothing_goes_on_after_a_failure(store: Store, connection: Connection) -> None:
    """No job looks again and again whether it may begin: a failed flow costs nothing more."""
    flow = Flowing(store, connection, node("a", jobs=10), node("b", 0), node("c", 1))
    flow.run(a=Move.DISCARD)
    while connection.run(store.flows.overlook()):
        pass
    assert not connection.run(store.look(["default"])).undecided
    assert connection.run(store.due()) is None
    assert flow.state is FlowState.FAILED
    assert claim(store, connection, open_session(store, connection)) == []
    [queue] = connection.run(store.queues())
    assert {state: jobs for state, jobs in queue.counts.items() if jobs} == {
        State.DISCARDED: 10,
        State.CANCELLED: 2,
    }


def test_flows_in_flows_do_not_grow(store: Store, connection: Connection) -> None:
    """Maps behind maps cost only their own jobs and edges, and no job carries the others along."""
    deep, wide = 8, 10
    first = [node("n0", jobs=wide)]
    flow = Flowing(
        store, connection, *first, *(node(f"n{n}", n - 1, jobs=wide) for n in range(1, deep))
    )
    jobs = [job for jobs in flow.made.jobs for job in jobs]
    assert len(jobs) == deep * wide
    assert len(flow.graph.edges) == deep - 1
    records = connection.run(store.get(jobs))
    assert sum(len(one.args) + len(str(one.headers)) for one in records) < 60 * len(jobs)
    assert flow.run() == [f"n{n}" for n in range(deep) for _ in range(wide)]


def test_what_follows_does_so_once(store: Store, connection: Connection) -> None:
    """After a retry by hand what waits for success begins, and only once.

    What ran after any end runs once in each round.
    """
    flow = Flowing(store, connection, node("a", jobs=3), node("b", 0), node("c", (0, FINISHED)))
    assert flow.run(a=Move.DISCARD) == ["a", "a", "a", "c"]
    connection.run(store.flows.retry(flow.made.flow))
    assert flow.run() == ["a", "a", "a", "b", "c"]
    for _ in range(3):
        flow.decide()
        connection.run(store.flows.overlook())
    assert flow.claim() == []


def test_what_follows_is_not_late(store: Store, connection: Connection) -> None:
    """It is in its own queue, with its own priority: a flood of other jobs does not come before it."""
    flow = Flowing(
        store,
        connection,
        node("a"),
        node("b", 0, options={"priority": -5}),
        node("c", 0, options={"queue": "urgent"}),
    )
    [job] = flow.claim()
    enqueue(store, connection, 100)
    flow.settle(job.id)
    flow.decide()
    session = open_session(store, connection)
    [first] = claim(store, connection, session, 1)
    assert node_of(first.headers) == flow.id("b")
    [urgent] = connection.run(store.claim(session, ("urgent",), 10))
    assert node_of(urgent.headers) == flow.id("c")


def test_a_node_that_can_never_end(store: Store, connection: Connection) -> None:
    """Whatever it loses (a job is cancelled, deleted, cleared), a node ends with what is left."""
    flow = Flowing(store, connection, node("a", jobs=4), node("b", (0, FINISHED)))
    one, two, three, four = flow.jobs("a")
    connection.run(store.delete([one]))
    connection.run(store.cancel([two]))
    connection.run(store.clear("default", State.AVAILABLE, after=JobId(0), until=three, limit=9))
    flow.decide()
    assert flow.states["a"] == "running"
    [job] = flow.claim()
    assert job.id == four
    flow.settle(four)
    flow.decide()
    assert flow.run() == ["b"]


@pytest.mark.parametrize("jobs", [0, 2])
def test_what_a_job_adds_ends(store: Store, connection: Connection, jobs: int) -> None:
    """What waits for the job goes on after what the job has added, also where that has no jobs."""
    flow = Flowing(store, connection, node("a"), node("b", 0))
    [job] = flow.claim()
    flow.settle(job.id, graft=Graft(flow.id("a"), [node("x", jobs=jobs), node("y", 0, jobs=0)]))
    flow.decide("a")
    connection.run(store.flows.overlook())
    for one in flow.claim() if jobs else ():
        flow.settle(one.id)
        member = node_of(one.headers)
        assert member is not None
        connection.run(store.flows.decide([member]))
    assert flow.states == {"a": "completed", "b": "running", "x": "completed", "y": "completed"}
