"""One look at the database a second, which everything that is open shares.

Ten people who watch cost what one costs. Rates are the differences between looks, as in `rota top`.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from rota.database.database import Database
from rota.doctor.examine import judge
from rota.doctor.finding import Finding, worst_first
from rota.top.history import History
from rota.top.queues import QueueRow, queue_rows
from rota.top.snapshot import Snapshot, look

HEALTH_EVERY = 10.0
"""Seconds between two examinations, which read more than a look does, and between two looks at what is allowed."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One look, and the queues in it with their rates."""

    snapshot: Snapshot
    rows: Sequence[QueueRow]


class Looks:
    """Looks when it is asked, at most every so many seconds."""

    def __init__(self, database: Database, every: float) -> None:
        self._database = database
        self._every = every
        self._lock = threading.Lock()
        self._product = ""
        self._history = History()
        self._seen: Seen | None = None
        self._health: tuple[float, list[Finding]] | None = None
        self._rights: tuple[float, bool] | None = None

    def now(self) -> Seen:
        """What is known now.

        Raises:
            StoreUnavailable: The database cannot be reached.
        """
        with self._lock:
            seen = self._seen
            if seen is not None and time.monotonic() - seen.snapshot.moment < self._every:
                return seen
            store = self._database.store
            if not self._product:
                self._product = self._database.run(store.product())
            snapshot = look(store, self._database, self._product)
            self._history.add(snapshot.moment, snapshot.queues)
            self._seen = Seen(snapshot, queue_rows(snapshot, self._history))
            return self._seen

    def read_only(self) -> bool:
        """Whether the database can only be read.

        Raises:
            StoreUnavailable: The database cannot be reached.
        """
        with self._lock:
            if self._rights is None or time.monotonic() - self._rights[0] >= HEALTH_EVERY:
                found = self._database.run(self._database.store.read_only())
                self._rights = time.monotonic(), found
            return self._rights[1]

    def findings(self) -> list[Finding]:
        """What `rota doctor` finds, the worst first, but for whether notifications arrive.

        Raises:
            StoreUnavailable: The database cannot be reached.
        """
        with self._lock:
            if self._health is not None and time.monotonic() - self._health[0] < HEALTH_EVERY:
                return self._health[1]
            facts = self._database.run(self._database.store.health())
            # Whether notifications arrive takes two connections and up to a second to find out.
            judged = judge(facts, hears=None)
            found = worst_first(one for one in judged if one.subject != "notify")
            self._health = time.monotonic(), found
            return found
