"""Deciding which nodes have ended, and what follows: one procedure, over each backend's statements.

Each statement stands by itself: it looks in a snapshot of its own, after what it looks at was
committed, and what it inserts has a key. So whoever dies between two of them leaves nothing half
done, and whoever comes later begins again.

Known weakness: a chain of skipped nodes takes a statement for each link.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from rota.model.flow import Decided, FlowId
from rota.model.headers import NodeId
from rota.model.job import JobId
from rota.store.operation import Steps

MANY = 1000
"""Rows of arrivals at a node from which on they are added up."""

PAGE = 1000
"""Jobs that are cancelled together."""


class Looked(NamedTuple):
    """What is known of a node: whether it has ended, and its flow's round if it has jobs to cancel.

    `rows` is how many there are of its arrivals.
    """

    node: NodeId
    flow: FlowId
    ended: bool
    left: int | None
    rows: int = 0


class Moved(NamedTuple):
    """A node that was released, or skipped."""

    node: NodeId
    flow: FlowId
    released: bool
    expects: int
    queue: str


class Ground(Protocol):
    """A backend's statements."""

    def end(self, nodes: Sequence[NodeId]) -> Steps[list[Looked]]:
        """End those of which all jobs have ended; what there is to say of each."""
        ...

    def release(self, nodes: Sequence[NodeId]) -> Steps[list[Moved]]:
        """Release or skip what waits for these, which have ended."""
        ...

    def squeeze(self, node: NodeId) -> Steps[None]:
        """Add the arrivals at a node up in one row."""
        ...

    def wake(self, queues: Sequence[str]) -> Steps[None]:
        """Wake workers of these queues."""
        ...

    def end_flows(self, flows: Sequence[FlowId]) -> Steps[None]:
        """End those of which all nodes have ended."""
        ...

    def members(self, node: NodeId, after: JobId, limit: int) -> Steps[list[JobId]]:
        """The next jobs of a node that may not have ended."""
        ...

    def cancel(self, jobs: Sequence[JobId], flow: FlowId, round_: int) -> Steps[bool]:
        """Cancel these jobs, as far as they have not started, and ask others to stop.

        Not, and false, where the flow was retried since that was decided in this round of it.
        """
        ...


def decide(ground: Ground, nodes: Sequence[NodeId]) -> Steps[Decided]:
    """Look at these nodes, and at all that follows from what is found."""
    asked = list(nodes)
    ended: dict[NodeId, None] = {}
    released: dict[NodeId, None] = {}
    emptied: set[NodeId] = set()
    flows: dict[FlowId, None] = {}
    while asked:
        looked = yield from ground.end(asked)
        asked = []
        new = [one for one in looked if one.ended and one.node not in ended]
        for one in looked:
            if one.rows > MANY and not one.ended:
                yield from ground.squeeze(one.node)
            if one.left is not None and one.node not in emptied:
                emptied.add(one.node)
                yield from empty(ground, one.node, one.flow, one.left)
                asked.append(one.node)
        if not new:
            continue
        ended.update((one.node, None) for one in new)
        flows.update((one.flow, None) for one in new)
        moved = yield from ground.release([one.node for one in new])
        if queues := sorted({one.queue for one in moved if one.released and one.expects}):
            yield from ground.wake(queues)
        released.update((one.node, None) for one in moved if one.released)
        # A flow has not ended of which something has only just begun.
        for flow in {one.flow for one in moved if one.released and one.expects}:
            flows.pop(flow, None)
        asked += [one.node for one in moved if not one.released or not one.expects]
    if flows:
        yield from ground.end_flows(list(flows))
    return Decided(list(ended), list(released))


def empty(ground: Ground, node: NodeId, flow: FlowId, round_: int) -> Steps[None]:
    """Cancel a node's jobs that have not ended, by pages, unless its flow is in another round."""
    last = JobId(0)
    while jobs := (yield from ground.members(node, last, PAGE)):
        if not (yield from ground.cancel(jobs, flow, round_)):
            return
        last = jobs[-1]
