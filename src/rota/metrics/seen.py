"""What is seen: figures of `rota top`, cron entries, and, less often, what `rota doctor` examines.

Nothing here counts or reads the jobs. However many ask, the database is looked at once a second.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rota.cron.entry import CronRecord
from rota.database.database import Database
from rota.doctor.examine import judge
from rota.doctor.finding import Finding
from rota.store.health import Facts
from rota.top.snapshot import Snapshot, look

HEALTH_EVERY = 10.0
"""Seconds between two examinations, which read more than a look does."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One look.

    Attributes:
        took: Seconds that it took, without the examination.
        at: When it was, by this machine's clock.
        findings: Those of the newest examination, and the `facts` that it is of.
    """

    snapshot: Snapshot
    cron: Sequence[CronRecord]
    took: float
    at: datetime
    facts: Facts
    findings: Sequence[Finding]


class Sight:
    """Looks when it is asked, at most every so many seconds."""

    def __init__(self, database: Database, every: float = 1.0) -> None:
        self._database = database
        self._every = every
        self._lock = threading.Lock()
        self._seen: tuple[float, Seen] | None = None
        self._examined: tuple[float, Facts, list[Finding]] | None = None

    def now(self) -> Seen:
        """What is known now.

        Raises:
            StoreUnavailable: The database cannot be reached.
        """
        with self._lock:
            began = time.monotonic()
            if self._seen is None or began - self._seen[0] >= self._every:
                self._seen = began, self._look(began)
            return self._seen[1]

    def _look(self, began: float) -> Seen:
        store = self._database.store
        snapshot = look(store, self._database, product="")
        cron = self._database.run(store.cron.entries())
        took = time.monotonic() - began
        if self._examined is None or began - self._examined[0] >= HEALTH_EVERY:
            facts = self._database.run(store.health())
            # Whether notifications arrive takes two connections and up to a second to find out.
            found = [one for one in judge(facts, hears=None) if one.subject != "notify"]
            self._examined = began, facts, found
        _, facts, findings = self._examined
        return Seen(snapshot, cron, took, datetime.now(UTC), facts, findings)
