"""Whether other workers are silent, or only could not be heard.

Where the server's clock jumps forward, or its machine or the way to it stood still for a while, all
sessions look silent at once, and their next heartbeats are on their way. A worker whose looks at
the database have come regularly by the server's clock would have noticed.
"""

import threading

GAP = 0.5
"""The share of a session's timeout that may lie between two looks, of which a heartbeat is one: a
clock that jumps by less makes no worker silent, even one that has no jobs and gives a sign every
0.4 of it.
"""

JITTER = 0.5
"""Seconds by which looks of two threads may be told in the wrong order."""

LONG_ENOUGH = 0.5
"""The share of a session's timeout for which looks must be regular: two heartbeats and a little."""

HURRY = 0.1
"""The share of a session's timeout between two looks, while that is to be found out."""


class Rhythm:
    """The looks of one worker. All times are in seconds."""

    def __init__(self, timeout: float) -> None:
        self.hurry = HURRY * timeout
        self._gap = GAP * timeout
        self._long_enough = LONG_ENOUGH * timeout
        self._since = self._last = 0.0
        self._lock = threading.Lock()

    def look(self, clock: float | None) -> None:
        """What the server's clock said at a look, or at a heartbeat; `None` where it does not matter."""
        if clock is None:
            return
        with self._lock:
            passed = clock - self._last
            if -JITTER < passed < 0:
                return
            if not 0 <= passed <= self._gap:
                self._since = clock
            self._last = clock

    @property
    def steady(self) -> bool:
        """Looks have come regularly for so long that a living worker was heard meanwhile."""
        return self._last - self._since >= self._long_enough
