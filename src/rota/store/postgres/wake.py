"""Waking: a worker with nothing to do sleeps until a producer commits.

While it may sleep, a worker listens and holds a shared advisory lock per queue. A producer tries
that lock exclusively and notifies only if it cannot have it: NOTIFY serialises the commits of the
whole database, so none is sent while everybody is busy. Behind a transaction pooler LISTEN is
swallowed without an error; the worker's polling catches what no notification announces.
"""

import contextlib
import logging
import select
import socket
from collections.abc import Callable, Sequence

import psycopg

from rota.errors import RotaError
from rota.store.operation import Begin, Steps, operation
from rota.store.postgres.connection import PostgresConnection
from rota.store.postgres.statements import sql

LISTEN = sql("listen")
ASLEEP = sql("asleep")
AWAKE = sql("awake")

logger = logging.getLogger("rota")


class PostgresWaker:
    """What a worker sleeps on; see `rota.store.protocol.Waker`."""

    def __init__(self, connect: Callable[[], PostgresConnection], queues: Sequence[str]) -> None:
        self._connection = connect()
        self._queues = list(queues)
        self._asleep = False
        # A socket pair and not a pipe: select() takes nothing else on Windows.
        self._inbox, self._bell = socket.socketpair()
        self._inbox.setblocking(False)
        self._bell.setblocking(False)

    def wait(self, timeout: float) -> bool:
        """Sleep until woken or for `timeout` seconds; whether something woke it."""
        sources: list[socket.socket | int] = [self._inbox]
        try:
            if not self._asleep:
                self._connection.run(_asleep(self._queues))
                self._asleep = True
            raw = self._connection.raw()
            # What came in with the answer to a statement makes no socket readable any more.
            if any(True for _ in raw.notifies(timeout=0)):
                return True
            sources.append(raw.fileno())
        except (RotaError, psycopg.Error) as error:
            # Without notifications polling has to do; whoever claims reports the lost database.
            logger.debug("cannot listen: %s", error)
            self._forget()
        ready, _, _ = select.select(sources, [], [], max(0.0, timeout))
        if self._inbox in ready:
            with contextlib.suppress(BlockingIOError):
                while self._inbox.recv(4096):
                    pass
        if len(sources) > 1 and sources[1] in ready:
            try:
                for _ in self._connection.raw().notifies(timeout=0):
                    pass
            except (RotaError, psycopg.Error):
                self._forget()
        return bool(ready)

    def busy(self) -> None:
        """There is work in plenty: producers need not notify this worker for now."""
        if self._asleep:
            try:
                self._connection.run(_awake())
            except RotaError:
                self._forget()
            self._asleep = False

    def wake(self) -> None:
        """Wake the sleeper from another thread of this process."""
        with contextlib.suppress(BlockingIOError, OSError):
            self._bell.send(b"\0")

    def close(self) -> None:
        """Stop listening."""
        self._connection.close()
        self._bell.close()
        self._inbox.close()

    def _forget(self) -> None:
        self._connection.close()
        self._asleep = False


@operation(Begin.NOTHING)
def _asleep(queues: Sequence[str]) -> Steps[None]:
    yield LISTEN()
    yield ASLEEP(queues=list(queues))


@operation(Begin.NOTHING)
def _awake() -> Steps[None]:
    yield AWAKE()
