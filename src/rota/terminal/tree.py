"""A flow as a tree: each node once, below the last of those for which it waits.

The others name it behind an arrow. What is implied by the rest is left out: where `c` waits for `a`
and `b`, and `b` for `a`, only `b` leads to `c`. An only child continues a chain and is not
indented, so a flow of a hundred steps fits into a terminal. A group is a branch of its own.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from rota.model.flow import Condition, FlowGraph, NodeRecord
from rota.model.flow_groups import groups_of
from rota.model.graph import depths, implied, ordered


@dataclass(slots=True)
class Branch:
    """A node with what is below it, or a group with its first nodes.

    Attributes:
        node: `None` for a group.
        leads: The names of nodes that wait for this one, too, and stand elsewhere.
        conditions: For what else than the success of others the node waits.
    """

    name: str
    node: NodeRecord | None = None
    below: list["Branch"] = field(default_factory=list)
    leads: list[str] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)


class Line(NamedTuple):
    """A branch on its line, behind its marks."""

    marks: str
    branch: Branch


class _Open(NamedTuple):
    """A branch still to be shown: its marks, and those of a chain's next link and of other branches."""

    marks: str
    chain: str
    below: str
    branch: Branch


def tree(graph: FlowGraph) -> list[Branch]:
    """The branches that begin at the root."""
    nodes = graph.nodes
    places = {node.id: place for place, node in enumerate(nodes)}
    edges = [edge for edge in graph.edges if edge.node in places and edge.after in places]
    arrows = sorted({(places[edge.after], places[edge.node]) for edge in edges})
    drawn = set(arrows) - implied(len(nodes), arrows)
    depth = depths(len(nodes), arrows)
    order = ordered(len(nodes), arrows)
    turn = {place: number for number, place in enumerate(order)}
    before: dict[int, list[int]] = {place: [] for place in order}
    for start, to in drawn:
        before[to].append(start)
    branches = [Branch(node.name, node) for node in nodes]
    for edge in edges:
        known = branches[places[edge.node]].conditions
        if edge.condition is not Condition.COMPLETED and edge.condition not in known:
            known.append(edge.condition)
    planting = _Planting(branches)
    for place in order:
        waited = sorted(before[place], key=lambda one: (depth[one], turn[one]))
        planting.plant(place, waited)
    return planting.root.below


class _Planting:
    """Puts branches below each other."""

    def __init__(self, branches: list[Branch]) -> None:
        self.root = Branch("")
        self._branches = branches
        self._groups: dict[str, Branch] = {}

    def plant(self, place: int, waited: list[int]) -> None:
        """A branch below the last of those for which it waits."""
        branch = self._branches[place]
        above = self._branches[waited.pop()] if waited else None
        held = self._held(branch, above)
        held.below.append(branch)
        if above is not None and held is not above and not _leads_to(above, branch, self._groups):
            above.leads.append(branch.name)
        for other in waited:
            self._branches[other].leads.append(branch.name)

    def _held(self, branch: Branch, above: Branch | None) -> Branch:
        """What is directly above a branch: a node, a group, or the root."""
        held = self.root if above is None else above
        there = set() if above is None else set(groups_of(above.name))
        for name in groups_of(branch.name):
            if name in there:
                continue
            group = self._groups.get(name)
            if group is None:
                group = self._groups[name] = Branch(name)
                held.below.append(group)
            held = group
        return held


def _leads_to(above: Branch, branch: Branch, groups: dict[str, Branch]) -> bool:
    """Whether a group of the branch stands directly below the one above."""
    return any(groups.get(name) in above.below for name in groups_of(branch.name))


def lines(branches: Iterable[Branch]) -> Iterator[Line]:
    """All branches, each with the marks before it."""
    left = [_Open("", "", "", branch) for branch in branches][::-1]
    while left:
        marks, chain, below, branch = left.pop()
        yield Line(marks, branch)
        if branch.node is not None and len(branch.below) == 1 and branch.below[0].node is not None:
            left.append(_Open(f"{chain}↓ ", chain, f"{chain}  ", branch.below[0]))
            continue
        last = len(branch.below) - 1
        more = [
            _Open(f"{below}{mark}", f"{below}{bar}", f"{below}{bar}", one)
            for number, one in enumerate(branch.below)
            for mark, bar in [("└─ ", "   ") if number == last else ("├─ ", "│  ")]
        ]
        left.extend(reversed(more))
