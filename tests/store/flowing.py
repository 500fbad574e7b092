"""Flows for the tests of the stores: letters name nodes, and workers are made as needed."""

from collections.abc import Sequence
from typing import Any

from rota import Unique
from rota.model.flow import (
    Condition,
    Edge,
    FlowGraph,
    FlowOrder,
    FlowState,
    Made,
    NodeOrder,
    NodeState,
)
from rota.model.headers import NodeId, node_of
from rota.model.job import ClaimedJob, JobId, Keys, Order, SessionId
from rota.model.settlement import Settlement
from rota.model.states import Move, State
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.store.factories import claim, open_session, settlement, spec_of


def node(
    name: str,
    *after: int | tuple[int, Condition],
    jobs: int = 1,
    options: dict[str, Any] | None = None,
    **rest: Any,
) -> NodeOrder:
    """A node of so many jobs that waits for these places in the flow."""
    edges = [one if isinstance(one, tuple) else (one, Condition.COMPLETED) for one in after]
    args = [f'{{"number":{number}}}' for number in range(jobs)]
    spec = spec_of(**(options or {}))
    return NodeOrder(name, Order(spec, args), tuple(Edge(*edge) for edge in edges), **rest)


class Flowing:
    """A flow in a store, and what workers do with it."""

    def __init__(
        self,
        store: Store,
        connection: Connection,
        *nodes: NodeOrder,
        keep: float = 3600.0,
        deadline: float | None = None,
    ) -> None:
        self.store = store
        self.connection = connection
        self.made: Made = connection.run(
            store.flows.create(FlowOrder("shop.order", nodes, keep, deadline))
        )
        self.names = [each.name for each in nodes]
        self.held: dict[JobId, tuple[SessionId, ClaimedJob]] = {}

    def id(self, name: str) -> NodeId:
        """The id of a node."""
        return self.made.nodes[self.names.index(name)]

    def jobs(self, name: str) -> Sequence[JobId]:
        """The jobs of a node, as it was built."""
        return self.made.jobs[self.names.index(name)]

    @property
    def graph(self) -> FlowGraph:
        """The flow as it is."""
        found = self.connection.run(self.store.flows.flow(self.made.flow))
        assert found is not None
        return found

    @property
    def states(self) -> dict[str, str]:
        """The states of the nodes, by name."""
        return {each.name: each.state.value for each in self.graph.nodes}

    @property
    def state(self) -> FlowState:
        """The state of the flow."""
        return self.graph.flow.state

    def state_of(self, name: str) -> NodeState:
        """The state of a node."""
        [found] = [each for each in self.graph.nodes if each.name == name]
        return found.state

    def claim(self, limit: int = 1000) -> list[ClaimedJob]:
        """What a new worker gets."""
        session = open_session(self.store, self.connection)
        jobs = claim(self.store, self.connection, session, limit)
        self.held |= {job.id: (session, job) for job in jobs}
        return jobs

    def claimed(self) -> list[str]:
        """The names of the nodes whose jobs a new worker gets."""
        names = {NodeId(each.id): each.name for each in self.graph.nodes}
        return [names[member] for job in self.claim() if (member := node_of(job.headers))]

    def settling(self, job: JobId, move: Move = Move.COMPLETE, **rest: Any) -> Settlement:
        """The settlement of a job that is held."""
        _, claimed = self.held[job]
        return settlement(claimed, move, node=node_of(claimed.headers), **rest)

    def settle(
        self,
        *jobs: JobId,
        move: Move = Move.COMPLETE,
        connection: Connection | None = None,
        **rest: Any,
    ) -> None:
        """Settle jobs that are held, of one worker."""
        session = self.held[jobs[0]][0]
        settlements = [self.settling(job, move, **rest) for job in jobs]
        refused = (connection or self.connection).run(self.store.settle(session, settlements))
        assert refused == []

    def decide(self, *names: str) -> None:
        """Look at these nodes, or at all."""
        nodes = [self.id(name) for name in names] or list(self.made.nodes)
        self.connection.run(self.store.flows.decide(nodes))

    def run(self, move: Move = Move.COMPLETE, **moves: Move) -> list[str]:
        """Run all jobs there are, in turn; the nodes to which they belonged."""
        ran = []
        while jobs := self.claim():
            for job in jobs:
                member = node_of(job.headers)
                assert member is not None
                name = self.names[self.made.nodes.index(member)]
                ran.append(name)
                self.settle(job.id, move=moves.get(name, move))
                self.decide(name)
        return ran

    def state_of_job(self, job: JobId) -> State:
        """The state of a job."""
        [found] = self.connection.run(self.store.get([job]))
        return found.state


def unique_node(name: str, *after: int, keys: Sequence[str], **options: Any) -> NodeOrder:
    """A node of a job for each unique key; one that is taken is skipped."""
    made = node(name, *after, jobs=len(keys), options={"unique": Unique(), **options})
    return made._replace(order=made.order._replace(keys=Keys(unique=keys)))
