"""Hearing of jobs that have ended: at once inside one process, by looking at the file from others.

As for workers (`wake`): an operation that may have ended jobs sets the flags of this process, and
`PRAGMA data_version` says, within microseconds, whether another process has committed something. It
does not say what, so a caller that waits then looks at its jobs, at most every 40 ms where a
database is busy.
"""

from collections.abc import Collection
from time import monotonic

from rota.model.job import JobId
from rota.store.sqlite.connection import SqliteConnection
from rota.store.sqlite.flags import WAITERS
from rota.store.sqlite.pauses import Pauses, data_version


class SqliteListener:
    """Hears of jobs that have ended; see `rota.store.connections.Listener`."""

    def __init__(self, connection: SqliteConnection) -> None:
        self.connection = connection
        self._pauses = Pauses(connection.path)
        self._flag = self._pauses.alarm
        self._listening = False
        self._version: int | None = None
        self._changed = False

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
        if self._changed:  # where much is written, every look would find a change
            self._pauses.rest(timeout)
        while True:
            self._pauses.pause(deadline - monotonic())
            if self._flag.is_set():
                self._flag.clear()
                return None
            version = self.connection.run(data_version())
            self._changed = version != self._version
            if self._changed:
                self._version = version
                return None
            if monotonic() >= deadline:
                return ()

    def wake(self) -> None:
        """End the sleep, from another thread."""
        # Another caller waits now, perhaps for a job that ends soon.
        self._pauses.hurry()
        self._flag.set()

    def close(self) -> None:
        """Hear no more, and close the connection."""
        WAITERS.remove(self.connection.path, self._flag)
        self.connection.close()
        self._flag.close()
