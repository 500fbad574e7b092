"""Sleeping on a connection, so that another thread of this process can end the sleep.

A socket pair and not a pipe: select() takes nothing else on Windows.
"""

import contextlib
import select
import socket
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import psycopg


class Slept(NamedTuple):
    """What ended a sleep; neither: the time was up."""

    rung: bool
    readable: bool


class Bell:
    """Rung by one thread to end another one's sleep."""

    def __init__(self) -> None:
        self._inbox, self._bell = socket.socketpair()
        self._inbox.setblocking(False)
        self._bell.setblocking(False)

    def sleep(
        self, connection: "psycopg.Connection[tuple[object, ...]] | None", seconds: float
    ) -> Slept:
        """Sleep until the bell is rung, the connection has something to read, or time is up."""
        sources: list[socket.socket | int] = [self._inbox]
        if connection is not None:
            sources.append(connection.fileno())
        ready, _, _ = select.select(sources, [], [], max(0.0, seconds))
        rung = self._inbox in ready
        if rung:
            with contextlib.suppress(BlockingIOError):
                while self._inbox.recv(4096):
                    pass
        return Slept(rung, len(ready) > rung)

    def ring(self) -> None:
        """End the sleep, or the next one; from any thread."""
        with contextlib.suppress(BlockingIOError, OSError):
            self._bell.send(b"\0")

    def close(self) -> None:
        """Give the sockets back; after the last sleep."""
        self._bell.close()
        self._inbox.close()
