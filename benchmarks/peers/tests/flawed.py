"""A queue in a table, run as a peer, that does wrong what the variable PEERS_FLAW says."""

import os
import signal
import sqlite3
import sys
import time
from collections.abc import Iterable, Sequence

from benchmarks.peers.drivers.driver import Handle, Job
from benchmarks.peers.drivers.serve import URL, serve

POLL = 0.002
FLAW = os.environ.get("PEERS_FLAW", "")


class FlawedDriver:
    """One worker can take jobs at a time."""

    chunk = 7

    def __init__(self) -> None:
        self._database = sqlite3.connect(URL.partition("///")[2], isolation_level=None, timeout=30)

    def setup(self) -> str:
        """Make the table, or fail."""
        if FLAW == "fails":
            sys.exit("the table cannot be made")
        self._database.execute("PRAGMA journal_mode = wal")
        self._database.execute("CREATE TABLE job (number INTEGER, enqueued REAL)")
        return "0.1"

    def one_by_one(self, jobs: Iterable[Job]) -> None:
        """An INSERT each."""
        for number, moment in jobs:
            if not (FLAW == "forgets" and number == 0):
                self._database.execute("INSERT INTO job VALUES (?, ?)", (number, moment))

    def in_bulk(self, chunks: Iterable[Sequence[Job]]) -> None:
        """The same."""
        for chunk in chunks:
            self.one_by_one(chunk)

    def work(self, handle: Handle) -> None:
        """Take one job after the other, and finish the last one."""
        stop: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, _: stop.append(number))
        while not stop:
            taken = self._database.execute(
                "DELETE FROM job WHERE rowid = (SELECT min(rowid) FROM job)"
                " RETURNING number, enqueued"
            ).fetchall()
            for number, enqueued in taken:
                runs = 1 if number else {"loses": 0, "repeats": 2}.get(FLAW, 1)
                for _ in range(runs):
                    handle(number, enqueued)
            if not taken:
                time.sleep(POLL)


if __name__ == "__main__":
    serve(FlawedDriver())
