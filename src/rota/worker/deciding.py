"""Deciding what follows for flows when settlements have been written: by the settler, at once.

A node of many jobs is looked at every so often, and at once where the worker has no other job in
hand: then it was the last, as far as this worker can tell. What a worker does not come to, because
it dies between its commit and its look, upkeep finds.
"""

import time
from collections.abc import Iterable

from rota.model.headers import NodeId
from rota.store.connections import Connection
from rota.store.protocol import Store

SPACING = 0.1
"""Seconds between two looks at one node, while the worker has other jobs in hand."""

SHARE = 2
"""An idle worker rests this many times as long as its last look took, at most `SPACING`."""

MOST = 10_000
"""Nodes that it remembers to have looked at."""


class Deciding:
    """The nodes that are to be looked at; used by one thread."""

    def __init__(self, store: Store, connection: Connection) -> None:
        self._store = store
        self._connection = connection
        self._looked: dict[NodeId, float] = {}
        self._due: set[NodeId] = set()
        self._rest = 0.0

    def __bool__(self) -> bool:
        """Whether there is something to look at."""
        return bool(self._due)

    def add(self, nodes: Iterable[NodeId]) -> None:
        """Jobs of these nodes have ended."""
        self._due.update(nodes)

    def step(self, *, idle: bool = False, hurry: bool = False) -> float | None:
        """Look at what is due; in how many seconds something else is. Errors leave all of it due.

        Args:
            idle: The worker has no other job in hand.
            hurry: All of it is due.
        """
        now = time.monotonic()
        spacing = 0.0 if hurry else min(SPACING, self._rest) if idle else SPACING
        ripe = [node for node in self._due if now - self._looked.get(node, -spacing) >= spacing]
        if ripe:
            self._connection.run(self._store.flows.decide(sorted(ripe)))
            self._rest = SHARE * (time.monotonic() - now)
            self._due.difference_update(ripe)
            if len(self._looked) > MOST:
                self._looked.clear()
            self._looked.update(dict.fromkeys(ripe, now))
        if not self._due:
            return None
        return max(0.0, min(self._looked[node] for node in self._due) + spacing - now)
