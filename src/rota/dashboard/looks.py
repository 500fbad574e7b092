"""One look at the database a second, which everything that is open shares.

Ten people who watch cost what one costs. Rates are the differences between looks, as in `rota top`.

A look takes milliseconds, but reads something of each queue and of each key whose jobs wait. Where
there are thousands of these it takes longer, so it is made less often, and pages show the last one
while the next is made.
"""

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from rota.database.database import Database
from rota.doctor.examine import judge
from rota.doctor.finding import Finding, worst_first
from rota.errors import RotaError
from rota.model.limit_record import LimitRecord
from rota.top.history import History
from rota.top.queues import QueueRow, queue_rows
from rota.top.snapshot import Snapshot, look

logger = logging.getLogger("rota")

HEALTH_EVERY = 10.0
"""Seconds between two examinations, which read more than a look, and looks at what is allowed."""

SHARE = 20.0
"""A look is followed by a pause that is so many times as long."""

LIGHT = 100.0
"""For looks of milliseconds the factor is this one instead: an open page costs 1% of a core."""

LONGEST_LIGHT = 3
"""That longer pause ends after so many times the usual one."""

PATIENCE = 1.0
"""Seconds that a look may take for someone to wait for it after each thing that is done."""


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
        self._outdated = False
        self._health: tuple[float, list[Finding]] | None = None
        self._rights: tuple[float, bool] | None = None
        self._limits: dict[str, tuple[float, Sequence[LimitRecord]]] = {}
        self._looking = threading.Lock()

    def now(self) -> Seen:
        """What is known now.

        Raises:
            StoreUnavailable: The database cannot be reached.
        """
        with self._lock:
            seen = self._seen
            if seen is None or not self._every:
                return self._look()
            age = time.monotonic() - seen.snapshot.moment
            took = seen.snapshot.took
            pause = SHARE * took
            apart = max(self._every, pause, min(LIGHT * took, LONGEST_LIGHT * self._every))
            if age < apart and not self._outdated:
                return seen
            if pause <= self._every:
                return self._look()
        if self._looking.acquire(blocking=False):
            threading.Thread(target=self._look_aside, name="rota-look", daemon=True).start()
        return seen

    def _look(self) -> Seen:
        return self._keep(self._snapshot())

    def _snapshot(self) -> Snapshot:
        store = self._database.store
        if not self._product:
            self._product = self._database.run(store.product())
        return look(store, self._database, self._product)

    def _keep(self, snapshot: Snapshot) -> Seen:
        self._history.add(snapshot.moment, snapshot.queues)
        self._seen = Seen(snapshot, queue_rows(snapshot, self._history))
        return self._seen

    def _look_aside(self) -> None:
        """Look while pages show what was seen last; where that fails, the next page tries again."""
        with self._lock:
            before, self._outdated = self._seen, False
        try:
            snapshot = self._snapshot()
            with self._lock:
                # Unless something was done meanwhile, and was looked at.
                if self._seen is before:
                    self._keep(snapshot)
        except RotaError:
            self._outdated = True
            logger.warning("the dashboard could not look at the database", exc_info=True)
        finally:
            self._looking.release()

    def forget(self) -> None:
        """Look anew when asked next: something was done.

        Where looks take long, the last one is shown meanwhile.
        """
        with self._lock:
            self._health = None
            self._limits = {}
            if self._seen is not None and self._seen.snapshot.took > PATIENCE:
                self._outdated = True
            else:
                self._seen = None

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
            if self._health is not None and time.monotonic() < self._health[0]:
                return self._health[1]
            began = time.monotonic()
            facts = self._database.run(self._database.store.health())
            # Whether notifications arrive takes two connections and up to a second to find out.
            judged = judge(facts, hears=None)
            found = worst_first(one for one in judged if one.subject != "notify")
            self._health = _until(began, HEALTH_EVERY), found
            return found

    def limits(self, most: int, after: str) -> Sequence[LimitRecord]:
        """The limits in use whose keys come after `after`.

        Raises:
            StoreUnavailable: The database cannot be reached.
        """
        with self._lock:
            known = self._limits.get(after)
            if known is not None and time.monotonic() < known[0]:
                return known[1]
            began = time.monotonic()
            found = self._database.run(self._database.store.limits(most, after))
            # Of a page or two: nobody looks at all of them at once.
            self._limits = dict(list(self._limits.items())[-1:]) | {
                after: (_until(began, self._every), found)
            }
            return found


def _until(began: float, every: float) -> float:
    """Until when what was looked up since then is shown."""
    now = time.monotonic()
    return now + max(every, SHARE * (now - began)) if every else now
