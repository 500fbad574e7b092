"""Waking workers: at once inside one process, by looking at the file from others.

In a process, an operation that made jobs available sets the flags of the wakers of that database
(`flags`). For what other processes did, a waker asks SQLite whether the database has changed
(`PRAGMA data_version`: microseconds, and nothing of the file is read) and, only if so, whether
there is a job to claim: another worker's commits must not wake this one. When it asks is a matter
of `pauses`.
"""

from collections.abc import Collection, Sequence
from math import inf
from time import monotonic

from rota.errors import StoreError
from rota.model.job import SessionId
from rota.store.connections import Wake
from rota.store.operation import Begin, Steps, operation
from rota.store.sqlite.claim import available
from rota.store.sqlite.connection import SqliteConnection
from rota.store.sqlite.flags import WORKERS
from rota.store.sqlite.pauses import Pauses, data_version
from rota.store.sqlite.stage import STAGE_NEXT

SAME_TIME = 0.005
"""Seconds by which two times must differ to be two: they are read off two clocks."""


class SqliteWaker:
    """Something a worker of some queues can sleep on; see `rota.store.connections.Waker`."""

    def __init__(
        self,
        connection: SqliteConnection,
        queues: Sequence[str],
        tasks: Collection[str] | None = None,
    ) -> None:
        self.connection = connection
        self._queues = [*dict.fromkeys(queues)]
        self._tasks = tasks
        self._pauses = Pauses(connection.path)
        self._flag = self._pauses.alarm
        self._version: int | None = None
        self._due = inf
        WORKERS.add(connection.path, self._flag)

    def wait(self, timeout: float) -> Sequence[Wake]:
        """Sleep until woken or for `timeout` seconds; what woke it."""
        deadline = monotonic() + timeout
        while not self._flag.is_set():
            if self._found(deadline):
                break
            left = deadline - monotonic()
            if left <= 0:
                return []
            self._pauses.pause(left)
        self._flag.clear()
        self._pauses.hurry()
        return [Wake()]

    def belong(self, session: SessionId) -> None:
        """A sleeper keeps nothing."""

    def heard(self) -> float:
        """It has to look itself: other processes' commits wake nothing."""
        return 0.0

    def busy(self) -> bool:
        """Nothing to do: waking a worker that does not sleep costs next to nothing."""
        return True

    def wake(self) -> None:
        """Wake the sleeper from another thread of this process."""
        self._flag.set()

    def close(self) -> None:
        """Stop listening, and close the connection."""
        WORKERS.remove(self.connection.path, self._flag)
        self.connection.close()
        self._flag.set()
        self._flag.close()

    def _found(self, deadline: float) -> bool:
        """Whether the database has changed, and there is a job to claim or one due earlier."""
        try:
            version = self.connection.run(data_version())
            if version == self._version:
                return False
            found, left = self.connection.run(_news(self._queues, self._tasks))
        except StoreError:
            # The next claim reports it.
            return False
        self._version = version
        due = inf if left is None else monotonic() + max(left, 0.0)
        earlier = due + SAME_TIME < self._due
        self._due = due
        if found or earlier:
            return True
        self._pauses.rest(deadline - monotonic())
        return False


@operation(Begin.NOTHING)
def _news(queues: Sequence[str], tasks: Collection[str] | None) -> Steps[tuple[bool, float | None]]:
    """Whether there may be something to claim, and in how many seconds the next waiting job is due."""
    [(due,)] = yield STAGE_NEXT()
    return (yield from available(queues, tasks)), due
