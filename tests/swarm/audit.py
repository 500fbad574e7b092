"""Looks into the database while work goes on: no job is in two places, counters match counting.

A restored database is wrong until the first worker has come. So what is wrong has to be so for a
while.
"""

import threading
from contextlib import suppress

import psycopg

from tests.store.postgres.counting import DIFFERENCE
from tests.swarm.cluster import Cluster

PAUSE = 3.0
"""Seconds between two looks."""

LOOKS = 3
"""So many in a row that find the same are believed."""

TWICE = "SELECT id FROM rota.job GROUP BY id HAVING count(*) > 1 ORDER BY id"


class Audit:
    """Looks again and again; `wrong` is what was believed."""

    def __init__(self, cluster: Cluster) -> None:
        self.wrong: list[str] = []
        self._cluster = cluster
        self._twice: list[set[int]] = []
        self._miscounted = 0

    def run(self, stop: threading.Event) -> None:
        """Look until it is enough."""
        while not stop.wait(PAUSE):
            for look in (self._places, self._counts):
                # The server may be away just now.
                with suppress(psycopg.Error):
                    look()

    def _places(self) -> None:
        with self._cluster.admin() as admin:
            found = {int(str(row[0])) for row in admin.execute(TWICE).fetchall()}
        self._twice = [*self._twice[1 - LOOKS :], found]
        if len(self._twice) == LOOKS and (same := set.intersection(*self._twice)):
            self._say(f"jobs in two places at once: {sorted(same)[:5]}")

    def _counts(self) -> None:
        with self._cluster.admin() as admin:
            rows = admin.execute(DIFFERENCE).fetchall()
        wrong = [row for row in rows if row[2] not in {"completed", "cancelled"}]
        self._miscounted = self._miscounted + 1 if wrong else 0
        if self._miscounted == 2 * LOOKS:
            self._say(f"counters have differed from counting for a while: {wrong[:5]}")

    def _say(self, wrong: str) -> None:
        if not self.wrong or self.wrong[-1] != wrong:
            self.wrong.append(wrong)
