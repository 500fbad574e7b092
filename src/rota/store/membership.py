"""What settlements mean to their jobs' nodes: arrivals, counted before they are written."""

from collections.abc import Iterable
from typing import NamedTuple

from rota.model.headers import NodeId
from rota.model.settlement import Completions, Settlement
from rota.model.states import Move, State

PLACES = {State.COMPLETED: 0, State.DISCARDED: 1, State.CANCELLED: 2}
"""In which column of `Arrivals` a job is counted that has ended so."""

_PLACES = {Move.COMPLETE: 0, Move.DISCARD: 1, Move.CANCEL: 2}


class Arrivals(NamedTuple):
    """How many jobs of nodes have ended how, in lists of one length."""

    nodes: list[NodeId]
    completed: list[int]
    failed: list[int]
    cancelled: list[int]


class Given(NamedTuple):
    """Results that other jobs are given, in lists of one length."""

    nodes: list[NodeId]
    jobs: list[int]
    results: list[str]


def arrivals(
    settlements: Iterable[Settlement], completions: Iterable[Completions] = ()
) -> Arrivals | None:
    """What arrives at nodes by these, if anything does: nothing but an end."""
    counts: dict[NodeId, list[int]] = {}
    for one in settlements:
        if one.node is not None and (place := _PLACES.get(one.move)) is not None:
            counts.setdefault(one.node, [0, 0, 0])[place] += 1
    for alike in completions:
        if alike.node is not None:
            counts.setdefault(alike.node, [0, 0, 0])[0] += len(alike.jobs)
    return listed(counts) if counts else None


def arrived(settlements: Iterable[Settlement], completions: Iterable[Completions]) -> set[NodeId]:
    """The nodes at which something arrives by these."""
    nodes = {one.node for one in settlements if one.node is not None and one.move in _PLACES}
    nodes.update(alike.node for alike in completions if alike.node is not None)
    return nodes


def listed(counts: dict[NodeId, list[int]]) -> Arrivals:
    """The same counts by column, in the order of the nodes."""
    nodes = sorted(counts)
    columns = zip(*(counts[node] for node in nodes), strict=True)
    return Arrivals(nodes, *map(list, columns))


def given(settlements: Iterable[Settlement]) -> Given | None:
    """The results among these that others are given."""
    found = Given([], [], [])
    for one in settlements:
        if one.given is not None and one.node is not None and one.move is Move.COMPLETE:
            found.nodes.append(one.node)
            found.jobs.append(one.job)
            found.results.append(one.given)
    return found if found.nodes else None
