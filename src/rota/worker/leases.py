"""What the worker holds: how many jobs of each lease are still to be settled, and for which session.

A lease that is settled whole costs one deleted row, one that is settled bit by bit a row version
for each bit; the settler therefore waits a moment for leases that are nearly done.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter

from rota.model.job import ClaimedJob, LeaseId, SessionId

_lease = attrgetter("lease")
_limited = attrgetter("limited")


class Leases:
    """Counts down leases. Claimer and settler use it from their threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: dict[LeaseId, int] = {}
        self._session: dict[LeaseId, SessionId] = {}
        self._limited: set[LeaseId] = set()
        self._calm = threading.Condition(self._lock)
        self._moving = 0
        self._counting = False

    def add(self, session: SessionId, jobs: list[ClaimedJob]) -> None:
        """Remember a claim."""
        with self._lock:
            for lease, count in Counter(map(_lease, jobs)).items():
                self._left[lease] = self._left.get(lease, 0) + count
                self._session[lease] = session
            if any(map(_limited, jobs)):
                self._limited.update(job.lease for job in jobs if job.limited)

    @property
    def limited(self) -> bool:
        """Whether a lease has jobs for whose end others may wait."""
        return bool(self._limited)

    def unsettled(self, session: SessionId) -> int:
        """How many jobs of a session have not been settled."""
        with self._lock:
            return sum(
                self._left[lease] for lease, owner in self._session.items() if owner == session
            )

    @property
    def held_jobs(self) -> int:
        """How many jobs there are that have not been settled."""
        with self._lock:
            return sum(self._left.values())

    def left(self, lease: LeaseId) -> int:
        """How many jobs of a lease have not been settled."""
        return self._left.get(lease, 0)

    @contextmanager
    def held(self, session: SessionId) -> Iterator[list[LeaseId]]:
        """The leases of a session that have not been settled whole; no job moves while this lasts.

        A job that has its new lease already, while that is not known here, would be given back.
        """
        with self._calm:
            self._counting = True
            self._calm.wait_for(lambda: not self._moving)
            held = [lease for lease, owner in self._session.items() if owner == session]
        try:
            yield held
        finally:
            with self._calm:
                self._counting = False
                self._calm.notify_all()

    @contextmanager
    def moving(self) -> Iterator[Callable[[LeaseId, LeaseId], None]]:
        """While a job of a lease gets a lease of its own; call what this gives with both."""
        with self._calm:
            self._calm.wait_for(lambda: not self._counting)
            self._moving += 1
        try:
            yield self.moved
        finally:
            with self._calm:
                self._moving -= 1
                self._calm.notify_all()

    def session(self, lease: LeaseId) -> SessionId:
        """The session that claimed a lease."""
        return self._session[lease]

    def moved(self, old: LeaseId, new: LeaseId) -> None:
        """A job of the old lease has the new one, which is its own."""
        with self._lock:
            self._left[new] = 1
            self._session[new] = self._session[old]
            if old in self._limited:
                self._limited.add(new)
        self.settled(old)

    def settled(self, lease: LeaseId, count: int = 1) -> None:
        """Count settled jobs off; a lease without any left is forgotten."""
        with self._lock:
            self._left[lease] -= count
            if self._left[lease] <= 0:
                del self._left[lease], self._session[lease]
                self._limited.discard(lease)
