"""A worker by hand: it claims, tells and settles when the test says so."""

import time

from rota.model.job import ClaimedJob, SessionId, SessionInfo
from rota.model.notes import Note
from rota.model.settlement import Settlement, completed
from rota.store.connections import Connection
from rota.store.protocol import Store

INFO = SessionInfo(host="alpha", pid=4711, queues=("default",), timeout=600)


class Hand:
    """A worker by hand, on a connection of its own."""

    def __init__(self, store: Store, connection: Connection) -> None:
        self._store = store
        self._connection = connection
        self.session: SessionId = connection.run(store.open_session(INFO))

    def claim(self, count: int = 1) -> list[ClaimedJob]:
        return self._connection.run(self._store.claim(self.session, ["default"], count))

    def complete(self, jobs: list[ClaimedJob], result: str | None = None) -> None:
        done = [completed(job, 60.0, result) for job in jobs]
        self.settle(*done)

    def settle(self, *settlements: Settlement) -> None:
        assert self._connection.run(self._store.settle(self.session, settlements)) == []

    def stage(self) -> int:
        """Make due jobs available; how many."""
        return self._connection.run(self._store.stage(100)).staged

    def tell(
        self, job: ClaimedJob, *lines: str, first: int = 1, fraction: float | None = None
    ) -> None:
        """Keep lines, numbered from `first`, and perhaps a progress."""
        now = time.monotonic()
        told = [
            Note(job.id, job.lease, job.attempt, True, first + at, now, None, "info", line)
            for at, line in enumerate(lines)
        ]
        if fraction is not None:
            told.append(
                Note(job.id, job.lease, job.attempt, False, first, now, fraction, None, "so far")
            )
        self._connection.run(self._store.note(told))
