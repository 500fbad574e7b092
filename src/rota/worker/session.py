"""The worker's session: its signs of life, and what it does when they did not get through.

A worker without jobs, one of several, gives a sign of life every second time only. This delays no
takeover, which is counted from the last sign; and it gives the next one as soon as it has jobs.

The thread and its connection do nothing else, so a handler that blocks the event loop or a slow
claim cannot starve it. By its own monotonic clock, counted from before the last renewal that
succeeded was sent, the worker knows when others may take its jobs over; then it stops them itself
and goes on under a new session, also while the renewal hangs in a silent network (`Deadline`). If
the machine slept through that moment, the next renewal says so, and until then the fence in the
store refuses what it reports.
"""

import logging
import os
import socket
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from rota.config import WorkerConfig
from rota.dispatch import Events
from rota.errors import RotaError
from rota.events import SessionLost
from rota.model.job import SessionId, SessionInfo
from rota.model.queue_settings import QueueSettings
from rota.store.protocol import Store
from rota.worker.deadline import Deadline
from rota.worker.leases import Leases
from rota.worker.loop import Repeating, finish, hurried, repeat
from rota.worker.peers import Peers
from rota.worker.switchboard import Switchboard

if TYPE_CHECKING:
    from rota.cron.entry import CronEntry

logger = logging.getLogger("rota")

BREATH = 0.05
"""Seconds that a worker without jobs lets pass between the first ones and its sign of life."""


class Session:
    """Keeps one session alive after another. `current` is `None` while there is none.

    `tasks` are those the worker knows; `peers` are the other workers.
    """

    def __init__(
        self,
        store: Store,
        config: WorkerConfig,
        events: Events,
        switchboard: Switchboard,
        *,
        leases: Leases,
        entries: "Sequence[CronEntry]" = (),
        tasks: Collection[str] = (),
    ) -> None:
        self.current: SessionId | None = None
        self._store = store
        self._connection = store.connect("session")
        self._config = config
        self._events = events
        self._switchboard = switchboard
        self._leases = leases
        self.peers = Peers(config.queues, config.session_timeout)
        self._tasks = tasks
        self.tasks = tasks
        self._learnt: Mapping[str, QueueSettings] = {}
        self._info = SessionInfo(
            socket.gethostname(),
            os.getpid(),
            config.queues,
            config.session_timeout,
        )
        self._changed = False
        self._entries = entries
        self._deadline = Deadline(self._miss, config.heartbeat)
        self._ends = threading.Lock()
        self._left: list[SessionId] = []
        self._stopping = threading.Event()
        self._stirred = threading.Event()
        self._thread: Repeating | None = None

    def open(self) -> SessionId:
        """Register the worker, read what is set for queues, and renew from now on.

        Raises:
            StoreError: The database cannot be reached or refuses.
        """
        session = self._register()
        self._hear(self._connection.run(self._store.queue_settings()))
        self._deadline.start()
        self._thread = repeat(
            "session", self._step, self._stopping, self._events, self._switchboard.refuse
        )
        return session

    def close(self) -> None:
        """End the session in order; what it still holds goes back unspent."""
        self._stopping.set()
        self._stirred.set()
        if self._thread is not None:
            finish(self._thread, self._connection)
        self._deadline.stop()
        session, self.current = self.current, None
        if session is not None:
            try:
                with hurried(self._connection):
                    self._connection.run(self._store.close_session(session))
            except RotaError as error:
                logger.warning("the session could not be closed, others will rescue it: %s", error)
        self._connection.close()

    def leave_out(self, unable: Collection[str]) -> None:
        """These are the tasks that the worker cannot run now, though it knows them; others see that."""
        self.tasks = [name for name in self._tasks if name not in unable] if unable else self._tasks
        self._changed = True
        self.stir()

    def stir(self) -> None:
        """The worker has jobs again: from now on it gives signs of life at the full pace."""
        if not self._stirred.is_set():
            self._stirred.set()

    @property
    def thread(self) -> Repeating | None:
        """What renews it, once it has begun."""
        return self._thread

    @property
    def held(self) -> SessionId | None:
        """The session, as long as no other worker may take its jobs over."""
        return None if self._deadline.passed else self.current

    def _register(self) -> SessionId:
        sent = time.monotonic()
        self._changed = False
        info = structs.replace(self._info, tasks=tuple(sorted(self.tasks)))
        session = self._connection.run(self._store.open_session(info))
        if self._entries:
            again = self._thread is not None
            declared = self._store.cron.declare(session, self._entries, again=again)
            if changed := self._connection.run(declared):
                logger.info("cron entries written: %s", ", ".join(changed))
        self.current = session
        self._deadline.set(sent + self._config.session_timeout)
        return session

    def _step(self) -> None:
        self._deadline.begin()
        if self.current is None:
            self._register()
        else:
            self._renew(self.current)
            self._give_back()
        self._deadline.end()
        if self.current is not None:
            self._rest(self.current)

    def _rest(self, session: SessionId) -> None:
        """Until the next sign of life; one of many idle workers leaves out every second one."""
        self._stirred.clear()
        self._stopping.wait(self._config.heartbeat)
        idle = self.peers.share > 1 and not self._leases.unsettled(session)
        if idle and self._stirred.wait(self._config.heartbeat):
            # The jobs that have come begin first.
            self._stopping.wait(BREATH)

    def _renew(self, session: SessionId) -> None:
        sent = time.monotonic()
        renewal = self._connection.run(self._store.renew(session))
        if not renewal.alive:
            self._lose(session)
            return
        if self._changed:
            self._changed = False
            self._connection.run(self._store.know(session, tuple(sorted(self.tasks))))
        with self._ends:
            if self.current != session:
                return  # the answer came after the deadline
            self._deadline.set(sent + self._config.session_timeout)
        if self.peers.hear(session, renewal):
            self._switchboard.look()
        if renewal.cancel:
            self._switchboard.cancel(renewal.cancel)
        if renewal.queues != self._learnt:
            self._hear(renewal.queues)

    def _give_back(self) -> None:
        """Close sessions that were lost while their worker lives: no job is to blame for that.

        A heartbeat after the first answer: what had ended in the meantime has been settled by then.
        """
        while self._left:
            self._connection.run(self._store.close_session(self._left[0]))
            del self._left[0]

    def _hear(self, said: Mapping[str, QueueSettings]) -> None:
        """Pass on what is set for queues."""
        self._learnt = said
        self._switchboard.learn(said)

    def _miss(self) -> None:
        """The deadline has passed; called in its thread."""
        if (session := self.current) is not None and self._lose(session):
            self._connection.interrupt(cut=True)

    def _lose(self, session: SessionId) -> bool:
        """Others may run the session's jobs; whether this is the first to say so."""
        with self._ends:
            if self.current != session:
                return False
            self.current = None
            self._left.append(session)
        self._events.emit(SessionLost(session))
        self._switchboard.lose(session)
        return True
