"""The forwarder: a thread that sends the jobs of one relay.

It hands over a batch after the other (`rota.store.relaying`): there is one at work for a relay,
whatever the number of workers, and no later job overtakes one that could not be sent. Where the
target is away the jobs are available, and it tries again after growing pauses.
"""

import threading
import time
from collections.abc import Collection

from rota.config import WorkerConfig
from rota.dispatch import Events
from rota.errors import LeaseLost
from rota.events import JobCompleted, RelayInterrupted, SettlementsWritten
from rota.model.job import JobId
from rota.model.states import Move
from rota.relay.relay import Relay
from rota.relay.target import TakenOver
from rota.store.protocol import Store
from rota.store.relaying import Relaying
from rota.worker.claim import SHORTEST_NAP
from rota.worker.loop import Repeating, finish, repeat
from rota.worker.sending import CannotSend, Sending
from rota.worker.session import Session
from rota.worker.switchboard import Switchboard

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 30.0
"""Seconds between two attempts to send while the target is away."""


class Forwarder:
    """Sends the jobs of a relay.

    Raises:
        ConfigError: The target's client is not installed.
    """

    def __init__(
        self,
        relay: Relay,
        store: Store,
        config: WorkerConfig,
        events: Events,
        *,
        session: Session,
        switchboard: Switchboard,
    ) -> None:
        self._relay, self._store, self._config, self._events = relay, store, config, events
        self._session, self._switchboard = session, switchboard
        self._sending = Sending(relay, relay.target.open(relay.name, self._unsettled))
        self._relaying = Relaying(relay.queue, relay.name, relay.batch, relay.target.timeout)
        self._waker = store.waker([relay.queue], [relay.name])
        self._connection = self._waker.connection
        self._stopping = threading.Event()
        self._thread: Repeating | None = None
        self._nap = SHORTEST_NAP
        self._pause = 0.0

    def start(self) -> None:
        """Begin to send."""
        self._thread = repeat(
            f"relay {self._relay.name}",
            self._step,
            self._stopping,
            self._events,
            self._switchboard.refuse,
        )

    def ask_to_stop(self) -> None:
        """Begin with no other batch."""
        self._stopping.set()
        self._waker.wake()

    def stop(self) -> None:
        """Send no more; what is being sent may end, for as long as the target may take."""
        self.ask_to_stop()
        if self._thread is not None:
            self._thread.join(self._relay.target.timeout)
            finish(self._thread, self._connection)
        self._sending.sender.close()
        self._waker.close()

    @property
    def thread(self) -> Repeating | None:
        """What does its work, once it has begun."""
        return self._thread

    def _step(self) -> None:
        session = self._session.current
        if session is None:
            self._stopping.wait(self._config.heartbeat)
            return
        self._waker.belong(session)
        began = time.monotonic()
        handing = self._store.hand_over(session, self._relaying, self._sending)
        try:
            count = self._connection.run(handing)
        except LeaseLost:
            self._sending.sender.close()
            # The session's own thread finds out that it is lost, and opens another one.
            self._stopping.wait(self._config.heartbeat)
        except CannotSend as error:
            self._sending.sender.close()
            if not isinstance(error.error, TakenOver):
                self._interrupted(error.error)
        except BaseException:
            # Perhaps the settlement is written, perhaps not: what was sent has to be found out.
            self._sending.sender.close()
            raise
        else:
            self._pause = 0.0
            if count:
                self._tell(count, time.monotonic() - began)
            self._rest(count)

    def _interrupted(self, error: Exception) -> None:
        self._pause = min(max(2 * self._pause, FIRST_PAUSE), LONGEST_PAUSE)
        self._events.emit(RelayInterrupted(self._relay.name, error, self._pause))
        self._stopping.wait(self._pause)

    def _tell(self, count: int, seconds: float) -> None:
        """Tell what has been written."""
        quiet = not self._events.listeners(JobCompleted)
        for job, settlement in self._sending.settled():
            if settlement.move is not Move.COMPLETE or not quiet:
                self._events.settled(job, settlement)
        if self._events.wanted(SettlementsWritten):
            self._events.emit(SettlementsWritten(count, seconds))

    def _rest(self, count: int) -> None:
        """Wait for more, unless there is more already."""
        if count:
            self._nap = SHORTEST_NAP
        if count >= self._relay.batch:
            self._waker.busy()
        elif self._waker.wait(self._nap):
            self._nap = SHORTEST_NAP
        else:
            self._nap = min(2 * self._nap, self._config.poll)

    def _unsettled(self, jobs: Collection[JobId]) -> Collection[JobId]:
        found = self._store.run(self._store.get(sorted(jobs)))
        return {job.id for job in found if not job.state.finished}
