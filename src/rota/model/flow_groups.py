"""The groups of a flow's nodes, told by their names: `resize/large` is a node of group `resize`."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from rota.model.flow import NodeRecord, NodeState


def groups_of(name: str) -> list[str]:
    """The groups of a node with that name, the outermost first, each with its full name."""
    parts = name.split("/")[:-1]
    return ["/".join(parts[: number + 1]) for number in range(len(parts))]


@dataclass(frozen=True, slots=True)
class Totals:
    """How many nodes and jobs there are together, and in which state that is as a whole."""

    state: NodeState
    nodes: int
    ended: int
    expects: int
    completed: int
    failed: int
    cancelled: int

    @property
    def left(self) -> int:
        """How many jobs have not ended."""
        return self.expects - self.completed - self.failed - self.cancelled


def totals(nodes: Collection[NodeRecord]) -> Totals:
    """What nodes are together."""
    return Totals(
        state=together({node.state for node in nodes}),
        nodes=len(nodes),
        ended=sum(node.state.ended for node in nodes),
        expects=sum(node.expects for node in nodes),
        completed=sum(node.completed for node in nodes),
        failed=sum(node.failed for node in nodes),
        cancelled=sum(node.cancelled for node in nodes),
    )


def together(states: Collection[NodeState]) -> NodeState:
    """The state of nodes together: running from first to last; then the worst end counts."""
    if not all(state.ended for state in states):
        return NodeState.WAITING if set(states) == {NodeState.WAITING} else NodeState.RUNNING
    for state in (NodeState.FAILED, NodeState.CANCELLED, NodeState.COMPLETED):
        if state in states:
            return state
    return NodeState.SKIPPED if states else NodeState.COMPLETED


def members(nodes: Iterable[NodeRecord]) -> dict[str, list[NodeRecord]]:
    """The nodes of each group, those of its own groups among them."""
    found: dict[str, list[NodeRecord]] = {}
    for node in nodes:
        for name in groups_of(node.name):
            found.setdefault(name, []).append(node)
    return found
