"""Jobs that are completed in a transaction of which the worker does not see the end.

Once it is committed, the job's lease is gone. Once it is rolled back, the lease is there and free,
and the run counts as failed. Until then the lease is locked, and all that helps is to look again:
no message comes when a prepared transaction ends. When the worker stops, its session stays behind
for such jobs, and other workers rescue what is rolled back later.
"""

import logging
import threading
from typing import NamedTuple

from rota.app.job_transaction import Completion, Stage
from rota.dispatch import Events
from rota.errors import RotaError
from rota.model.job import ClaimedJob
from rota.model.settlement import Settled, Settlement
from rota.store.connections import Connection
from rota.store.protocol import Store
from rota.worker.leases import Leases
from rota.worker.loop import finish, repeat
from rota.worker.switchboard import Switchboard

logger = logging.getLogger("rota")

PAUSE = 1.0
"""Seconds between two looks."""


class Waiting(NamedTuple):
    """A job, how it is completed, and what is written where it was not."""

    job: ClaimedJob
    completion: Completion
    otherwise: Settlement


class InDoubt:
    """A thread that looks after such jobs; there is none before the first of them."""

    def __init__(
        self, store: Store, events: Events, leases: Leases, switchboard: Switchboard
    ) -> None:
        self._store = store
        self._events = events
        self._leases = leases
        self._switchboard = switchboard
        self._lock = threading.Lock()
        self._came: list[Waiting] = []
        self._waiting: list[Waiting] = []
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._connection: Connection | None = None
        self._thread: threading.Thread | None = None

    def put(self, job: ClaimedJob, completion: Completion, otherwise: Settlement) -> None:
        """Look after a job from now on."""
        with self._lock:
            self._came.append(Waiting(job, completion, otherwise))
            if self._thread is None:
                self._connection = self._store.connect("in doubt")
                self._thread = repeat(
                    "transactions", self._step, self._stopping, self._events, _refuse
                )
        self._news.set()

    def stop(self) -> None:
        """Look once more; the session's end must not come before."""
        self._stopping.set()
        self._news.set()
        if self._thread is None or self._connection is None:
            return
        finish(self._thread, self._connection)
        try:
            self._look(self._connection)
        except RotaError as error:
            logger.warning("transactions: %s", error)
        self._connection.close()
        for waiting in self._waiting:
            logger.warning(
                "job %d: the transaction that completes it is still open or prepared; other "
                "workers run the job again if it is rolled back",
                waiting.job.id,
            )

    def _step(self) -> None:
        self._news.wait(PAUSE if self._waiting else None)
        self._news.clear()
        if self._connection is not None:
            self._look(self._connection)

    def _look(self, connection: Connection) -> None:
        with self._lock:
            self._waiting += self._came
            self._came.clear()
        for waiting in tuple(self._waiting):
            job, completion, otherwise = waiting
            unseen = completion.stage is Stage.UNSEEN
            settled = (self._settle_unseen if unseen else self._settle)(connection, waiting)
            if settled is None:
                continue
            self._waiting.remove(waiting)
            self._switchboard.settled()
            self._leases.settled(otherwise.lease)
            self._events.following(settled.following)
            if not settled and not unseen:
                logger.warning(
                    "job %d (%s): the transaction that was to complete it was rolled back",
                    job.id,
                    job.task,
                )
            written = completion.settlement if settled else otherwise
            if written is not None:
                self._events.settled(job, written)

    def _settle(self, connection: Connection, waiting: Waiting) -> Settled | None:
        _, completion, otherwise = waiting
        return connection.run(self._store.settle_free(completion.session, otherwise))

    def _settle_unseen(self, connection: Connection, waiting: Waiting) -> Settled | None:
        """Settle under the lease that the job has, which the lost process may just be changing."""
        job, completion, otherwise = waiting
        lease = connection.run(self._store.lease_of(completion.session, job.id))
        if lease is None:
            return Settled([job.id])
        settled = self._settle(
            connection, waiting._replace(otherwise=otherwise._replace(lease=lease))
        )
        return None if settled else settled


def _refuse(error: RotaError) -> None:
    """Only log: a worker whose settlements are refused for good ends because of its settler."""
    logger.error("transactions: %s", error)
