"""Telling those who wait that jobs have ended, and hearing it.

Whoever waits holds an advisory lock, shared, as sleeping workers do for their queues. What ends
jobs looks for it in the statement it runs anyway, and only if somebody holds it sends a
notification with the jobs' ids: NOTIFY serialises the commits of the whole database. Between that
look and the commit somebody may begin to wait and hear nothing; so whoever waits also looks by
himself, soon after he has begun and then more and more rarely (`rota.waiting`). Behind a pooler in
transaction mode that is all there is.
"""

from collections.abc import Collection, Iterable
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
    """Notify those who wait, when this transaction commits."""
    texts = [str(job) for job in jobs]
    if texts:
        yield ENDED(
            parts=[",".join(texts[start : start + IDS]) for start in range(0, len(texts), IDS)]
        )


def tell_if_waited(jobs: Iterable[JobId]) -> Steps[None]:
    """The same, after a look whether anybody waits: for what is done by hand, and rarely."""
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
        """Begin to hear, also after the connection was lost; whether it began only now."""
        raw = self.connection.raw()
        if self._listening is raw:
            return False
        if self._listen:
            self.connection.run(_begin())
        self._listening = raw
        return True

    def wait(self, timeout: float) -> Collection[JobId] | None:
        """Sleep until something is heard, and at most so many seconds."""
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
        """Hear no more, and close the connection: its lock goes with it."""
        self.connection.close()
        self._bell.close()

    def _heard(self) -> Collection[JobId]:
        """What has come in.

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
