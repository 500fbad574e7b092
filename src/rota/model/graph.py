"""Graphs of things that wait for each other: in which order they can come, and what is implied.

A graph is a number of vertices, 0 and so on, and arrows from each to those that wait for it.
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

Arrow = tuple[int, int]
"""From a vertex to one that waits for it."""


def ordered(count: int, arrows: Sequence[Arrow]) -> list[int]:
    """All vertices, each behind those that it waits for, otherwise by number.

    In a circle, the first of it comes first all the same.
    """
    followers = following(count, arrows)
    left = [0] * count
    for _, to in arrows:
        left[to] += 1
    ready = [vertex for vertex in range(count) if not left[vertex]]
    heapify(ready)
    done = [False] * count
    found: list[int] = []
    first = 0
    while len(found) < count:
        while first < count and done[first]:
            first += 1
        vertex = heappop(ready) if ready else first
        if done[vertex]:
            continue
        done[vertex] = True
        found.append(vertex)
        for to in followers[vertex]:
            left[to] -= 1
            if not left[to]:
                heappush(ready, to)
    return found


def forward(count: int, arrows: Sequence[Arrow]) -> list[Arrow]:
    """The arrows without those that close circles."""
    place = {vertex: number for number, vertex in enumerate(ordered(count, arrows))}
    return [(start, to) for start, to in arrows if place[start] < place[to]]


def depths(count: int, arrows: Sequence[Arrow]) -> list[int]:
    """The length of the longest way to each vertex; without circles."""
    found = [0] * count
    followers = following(count, arrows)
    for vertex in ordered(count, arrows):
        for to in followers[vertex]:
            found[to] = max(found[to], found[vertex] + 1)
    return found


def implied(count: int, arrows: Sequence[Arrow]) -> set[Arrow]:
    """The arrows that other ways imply: each way round has more than one arrow. Without circles."""
    followers = following(count, arrows)
    reached = [0] * count  # the vertices behind each, as bits
    found: set[Arrow] = set()
    order = ordered(count, arrows)
    place = {vertex: number for number, vertex in enumerate(order)}
    for vertex in reversed(order):
        # The nearest first: what is reached by way of them is implied.
        for to in sorted(set(followers[vertex]), key=place.__getitem__):
            if reached[vertex] >> to & 1:
                found.add((vertex, to))
            reached[vertex] |= reached[to] | 1 << to
    return found


def following(count: int, arrows: Sequence[Arrow]) -> list[list[int]]:
    """For each vertex those that wait for it."""
    found: list[list[int]] = [[] for _ in range(count)]
    for start, to in arrows:
        found[start].append(to)
    return found
