"""Telling processes that wait for jobs which of them have ended, and hearing it.

A process that waits holds an advisory lock, shared, as sleeping workers do for their queues. The
statement that ends jobs tries that lock, and a notification with the jobs' ids is sent only if it
is held: NOTIFY serialises the commits of the whole database. A process that begins to wait between
that try and the commit hears nothing; so it also looks at its jobs, soon after it has begun and
then more and more rarely (`rota.database.waiting`). Behind a pooler in transaction mode these looks
are all there is.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import psycopg

from rota.model.job import JobId
from rota.store.operation import Begin, Steps, operation
from rota.store.postgres.bell import Bell
from rota.store.postgres.connection import PostgresConnection
from rota.store.postgres.failures import translate
from rota.store.postgres.statements import sql

ENDED = sql("wake/ended")
WAITED = sql("wake/waited")
WAIT_BEGIN = sql("wake/wait_begin")
WAIT_LISTEN = sql("wake/wait_listen")

CHANNEL = "rota_ended"

IDS = 380
"""Ids in a notification: of 20 digits each, they stay below its 8000 bytes."""


def tell_ended(jobs: Iterable[JobId]) -> Steps[None]:
    """Notify the processes that wait, when this transaction commits."""
    if parts := parts_of([str(job) for job in jobs]):
        yield ENDED(parts=parts)


def parts_of(jobs: Sequence[str]) -> list[str]:
    """These ids as the texts of notifications."""
    return [",".join(jobs[start : start + IDS]) for start in range(0, len(jobs), IDS)]


def tell_if_waited(jobs: Iterable[JobId]) -> Steps[None]:
    """The same, after a look whether any process waits: for what is done by hand, and rarely."""
    jobs = list(jobs)
    if jobs and (yield WAITED())[0][0]:
        yield from tell_ended(jobs)


class PostgresListener:
    """Hears of jobs that have ended; see `rota.store.connections.Listener`."""

    def __init__(self, connection: PostgresConnection, *, listen: bool) -> None:
        self.connection = connection
        self._listen = listen
        self._listening: psycopg.Connection[tuple[Any, ...]] | None = None
        self._bell = Bell()

    def listen(self) -> bool:
        """Begin to listen, also after the connection was lost; whether it began only now."""
        raw = self.connection.raw()
        if self._listening is raw:
            return False
        if self._listen:
            self.connection.run(_begin())
        self._listening = raw
        return True

    def wait(self, timeout: float) -> Collection[JobId] | None:
        """Sleep until a job has ended, and at most so many seconds."""
        if heard := self._heard():
            return heard
        listening = self._listening
        if not self._listen or (listening is not None and listening.closed):
            listening = None
        slept = self._bell.sleep(listening, timeout)
        return self._heard() if slept.rung or slept.readable else ()

    def wake(self) -> None:
        """End the sleep, from another thread."""
        self._bell.ring()

    def close(self) -> None:
        """Stop listening, and close the connection: its lock goes with it."""
        self.connection.close()
        self._bell.close()

    def _heard(self) -> Collection[JobId]:
        """The jobs whose end was notified.

        Raises:
            StoreUnavailable: The connection is lost.
        """
        if self._listening is None or not self._listen:
            return ()
        try:
            said = [
                notice.payload
                for notice in self._listening.notifies(timeout=0)
                if notice.channel == CHANNEL
            ]
        except psycopg.Error as error:
            self.connection.close()
            self._listening = None
            raise translate(error, self.connection.url) from error
        return {JobId(int(job)) for text in said for job in text.split(",")}


@operation(Begin.NOTHING)
def _begin() -> Steps[None]:
    yield WAIT_LISTEN()
    yield WAIT_BEGIN()
