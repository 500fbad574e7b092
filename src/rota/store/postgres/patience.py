"""Waiting for the server's answers, but not for those of a server that is not there any more.

A network that drops packets says nothing, and a server that hangs keeps its connections open. The
system's own time limits (`REACH`) notice the first, where data are under way or a connection is
idle. Whatever keeps silent beyond that is asked after on another connection: no answer there, or
twice that the server waits for this client while the client waits for the server, and this
connection has failed. A statement that the server works on, or that waits for a lock, may take as
long as it needs.
"""

import time
from collections.abc import Generator
from contextlib import closing
from typing import Any, TypeVar

import psycopg
from psycopg import errors

T = TypeVar("T")

REACH = {
    # Seconds within which a connection must be made, to each address of each host.
    "connect_timeout": 10,
    # An idle connection whose other end is gone is noticed within 25 seconds.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    # Milliseconds within which the other end must have received what was sent; Linux and Windows.
    "tcp_user_timeout": 15_000,
}
"""What libpq is told about the network, as far as the URL does not say it."""

SILENCE = 10.0
"""Seconds without an answer after which the server is asked after; then twice as many, and so on."""

LONGEST_SILENCE = 60.0
"""Seconds between two such questions at the most."""

ASKING = 5
"""Seconds within which a new connection must be made, and then its question answered."""

Anything = Generator[Any, Any, T]


class PatientConnection(psycopg.Connection[tuple[Any, ...]]):
    """psycopg's connection; waiting on it ends where the server is gone.

    `pooled`: the server's process for it changes, and cannot be asked after.
    """

    pooled = False

    def wait(self, gen: Anything[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Wait for what the driver waits for.

        Raises:
            psycopg.OperationalError: The server keeps silent, and is gone.
        """
        return super().wait(self._heeding(gen), interval, timeout)

    def _heeding(self, gen: Anything[T]) -> Anything[T]:
        # The driver looks up ten times a second while nothing comes, and says so with a zero.
        patience, idle = SILENCE, 0
        try:
            wanted = next(gen)
            began = 0.0
            while True:
                ready = yield wanted
                if ready:
                    began = 0.0
                elif not began:
                    began = time.monotonic()
                elif time.monotonic() - began >= patience:
                    idle = idle + 1 if self._waits_for_us() else 0
                    if idle > 1:
                        self._fail("its answer was lost on the way")
                    patience = SILENCE if idle else min(2 * patience, LONGEST_SILENCE)
                    began = time.monotonic()
                wanted = gen.send(ready)
        except StopIteration as end:
            result: T = end.value
            return result

    def _waits_for_us(self) -> bool:
        """Whether the server says that it has nothing to do for this connection.

        Raises:
            psycopg.OperationalError: It says nothing.
        """
        given: dict[str, Any] = {**self.info.get_parameters(), "connect_timeout": ASKING}
        try:
            with closing(
                _Asking.connect(password=self.info.password, autocommit=True, **given)
            ) as new:
                found = new.execute(
                    "SELECT state LIKE 'idle%%' FROM pg_stat_activity WHERE pid = %s",
                    [self.info.backend_pid],
                    prepare=False,
                ).fetchone()
        except (errors.ConnectionTimeout, _NoAnswer):
            self._fail("nor on another connection")
        except psycopg.Error:
            return False  # whatever it refuses: it is there
        return not self.pooled and found is not None and found[0] is True

    def _fail(self, why: str) -> None:
        message = f"no answer within {SILENCE:g} seconds, {why}"
        raise psycopg.OperationalError(message)


class _NoAnswer(Exception):
    """A question was not answered in time."""


class _Asking(psycopg.Connection[tuple[Any, ...]]):
    """A connection for one short question."""

    def wait(self, gen: Anything[T], interval: float = 0.1, timeout: float | None = None) -> T:
        return super().wait(_brief(gen), interval, timeout)


def _brief(gen: Anything[T]) -> Anything[T]:
    deadline = time.monotonic() + ASKING
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() >= deadline:
                raise _NoAnswer
            wanted = gen.send(ready)
    except StopIteration as end:
        result: T = end.value
        return result
