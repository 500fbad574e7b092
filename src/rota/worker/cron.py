"""Watching the cron entries: when the next one is due, and making its jobs then."""

import logging
import math
import time

from rota.config import WorkerConfig
from rota.dispatch import Events
from rota.errors import StoreError, StoreUnavailable
from rota.events import CronJobsMade, CronRunsMissed, JobsEnqueued
from rota.model.look import Look
from rota.store.connections import Connection
from rota.store.protocol import Store
from rota.worker.loop import REMINDER
from rota.worker.switchboard import Switchboard

logger = logging.getLogger("rota")

NEWS = 1.0
"""Seconds for which a worker knows when the next entry is due: that costs the more, the more entries
there are, and under load a worker looks twenty times a second."""

PAUSE = 0.05
"""Seconds between two tries to make the jobs of an entry that is locked elsewhere; then longer, up to
the usual pause between two looks. Whenever another entry comes due it is tried, too."""


class CronWatch:
    """What one worker knows of the entries; used by its upkeep."""

    def __init__(
        self,
        store: Store,
        connection: Connection,
        config: WorkerConfig,
        events: Events,
        switchboard: Switchboard,
    ) -> None:
        self._store = store
        self._connection = connection
        self._config = config
        self._events = events
        self._switchboard = switchboard
        self._ask_at = 0.0
        self._due_at: float | None = None
        self._later_at = math.inf
        self._pause = PAUSE
        self._aside: list[int] = []
        self._reminded: dict[str, float] = {}

    def wants_to_know(self) -> bool:
        """Whether the next look shall say when the next entry is due."""
        return time.monotonic() >= self._ask_at

    def step(self, look: Look, *, known: bool) -> float | None:
        """Make what is due; in how many seconds to come back. `known`: the look was asked."""
        now = time.monotonic()
        if known:
            self._ask_at = now + min(NEWS, self._config.poll)
            self._due_at = None if look.cron is None else now + look.cron
            self._later_at = math.inf if look.cron_later is None else now + look.cron_later
            if look.cron != 0:
                # What could not be made before has been dealt with.
                self._aside.clear()
                self._pause = PAUSE
        if self._due_at is None:
            return None
        if now < self._due_at:
            return self._due_at - now
        if self._make():
            # There may be more, and these entries have a next due time.
            self._ask_at = 0.0
            return 0.0
        # Another worker is at it, or a transaction that changes the entry has not ended.
        now = time.monotonic()
        again = min(now + self._pause, max(now + PAUSE, self._later_at))
        self._due_at = self._ask_at = again
        self._pause = min(2 * self._pause, self._config.poll)
        return self._due_at - now

    def _make(self) -> bool:
        """Make the jobs of due entries; whether any was dealt with, or tried for the first time."""
        known = len(self._aside)
        try:
            done, self._aside = self._connection.run(self._store.cron.make(aside=self._aside))
        except StoreUnavailable:
            raise
        except StoreError as error:
            # The rest of the upkeep must go on: rescuing, say.
            self._remind("(all that are due)", str(error))
            return False
        for made in done:
            if made.error is not None:
                self._remind(made.entry, made.error)
                continue
            if made.new:
                self._events.emit(JobsEnqueued(made.task, made.queue, made.new))
            if made.jobs:
                self._events.emit(CronJobsMade(made.entry, made.due, made.jobs))
            if made.missed is not None:
                logger.warning(
                    "cron entry %s: runs from %s on were missed", made.entry, made.missed
                )
                self._events.emit(CronRunsMissed(made.entry, made.missed))
        if any(made.jobs for made in done):
            self._switchboard.wake()
        return len(self._aside) > known or any(made.error is None for made in done)

    def _remind(self, entry: str, error: str) -> None:
        """Say that an entry cannot be read here: once a minute, for it stays due."""
        now = time.monotonic()
        if now >= self._reminded.get(entry, -REMINDER) + REMINDER:
            self._reminded[entry] = now
            logger.warning("cron entry %s is left to other workers: %s", entry, error)
