"""Hearing of jobs that have ended: at once inside one process, by looking at the file from others.

As for workers (`wake`): an operation that may have ended jobs sets the flags of this process, and
`PRAGMA data_version` says, within microseconds, whether another process has committed something. It
does not say what, so a caller that waits then looks at its jobs, at most every 40 ms where a database
is busy.
"""

import threading
from collections.abc import Collection
from time import monotonic

from rota.model.job import JobId
from rota.store.sqlite.connection import SqliteConnection
from rota.store.sqlite.flags import WAITERS
from rota.store.sqlite.wake import GROWTH, LONGEST, SHORTEST, data_version


class SqliteListener:
    """Hears of jobs that have ended; see `rota.store.connections.Listener`."""

    def __init__(self, connection: SqliteConnection) -> None:
        self.connection = connection
        self._flag = threading.Event()
        self._listening = False
        self._version: int | None = None
        self._nap = SHORTEST

    def listen(self) -> bool:
        """Begin to listen; whether it began only now."""
        if self._listening:
            return False
        WAITERS.add(self.connection.path, self._flag)
        self._version = self.connection.run(data_version())
        self._listening = True
        return True

    def wait(self, timeout: float) -> Collection[JobId] | None:
        """Sleep until something may have ended, and at most so many seconds."""
        deadline = monotonic() + timeout
        while True:
            left = deadline - monotonic()
            # Slept before the look, too: where much is written, every look finds a change.
            if self._flag.wait(max(0.0, min(self._nap, left))):
                self._flag.clear()
                return None
            self._nap = min(self._nap * GROWTH, LONGEST)
            version = self.connection.run(data_version())
            if version != self._version:
                self._version = version
                return None
            if left <= 0:
                return ()

    def wake(self) -> None:
        """End the sleep, from another thread."""
        # Another caller waits now, perhaps for a job that ends soon.
        self._nap = SHORTEST
        self._flag.set()

    def close(self) -> None:
        """Hear no more, and close the connection."""
        WAITERS.remove(self.connection.path, self._flag)
        self.connection.close()
