"""Waking: a worker with nothing to do sleeps until a producer commits.

One job is enough for one worker. So of the workers that serve the same queues and know the same
tasks, a group, one has the watch, an advisory lock. While it may sleep it listens and holds a
shared advisory lock per queue. A producer tries that lock exclusively and notifies only if it
cannot have it: NOTIFY serialises the commits of the whole database, so none is sent while all
workers are busy. Behind a transaction pooler LISTEN is swallowed without an error; the worker's
polling catches what no notification announces.

A worker that has as much as it can take hands the watch on, by a notification of another kind. To
hear it, others listen too. But up to PostgreSQL 18 each notification wakes every connection that
listens, whatever it waits for, which costs the server more than the job. So a worker that has heard
of a few jobs, which were not for it, turns a deaf ear for a while, and tries once a second to have
the watch. Where the watch ends without a word, the next worker that looks after the database takes
it (`Look.unwatched`). A process that is frozen keeps it, until its session is rescued: that ends
the connection.

A worker listens on the connection that claims: the server's process that has just been woken by the
notification claims sooner than one that still sleeps.
"""

import logging
import time
from collections.abc import Collection, Sequence
from typing import Any
from zlib import crc32

import psycopg

from rota.errors import RotaError
from rota.model.job import SessionId
from rota.model.patterns import is_pattern, meaning
from rota.store.connections import Wake
from rota.store.operation import Begin, Steps, operation
from rota.store.postgres.bell import Bell
from rota.store.postgres.connection import PostgresConnection
from rota.store.postgres.jobs import QUEUE_NAMES
from rota.store.postgres.statements import sql
from rota.store.queue_names import meant

LISTEN = sql("wake/listen")
UNLISTEN = sql("wake/unlisten")
WATCH = sql("wake/watch")
WATCH_OF = sql("wake/watch_of")
ASLEEP = sql("wake/asleep")
AWAKE = sql("wake/awake")

logger = logging.getLogger("rota")

FRESH = 1.0
"""Seconds for which a worker that names its queues by patterns goes on with those it has found."""

FOR_NOTHING = 3
"""Notifications `WITHIN` so many seconds after which a worker that has not the watch hears no more:
to try for the watch costs as much as to hear of a few jobs.
"""

WITHIN = 1.0

DEAF = 8.0
"""Seconds for which it does not."""

RETRY = 1.0
"""Seconds between two attempts of a worker that hears no more to have the watch."""

RARELY = 30.0
"""The same for a listener, which hears when the watch is handed on; looks reveal a silent end."""


def group(queues: Collection[str], tasks: Collection[str] | None) -> int:
    """The number of the workers of these queues and tasks, for a lock: 32 bits with a sign."""
    names = [*sorted({*queues}), "", *sorted({*(tasks or ())})]
    return crc32("\0".join(names).encode()) - 2**31


class PostgresWaker:
    """What a worker sleeps on; see `rota.store.connections.Waker`."""

    def __init__(
        self,
        connection: PostgresConnection,
        queues: Sequence[str],
        tasks: Collection[str] | None,
        *,
        listen: bool,
    ) -> None:
        self.connection = connection
        self._wanted = list(queues)
        self._patterns = [*filter(is_pattern, queues)]
        self._group = group(queues, tasks)
        self._session: SessionId | None = None
        self._watches = False
        self._tried_at = 0.0
        self._awaited: set[str] = set()
        self._found_at = 0.0
        self._listen = listen
        self._listening: psycopg.Connection[tuple[Any, ...]] | None = None
        self._hears: psycopg.Connection[tuple[Any, ...]] | None = None
        self._since = 0.0
        self._for_nothing = 0
        self._counted_since = 0.0
        self._deaf_until = 0.0
        self._bell = Bell()

    def wait(self, timeout: float) -> Sequence[Wake]:
        """Sleep until woken or for `timeout` seconds; what woke it."""
        deadline = time.monotonic() + timeout
        while True:
            if wakes := self._news():
                return wakes
            until = min(deadline, self._tried_at + RETRY) if self._deaf_until else deadline
            slept = self._bell.sleep(self._listening, until - time.monotonic())
            if slept.rung:
                # There may be something that no worker was told of: then none has the watch.
                self._tried_at = self._deaf_until = 0.0
                return [Wake()]
            if not slept.readable and until == deadline:
                return []

    def _news(self) -> Sequence[Wake]:
        """Let producers know that this worker sleeps, if it has the watch; and what it has heard."""
        if not self._listen:
            return []
        now = time.monotonic()
        try:
            # A claim may have opened the connection anew meanwhile.
            if self._listening is not (raw := self.connection.raw()):
                self._watches = False
                self._begin(now)
                self._listening, self._since = raw, time.monotonic()
            elif self._watches:
                if self._patterns and now >= self._found_at + FRESH:
                    self._awaited |= self._found(self._awaited)
            elif now >= self._tried_at + (RETRY if self._deaf_until else RARELY) and self._begin(
                now
            ):
                return [Wake()]
            wakes = self._notified()
            lost = self.connection.raw() is not self._listening
        except (RotaError, psycopg.Error) as error:
            # Polling has to do; the next claim reports the lost database.
            logger.debug("cannot listen: %s", error)
            self._forget()
            return []
        if lost:
            # Another one was opened in the middle of all this, on which it does not listen yet.
            self._forget()
            return [Wake()]
        return wakes

    def _begin(self, now: float) -> bool:
        """Listen, unless this worker is deaf, and try to have the watch; whether it has it."""
        if now >= self._deaf_until:
            self._hear()
        return self._watch(now)

    def _hear(self) -> None:
        if self._hears is not (raw := self.connection.raw()):
            self.connection.run(_listen())
            self._hears = raw
        self._deaf_until = 0.0

    def _watch(self, now: float) -> bool:
        """Have the watch if no other worker of the group has it."""
        self._tried_at = now
        if self.connection.run(_watch(self._group)):
            self._hear()
            if self._session is not None:
                self.connection.run(_watch_of(self._session))
            self._awaited = self._found(set())
            self._watches = True
            self._since = time.monotonic()
        return self._watches

    def _found(self, before: Collection[str]) -> set[str]:
        """Await jobs of all queues but those that are awaited already; which these are."""
        self._found_at = time.monotonic()
        return self.connection.run(_asleep(self._wanted, before))

    def _notified(self) -> list[Wake]:
        """The notifications for these queues, or for all."""
        heard = [notice.payload for notice in self.connection.raw().notifies(timeout=0)]
        wakes = [wake for wake in map(self._meaning, heard) if wake is not None]
        if self._for_nothing >= FOR_NOTHING and not self._watches and not self._deaf_until:
            self.connection.run(_unlisten())
            self._hears = None
            self._for_nothing = 0
            self._deaf_until = time.monotonic() + DEAF
        return wakes

    def _meaning(self, payload: str) -> Wake | None:
        """What a notification means to this worker; `None`: nothing."""
        kind, _, name = payload.partition(" ")
        if kind == "watch":
            free = name == str(self._group) and not self._watches
            return Wake() if free and self._watch(time.monotonic()) else None
        if kind and not self._watches:
            self._count_for_nothing(time.monotonic())
        if name and meaning(self._wanted, name) is None:
            return None
        return Wake(name, self._watches or not kind, timed=not kind.startswith("+"))

    def _count_for_nothing(self, now: float) -> None:
        if now >= self._counted_since + WITHIN:
            self._for_nothing, self._counted_since = 0, now
        self._for_nothing += 1

    def belong(self, session: SessionId) -> None:
        """From now on a rescue of this session ends the watch."""
        if session != self._session:
            # It says so when it takes the watch again.
            self.busy()
            self._session = session

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
                if self._watches:
                    self.connection.run(_awake(self._group))
            except RotaError:
                self._forget()
                return False
        self._listening, self._watches = None, False
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
        self._listening, self._watches = None, False
        # It listens again as soon as that is possible.
        self._deaf_until = 0.0


@operation(Begin.NOTHING)
def _listen() -> Steps[None]:
    yield LISTEN()


@operation(Begin.NOTHING)
def _unlisten() -> Steps[None]:
    yield UNLISTEN()


@operation(Begin.NOTHING)
def _watch(group: int) -> Steps[bool]:
    [(has,)] = yield WATCH(group=group)
    return bool(has)


@operation(Begin.NOTHING)
def _watch_of(session: SessionId) -> Steps[None]:
    yield WATCH_OF(session=session)


@operation(Begin.NOTHING)
def _asleep(wanted: Sequence[str], before: Collection[str]) -> Steps[set[str]]:
    queues = {*(yield from meant(wanted, QUEUE_NAMES))}.difference(before)
    if queues:
        yield ASLEEP(queues=sorted(queues))
    return queues


@operation(Begin.NOTHING)
def _awake(group: int) -> Steps[None]:
    yield AWAKE(group=group)
