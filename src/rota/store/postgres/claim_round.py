"""To which lanes a worker's claims go, and in which order.

A probe of a thousand lanes costs as much as claims of ten, so claims go on with what the last probe
has found, where they left off. Workers that all began with the first lane would wait for each other
at each: among many lanes of one priority a worker begins with any of them, and goes round from
there.

A lane that another worker has emptied since the probe costs a claim that gives nothing. So after
some of these a claim asks which of the next lanes have something left, all in one statement, which
costs less than two such claims.

Known weakness: where many workers meet in few lanes, they still wait for each other.
"""

import random
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from itertools import islice, takewhile
from typing import NamedTuple

FEW_LANES = 4
"""A woken claim does without the probe where its queues have no more lanes than this."""

FRESH = 0.5
"""Seconds for which a claim goes on with the lanes that the last probe has found."""

MISSES = 2
"""So many lanes that other workers have emptied, and it is time to look at the next ones."""

NEXT = 64
"""So many of them."""


class Part(NamedTuple):
    """What is claimed at once: a plain lane, or all key lanes of its queue and priority."""

    lane: int
    priority: int
    ready: bool
    key_lanes: bool


class Visit:
    """A claim's way through lanes; it says of each whether it gave jobs, gave none, or was passed by.

    Where another worker has been, this one goes on somewhere else among those of the same priority,
    and after `MISSES` it doubts the next ones.
    """

    def __init__(self, parts: Sequence[Part], *, few: bool) -> None:
        self.left = deque(parts)
        self.passed: list[Part] = []
        self._few = few
        self._misses = 0
        self._part: Part | None = None

    def __iter__(self) -> Iterator[Part]:
        while self.left:
            part = self._part = self.left.popleft()
            yield part

    def miss(self) -> None:
        """The part that was visited last gave nothing."""
        if self._few or self._part is None:
            return
        self._misses += 1
        priority = self._part.priority
        others = sum(1 for _ in takewhile(lambda part: part.priority == priority, self.left))
        later = [self.left.pop() for _ in range(len(self.left) - others)]
        self.left.rotate(random.randrange(others + 1))  # noqa: S311 - no secret
        self.left.extend(reversed(later))

    def doubted(self) -> list[int]:
        """The next plain lanes, where others may have been, too; to be told which of them are `left`."""
        if self._misses < MISSES:
            return []
        self._misses = 0
        return [part.lane for part in islice(self.left, NEXT) if not part.key_lanes]

    def keep(self, doubted: Collection[int], left: Collection[int]) -> None:
        """Go to no lanes of those that were doubted but to those that have something left."""
        gone = {*doubted}.difference(left)
        self.left = deque(part for part in self.left if part.key_lanes or part.lane not in gone)

    def pass_by(self) -> None:
        """The part visited last is of a queue without room now: the next claim may look there."""
        if self._part is not None:
            self.passed.append(self._part)

    def stay(self) -> None:
        """The part that was visited last may have more."""
        if self._part is not None:
            self.left.appendleft(self._part)


class Round:
    """The lanes that the last probe has found, and where among them a worker is."""

    def __init__(self) -> None:
        self._probed = 0.0
        self._queues: frozenset[str] = frozenset()
        self._parts: Sequence[Part] = ()
        self._few = True
        self._at: int | None = None

    def known(self, queues: Sequence[str], now: float) -> Sequence[Part]:
        """Where to look without a probe: in all few lanes, or in those of many that are left."""
        fresh = now - self._probed < FRESH and self._queues == frozenset(queues)
        return self._parts if fresh else ()

    def begin(self, queues: Sequence[str], parts: Sequence[Part], now: float) -> Sequence[Part]:
        """Where to look after a probe that has found these: in those that are ready."""
        self._probed, self._queues = now, frozenset(queues)
        self._few = len(parts) <= FEW_LANES
        self._parts = parts if self._few else ()
        ready = [part for part in parts if part.ready]
        if self._few or not ready:
            return ready
        if self._at is None:
            self._at = random.choice(ready).lane  # noqa: S311 - no secret
        at = self._at
        return sorted(ready, key=lambda part: (part.priority, part.lane < at, part.lane))

    def visit(self, parts: Sequence[Part]) -> Visit:
        """Go to these."""
        return Visit(parts, few=self._few)

    def leave(self, visit: Visit) -> None:
        """The claim is over: the next one goes on with what is left."""
        if not self._few:
            self._parts = (*visit.passed, *visit.left)
            if visit.left:
                self._at = visit.left[0].lane
