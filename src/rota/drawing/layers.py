"""Where a graph's vertices stand: in layers from left to right, each arrow leading to a later one.

A vertex is in the layer of the longest way to it. An arrow over several layers bends in each
between, and a bend takes a place as a vertex does, so no arrow runs under a box. In a layer
everything stands near the mean of its neighbours, which keeps arrows short and crossings few; the
fewest are not looked for. (After Sugiyama, Tagawa and Toda, 1981.)
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from rota.model.graph import Arrow, depths, forward

SWEEPS = 6
"""How often layers are put in order, by those before and those behind in turn."""

MOST_BENDS = 2000
"""With more of them arrows do not bend, and may run under boxes."""

BEND = 0.4
"""The height that a bend takes, where a vertex takes 1."""


class Point(NamedTuple):
    """A layer, and how far down, in heights of a vertex."""

    layer: int
    row: float


class Layout(NamedTuple):
    """Where each vertex stands, and for each arrow its points from the beginning to the end."""

    points: Sequence[Point]
    ways: Sequence[Sequence[Point]]

    @property
    def layers(self) -> int:
        """How many layers there are."""
        return 1 + max((point.layer for point in self.points), default=-1)

    @property
    def rows(self) -> float:
        """How far down it goes, in heights of a vertex."""
        return 1 + max(
            (point.row for way in (self.points, *self.ways) for point in way), default=-1
        )


def layout(count: int, arrows: Sequence[Arrow]) -> Layout:
    """Find a place for everything. Arrows that close a circle lead back."""
    straight = forward(count, arrows)
    layer = _layers(count, straight)
    ahead = set(straight)
    bends = sum(layer[to] - layer[start] - 1 for start, to in ahead)
    # Vertices first, then bends.
    ways: dict[Arrow, list[int]] = {}
    links: list[Arrow] = []
    for start, to in sorted(ahead):
        way = [start]
        if bends <= MOST_BENDS:
            for between in range(layer[start] + 1, layer[to]):
                way.append(len(layer))
                layer.append(between)
        way.append(to)
        ways[start, to] = way
        links += [one for one in pairwise(way) if layer[one[1]] == layer[one[0]] + 1]
    rows = _rows(layer, links, count)
    points = [Point(*one) for one in zip(layer, rows, strict=True)]
    return Layout(
        points[:count], [[points[one] for one in ways.get(arrow, arrow)] for arrow in arrows]
    )


def _layers(count: int, arrows: Sequence[Arrow]) -> list[int]:
    found = depths(count, arrows)
    begins = set(range(count)) - {to for _, to in arrows}
    # What waits for nothing stands right before the first that waits for it.
    nearest: dict[int, int] = {}
    for start, to in arrows:
        if start in begins:
            nearest[start] = min(nearest.get(start, found[to]), found[to])
    return [nearest.get(vertex, found[vertex] + 1) - 1 for vertex in range(count)]


def _rows(layer: Sequence[int], links: Sequence[Arrow], count: int) -> list[float]:
    """How far down everything stands."""
    members: list[list[int]] = [[] for _ in range(1 + max(layer, default=-1))]
    for one, where in enumerate(layer):
        members[where].append(one)
    before: list[list[int]] = [[] for _ in layer]
    behind: list[list[int]] = [[] for _ in layer]
    for start, to in links:
        before[to].append(start)
        behind[start].append(to)
    rows = [0.0] * len(layer)
    for each in members:
        _stack(each, [float(number) for number in range(len(each))], rows, count)
    for sweep in range(2 * SWEEPS):
        near, way = (before, members) if sweep % 2 == 0 else (behind, members[::-1])
        for each in way:
            wanted = [_mean([rows[one] for one in near[this]], rows[this]) for this in each]
            if sweep < SWEEPS:
                order = sorted(range(len(each)), key=wanted.__getitem__)
                each[:] = [each[number] for number in order]
                wanted = [wanted[number] for number in order]
            _stack(each, wanted, rows, count)
    top = min(rows, default=0.0)
    return [row - top for row in rows]


def _stack(each: Sequence[int], wanted: Sequence[float], rows: list[float], count: int) -> None:
    """Put a layer's members, in their order, as near as can be to where they are wanted.

    Neighbours that would overlap are put together around the mean of what they want (pooling
    adjacent violators).
    """
    height = [1.0 if one < count else BEND for one in each]
    offset, at = [], 0.0
    for number, own in enumerate(height):
        at += (own + height[number - 1]) / 2 if number else 0.0
        offset.append(at)
    # Of each pool the sum of what is wanted of its first member, and how many it has.
    pools: list[tuple[float, int]] = []
    for number, one in enumerate(wanted):
        total, size = one - offset[number], 1
        while pools and pools[-1][0] / pools[-1][1] >= total / size:
            more, others = pools.pop()
            total, size = total + more, size + others
        pools.append((total, size))
    number = 0
    for total, size in pools:
        for _ in range(size):
            rows[each[number]] = total / size + offset[number]
            number += 1


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
