"""Waking: a worker with nothing to do sleeps until a producer commits.

While it may sleep, a worker listens and holds a shared advisory lock per queue. A producer tries
that lock exclusively and notifies only if it cannot have it: NOTIFY serialises the commits of the
whole database, so none is sent while all workers are busy. Behind a transaction pooler LISTEN is
swallowed without an error; the worker's polling catches what no notification announces.

A notification reaches all sleepers. If all of them claimed, they would take turns at the lane for one
job. So it carries the id of the producer's transaction, from which all of them tell alike which worker
goes first (`rota.worker.claim.goes_first`).

A worker listens on the connection that claims: the server's process that has just been woken by the
notification claims sooner than one that still sleeps.
"""

import logging
import time
from collections.abc import Collection, Sequence
from typing import Any

import psycopg

from rota.errors import RotaError
from rota.model.patterns import is_pattern, meaning
from rota.store.connections import Wake
from rota.store.operation import Begin, Steps, operation
from rota.store.postgres.bell import Bell
from rota.store.postgres.connection import PostgresConnection
from rota.store.postgres.jobs import QUEUE_NAMES
from rota.store.postgres.statements import sql
from rota.store.queue_names import meant

LISTEN = sql("wake/listen")
ASLEEP = sql("wake/asleep")
AWAKE = sql("wake/awake")

logger = logging.getLogger("rota")

FRESH = 1.0
"""Seconds for which a worker that names its queues by patterns goes on with those it has found."""


class PostgresWaker:
    """What a worker sleeps on; see `rota.store.connections.Waker`."""

    def __init__(
        self, connection: PostgresConnection, queues: Sequence[str], *, listen: bool
    ) -> None:
        self.connection = connection
        self._wanted = list(queues)
        self._patterns = [*filter(is_pattern, queues)]
        self._awaited: set[str] = set()
        self._found_at = 0.0
        self._listen = listen
        self._listening: psycopg.Connection[tuple[Any, ...]] | None = None
        self._since = 0.0
        self._bell = Bell()

    def wait(self, timeout: float) -> Sequence[Wake]:
        """Sleep until woken or for `timeout` seconds; what woke it."""
        deadline = time.monotonic() + timeout
        while True:
            if self._fall_asleep() and (wakes := self._notified()):
                return wakes
            slept = self._bell.sleep(self._listening, deadline - time.monotonic())
            if slept.rung:
                return [Wake()]
            if not slept.readable:
                return []

    def _fall_asleep(self) -> bool:
        """Listen, and let producers know; false where that fails."""
        if not self._listen:
            return False
        try:
            # A claim may have opened the connection anew meanwhile.
            if self._listening is not (raw := self.connection.raw()):
                self._awaited = self._found(set())
                self._listening = raw
                self._since = time.monotonic()
            elif self._patterns and time.monotonic() >= self._found_at + FRESH:
                self._awaited |= self._found(self._awaited)
        except RotaError as error:
            # Polling has to do; the next claim reports the lost database.
            logger.debug("cannot listen: %s", error)
            self._forget()
            return False
        return True

    def _found(self, before: Collection[str]) -> set[str]:
        """Await jobs of all queues but those that are awaited already; which these are."""
        self._found_at = time.monotonic()
        return self.connection.run(_asleep(self._wanted, before))

    def _notified(self) -> list[Wake]:
        """The notifications for these queues, or for all."""
        try:
            heard = [notice.payload for notice in self.connection.raw().notifies(timeout=0)]
        except (RotaError, psycopg.Error):
            self._forget()
            return []
        wakes = []
        for payload in heard:
            number, _, queue = payload.partition(" ")
            if not queue or queue in self._awaited or meaning(self._patterns, queue):
                wakes.append(Wake(queue, int(number) if number.isdecimal() else None))
        return wakes

    def heard(self) -> float:
        """For how many seconds it has listened; a commit that had begun before may go unheard."""
        if self._listening is None or self._listening.closed:
            return 0.0
        return time.monotonic() - self._since

    def busy(self) -> bool:
        """There is work in plenty: producers need not notify this worker for now."""
        # A connection that was closed meanwhile listens no more, and need not be opened for that.
        if self._listening is not None and not self._listening.closed:
            try:
                if self.connection.find_ended():
                    self._forget()
                    return False
                self.connection.run(_awake())
            except RotaError:
                self._forget()
                return False
        self._listening = None
        return True

    def wake(self) -> None:
        """Wake the sleeper from another thread of this process."""
        self._bell.ring()

    def close(self) -> None:
        """Stop listening, and close the connection."""
        self.connection.close()
        self._bell.close()

    def _forget(self) -> None:
        self.connection.close()
        self._listening = None


@operation(Begin.NOTHING)
def _asleep(wanted: Sequence[str], before: Collection[str]) -> Steps[set[str]]:
    queues = {*(yield from meant(wanted, QUEUE_NAMES))}.difference(before)
    if not before:
        yield LISTEN()
    if queues:
        yield ASLEEP(queues=sorted(queues))
    return queues


@operation(Begin.NOTHING)
def _awake() -> Steps[None]:
    yield AWAKE()
