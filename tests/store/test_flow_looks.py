"""What commands, the dashboard and the doctor look up of flows."""

from typing import Any

import pytest

from rota.model.flow import FlowId, Membership
from rota.model.headers import NodeId
from rota.model.states import Move
from rota.store.connections import Connection
from rota.store.health import Facts, NodeFacts
from rota.store.protocol import Store
from tests.store.flowing import Flowing, node


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes are looked into as soon as they are open."""
    for backend in ("postgres", "sqlite"):
        monkeypatch.setattr(f"rota.store.{backend}.health.OPEN", -1.0)
        monkeypatch.setattr(f"rota.store.{backend}.health.STOPPING", -1.0)


def work_of(store: Store, connection: Connection) -> Any:
    """The facts about work."""
    facts: Facts = connection.run(store.health())
    assert not facts.unseen
    return facts.work


def open_nodes(store: Store, connection: Connection) -> dict[str, NodeFacts]:
    """The nodes that are open, by name."""
    return {one.node: one for one in work_of(store, connection).nodes}


def test_where_nodes_belong(store: Store, connection: Connection) -> None:
    """Each by its id; those that are not there are left out."""
    flowing = Flowing(store, connection, node("a"), node("b", 0))
    found = connection.run(store.flows.memberships([flowing.id("b"), NodeId(4711)]))
    assert found == {flowing.id("b"): Membership(flowing.made.flow, "shop.order", "b")}
    assert connection.run(store.flows.memberships([])) == {}


def test_calling_a_flow_off(store: Store, connection: Connection) -> None:
    """It is only noted; a worker does it, and what has ended or is not there is not called off."""
    flowing = Flowing(store, connection, node("a"), node("b", 0))
    assert connection.run(store.flows.call_off(flowing.made.flow, "by Ada"))
    assert flowing.states == {"a": "running", "b": "waiting"}
    assert flowing.graph.flow.stopping == "by Ada"
    assert connection.run(store.flows.overlook())
    assert flowing.states == {"a": "cancelled", "b": "cancelled"}
    assert not connection.run(store.flows.call_off(flowing.made.flow, "again"))
    assert not connection.run(store.flows.call_off(FlowId(4711), "none"))


@pytest.mark.usefixtures("at_once")
def test_open_nodes(store: Store, connection: Connection) -> None:
    """Those that were released and have not ended, with how many of their jobs are left."""
    flowing = Flowing(store, connection, node("a", jobs=3, many=True), node("b", 0), node("c"))
    flowing.claim()
    flowing.settle(flowing.jobs("a")[0])
    found = open_nodes(store, connection)
    assert {name: one.left for name, one in found.items()} == {"a": 2, "c": 1}
    one = found["a"]
    assert (one.flow, one.flow_name, one.task, one.queue) == (
        flowing.made.flow, "shop.order", "shop.send", "default",
    )  # fmt: skip
    assert 0 <= one.seconds < 60
    assert not one.passed_by
    assert not one.gone
    flowing.settle(*flowing.jobs("a")[1:], *flowing.jobs("c"))
    flowing.decide()
    assert set(open_nodes(store, connection)) == {"b"}
    flowing.run()
    assert open_nodes(store, connection) == {}


def test_only_old_ones(store: Store, connection: Connection) -> None:
    """What was just released is not looked into."""
    Flowing(store, connection, node("a"))
    assert open_nodes(store, connection) == {}


@pytest.mark.usefixtures("at_once")
def test_jobs_that_said_nothing(store: Store, connection: Connection) -> None:
    """A job that has ended without a word, as workers that know nothing of flows end it, is gone."""
    flowing = Flowing(store, connection, node("a"), node("b", 0))
    [job] = flowing.claim()
    assert not open_nodes(store, connection)["a"].gone
    session, _ = flowing.held[job.id]
    silent = flowing.settling(job.id)._replace(node=None)
    assert connection.run(store.settle(session, [silent])) == []
    assert open_nodes(store, connection)["a"].gone


@pytest.mark.usefixtures("at_once")
def test_flows_that_do_not_stop(store: Store, connection: Connection) -> None:
    """Those whose jobs run on are named, until they end."""
    flowing = Flowing(store, connection, node("a"))
    flowing.claim()
    assert work_of(store, connection).stops == ()
    connection.run(store.flows.stop(flowing.made.flow, "by hand"))
    [stop] = work_of(store, connection).stops
    assert (stop.flow, stop.name) == (flowing.made.flow, "shop.order")
    assert 0 <= stop.seconds < 60
    flowing.settle(*flowing.jobs("a"), move=Move.CANCEL)
    flowing.decide()
    assert work_of(store, connection).stops == ()
