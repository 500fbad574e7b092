"""The operations on flows, as all backends have them.

What ends a job of a node says so in its transaction. Whether the node has ended by that, and what
follows, is decided afterwards: `decide` looks in a new snapshot and writes under keys, so that any
number of processes may decide the same.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from rota.model.flow import (
    Decided,
    FlowGraph,
    FlowId,
    FlowOrder,
    FlowRecord,
    FlowState,
    Made,
    Membership,
    NodeRecord,
)
from rota.model.headers import NodeId
from rota.model.job import JobId
from rota.store.operation import Operation


class Flows(Protocol):
    """What a store does with flows."""

    def create(self, order: FlowOrder) -> Operation[Made]:
        """Store a flow with all its jobs; those of nodes that wait for nothing are available.

        Raises:
            JobExists: A unique key is taken, and its rule says that this is an error.
        """
        ...

    def decide(self, nodes: Sequence[NodeId]) -> Operation[Decided]:
        """Look which of these nodes have ended, and do what follows.

        This is done each time anew, and by whoever looks.
        """
        ...

    def overlook(self) -> Operation[bool]:
        """Decide what was left undecided, and go on stopping flows; whether there was anything."""
        ...

    def flows(
        self,
        limit: int = 50,
        *,
        before: FlowId | None = None,
        name: str | None = None,
        state: FlowState | None = None,
    ) -> Operation[list[FlowRecord]]:
        """The newest flows first: with smaller ids than `before`, of a name, and in a state.

        With a state it looks at 10,000 flows at the most.
        """
        ...

    def flow(
        self, flow: FlowId, *, limit: int = 1000, after: NodeId | None = None
    ) -> Operation[FlowGraph | None]:
        """A flow, up to `limit` nodes behind `after`, and up to ten times as many edges to them."""
        ...

    def node(self, flow: FlowId, name: str) -> Operation[NodeRecord | None]:
        """The node of that name."""
        ...

    def memberships(self, nodes: Sequence[NodeId]) -> Operation[dict[NodeId, Membership]]:
        """To which flows these nodes belong, and their names; missing nodes are left out."""
        ...

    def runs_again(self, nodes: Sequence[NodeId]) -> Operation[set[NodeId]]:
        """Nodes whose failed and cancelled jobs `Store.retry` leaves for `retry` to run again."""
        ...

    def members(
        self, node: NodeId, limit: int, after: JobId | None = None
    ) -> Operation[list[JobId]]:
        """The next jobs of a node that may not have ended, by id."""
        ...

    def results(
        self, node: NodeId, limit: int, after: JobId | None = None
    ) -> Operation[list[tuple[JobId, str]]]:
        """The next results of a node's jobs, as JSON texts, in the order of the jobs' ids."""
        ...

    def count_results(self, node: NodeId) -> Operation[int]:
        """How many results of a node's jobs there are."""
        ...

    def call_off(self, flow: FlowId, reason: str) -> Operation[bool]:
        """Let whatever comes to a flow first, `stop` or a worker, cancel it. False as of `stop`."""
        ...

    def stop(
        self, flow: FlowId, reason: str, keep: Mapping[str, float] | None = None
    ) -> Operation[bool]:
        """Cancel a flow: begin no more nodes, cancel waiting jobs, and ask running ones to stop.

        False where it has ended, or there is none. `keep` is as of `Store.cancel`. What this does
        not come to, workers do.
        """
        ...

    def retry(self, flow: FlowId) -> Operation[list[JobId]]:
        """Retry the jobs of a flow that have failed or were cancelled, in another round.

        Whatever has ended that waits for such a job's node begins anew, and waits again with all
        its jobs, as far as these are still there: a node may be skipped that has run in the round
        before. Other completed jobs stay as they are. Returns the jobs that are available now.
        """
        ...
