"""Graphs, and where their vertices stand in a picture."""

import itertools
import random

import pytest

from rota.drawing.layers import BEND, MOST_BENDS, layout
from rota.model.graph import Arrow, depths, forward, implied, ordered


def acyclic(seed: int, count: int, share: float) -> list[Arrow]:
    """Some arrows between so many vertices, whose numbers say nothing about their order."""
    chance = random.Random(seed)
    names = list(range(count))
    chance.shuffle(names)
    pairs = itertools.combinations(range(count), 2)
    return [(names[a], names[b]) for a, b in pairs if chance.random() < share]


def reached(count: int, arrows: list[Arrow]) -> list[set[int]]:
    """What is behind each vertex, found the long way."""
    found: list[set[int]] = [set() for _ in range(count)]
    for _ in range(count):
        for start, to in arrows:
            found[start] |= {to} | found[to]
    return found


@pytest.mark.parametrize("seed", range(20))
def test_order_and_depth(seed: int) -> None:
    """Everything comes behind what it waits for, and one step further than the deepest of these."""
    arrows = acyclic(seed, 15, 0.2)
    place = {vertex: number for number, vertex in enumerate(ordered(15, arrows))}
    assert sorted(place) == list(range(15))
    assert all(place[start] < place[to] for start, to in arrows)
    found = depths(15, arrows)
    for vertex in range(15):
        assert found[vertex] == max((found[a] + 1 for a, b in arrows if b == vertex), default=0)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_implied(seed: int) -> None:
    """Without it everything is reached as before, and of the rest nothing can be left out."""
    arrows = acyclic(seed, 12, 0.3)
    rest = [arrow for arrow in arrows if arrow not in implied(12, arrows)]
    assert reached(12, rest) == reached(12, arrows)
    for arrow in rest:
        fewer = [one for one in rest if one != arrow]
        assert reached(12, fewer) != reached(12, arrows)


def test_circles() -> None:
    """They are opened where they begin, and nothing is lost."""
    circle = [(0, 1), (1, 2), (2, 0), (2, 3)]
    assert ordered(4, circle) == [0, 1, 2, 3]
    assert forward(4, circle) == [(0, 1), (1, 2), (2, 3)]
    found = layout(4, circle)
    assert [point.layer for point in found.points] == [0, 1, 2, 3]
    assert [(way[0].layer, way[-1].layer) for way in found.ways] == [(0, 1), (1, 2), (2, 0), (2, 3)]


@pytest.mark.parametrize("seed", range(20))
def test_nothing_overlaps(seed: int) -> None:
    """In a layer each vertex and each bend has its room, and arrows lead from layer to layer."""
    arrows = acyclic(seed, 30, 0.08)
    found = layout(30, arrows)
    assert layout(30, arrows) == found
    rooms = [(point.layer, point.row, 1.0) for point in found.points]
    for (start, to), way in zip(arrows, found.ways, strict=True):
        assert (way[0], way[-1]) == (found.points[start], found.points[to])
        layers = [point.layer for point in way]
        assert layers == list(range(layers[0], layers[-1] + 1))
        rooms += [(point.layer, point.row, BEND) for point in way[1:-1]]
    for (layer, row, height), (other, below, its) in itertools.combinations(sorted(rooms), 2):
        assert layer != other or below - row >= (height + its) / 2 - 1e-6
    assert min(row for _, row, _ in rooms) == pytest.approx(0.0)
    assert found.rows == pytest.approx(1 + max(row for _, row, _ in rooms))


def test_straight_where_it_can_be() -> None:
    """A chain is a line, and a fork stands around its beginning."""
    chain = layout(5, [(number, number + 1) for number in range(4)])
    assert {point.row for point in chain.points} == {0.0}
    fork = layout(4, [(0, 1), (0, 2), (0, 3)])
    assert fork.points[0].row == pytest.approx(fork.points[2].row)


def test_too_many_bends() -> None:
    """Then arrows run straight, and it stays quick."""
    count = 100
    arrows = [(a, b) for a in range(count) for b in (a + 1, a + 40) if b < count]
    arrows += [(0, b) for b in range(50, count)]
    assert sum(b - a - 1 for a, b in arrows) > MOST_BENDS
    assert {len(way) for way in layout(count, arrows).ways} == {2}
