"""Suspects that the worker has claimed: they wait until nothing else runs here, then run in lots.

See `rota.model.suspects`. Only the claimer's thread is here; it claims nothing in the meantime, so
that a lot is all that the session holds and has begun.
"""

from rota.model.job import ClaimedJob, SessionId
from rota.model.suspects import first_lot
from rota.store.connections import Connection
from rota.store.protocol import Store
from rota.worker.leases import Leases

LOOK = 0.005
"""Seconds between two looks at whether what runs has been settled."""


class Suspects:
    """The suspects that were claimed and have not begun."""

    def __init__(self, store: Store, leases: Leases) -> None:
        self._store = store
        self._leases = leases
        self._session: SessionId | None = None
        self._waiting: list[ClaimedJob] = []

    def set_aside(self, session: SessionId, jobs: list[ClaimedJob]) -> list[ClaimedJob]:
        """Keep the suspects among these jobs, which were just claimed; the others."""
        suspects = [job for job in jobs if job.suspects is not None]
        if not suspects:
            return jobs
        self._session = session
        self._waiting += suspects
        return [job for job in jobs if job.suspects is None]

    def apart(self, session: SessionId) -> bool:
        """Whether the worker claims nothing now: suspects wait, or run."""
        if self._session is not None and (
            session != self._session
            or (not self._waiting and not self._leases.unsettled(self._session))
        ):
            # With their session, jobs are lost that have not begun.
            self._session, self._waiting = None, []
        return self._session is not None

    def next_lot(self, connection: Connection) -> list[ClaimedJob]:
        """What is to run now, written down as begun; empty while something else is unsettled.

        Raises:
            LeaseLost: The session is not alive any more.
        """
        session, waiting = self._session, self._waiting
        if session is None or not waiting or self._leases.unsettled(session) > len(waiting):
            return []
        lot = first_lot(waiting)
        connection.run(self._store.begin_lot(session, [job.id for job in lot]))
        del waiting[: len(lot)]
        return lot
