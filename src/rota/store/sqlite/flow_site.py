"""Where flows are stored in a file: the statements of `rota.store.flow_making`."""

from collections.abc import Sequence

from rota.model.enqueued import Enqueued
from rota.model.flow import FlowId, FlowOrder
from rota.model.headers import NodeId
from rota.model.job import Order
from rota.store.flow_making import DEADLINE, EdgeRow, NodeRow
from rota.store.membership import Arrivals
from rota.store.operation import Steps
from rota.store.sqlite.enqueue import append
from rota.store.sqlite.statements import json_list, sql

FLOW_ADD = sql("flows/flow_add")
STOP_ADD = sql("flows/stop_add")
NODES_LAST = sql("flows/nodes_last")
NODES_ADD = sql("flows/nodes_add")
EDGES_ADD = sql("flows/edges_add")
HOME = sql("flows/home")
FOLLOWERS = sql("flows/followers")
ARRIVE = sql("flows/arrive")
BEGIN_CHANGE = sql("flows/begin_change")
ATTEMPT_BEGIN = sql("flows/attempt_begin")
ATTEMPT_KEEP = sql("flows/attempt_keep")
ATTEMPT_UNDO = sql("flows/attempt_undo")
FACTS_ADD = sql("flows/facts_add")


class SqliteSite:
    """See `rota.store.flow_making.Site`."""

    def add_flow(self, order: FlowOrder) -> Steps[FlowId]:
        """Store a flow without nodes."""
        [(flow, deadline)] = yield FLOW_ADD(
            name=order.name, keep=order.keep, deadline=order.deadline
        )
        if deadline is not None:
            yield STOP_ADD(flow=flow, since=deadline, reason=DEADLINE)
        return FlowId(flow)

    def take(self, count: int) -> Steps[list[NodeId]]:
        """Numbers for so many nodes: the next ones, since nobody else can write."""
        [(last,)] = yield NODES_LAST()
        return [NodeId(last + number) for number in range(1, count + 1)]

    def append(self, order: Order) -> Steps[Enqueued]:
        """Store jobs."""
        return append(order)

    def add_nodes(
        self, flow: FlowId, nodes: Sequence[NodeRow], roots: Sequence[NodeId]
    ) -> Steps[None]:
        """Store nodes, of which the roots are released."""
        rows = [node._replace(at=node.at and node.at.timestamp()) for node in nodes]  # type: ignore[arg-type]
        yield NODES_ADD(flow=flow, nodes=json_list(rows))
        yield FACTS_ADD(facts=json_list([(root, 0, "released", None, None) for root in roots]))

    def add_edges(self, edges: Sequence[EdgeRow]) -> Steps[None]:
        """Store edges."""
        yield EDGES_ADD(edges=json_list(edges))

    def arrive(self, arrivals: Arrivals) -> Steps[None]:
        """Say that jobs of nodes have ended."""
        yield ARRIVE(came=json_list(list(zip(*arrivals, strict=True))))

    def home(self, node: NodeId) -> Steps[FlowId | None]:
        """The flow of a node."""
        rows = yield HOME(node=node)
        return FlowId(rows[0][0]) if rows else None

    def followers(self, node: NodeId) -> Steps[list[tuple[NodeId, str]]]:
        """What waits for a node, and for what."""
        return [(NodeId(waiting), condition) for waiting, condition in (yield FOLLOWERS(node=node))]

    def attempt(self) -> Steps[None]:
        """From here on all can be taken back."""
        # A driver that begins transactions does so with a change: else the end of the savepoint
        # would be a commit.
        yield BEGIN_CHANGE()
        yield ATTEMPT_BEGIN()

    def take_back(self) -> Steps[None]:
        """Take back what was done since the attempt."""
        yield ATTEMPT_UNDO()
        yield ATTEMPT_KEEP()

    def keep(self) -> Steps[None]:
        """Keep what was done since the attempt."""
        yield ATTEMPT_KEEP()


SITE = SqliteSite()
