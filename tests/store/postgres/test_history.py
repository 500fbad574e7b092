"""Many producers, several claimers, rings that turn: every committed job runs exactly once.

A history is random but its seed is printed. The same history with the cursor's holes taken out
must lose jobs: a test that cannot fail shows nothing.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from rota.model.job import ClaimedJob, JobId
from rota.model.settlement import Settlement
from rota.model.states import Move
from rota.store.postgres import claim as claiming
from tests.fixtures.large import LARGE
from tests.store.factories import error_json
from tests.store.postgres.database import Database, Raw
from tests.store.postgres.test_holes import NEW_HOLES, mutant

QUEUES = ("mail", "images")
PRIORITIES = (0, 5)
LIMITS = (1, 7, 20, 50)
PRODUCERS = 5
PREPARED_EACH = 3
PATIENCE = 60.0


@dataclass
class History:
    """What one history shall do and has done. Each thread appends to lists of its own.

    Attributes:
        seconds: So long producers go on at least,
        enough: and until this is true.
    """

    db: Database
    seed: int
    seconds: float
    enough: Callable[[], bool] = lambda: True
    committed: list[list[JobId]] = field(default_factory=list)
    undone: list[list[JobId]] = field(default_factory=list)
    runs: list[list[tuple[JobId, Move]]] = field(default_factory=list)
    refused: list[JobId] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)
    done: threading.Event = field(default_factory=threading.Event)
    tidied: Counter[str] = field(default_factory=Counter)
    beside: list[Callable[[], None]] = field(default_factory=list)

    def run(self) -> None:
        """Run it to its end: until no claim can find anything any more."""
        producers = [self._thread(Producer(self, number).run) for number in range(PRODUCERS)]
        others = [self._thread(Claimer(self, limit).run) for limit in LIMITS]
        others += [self._thread(self._tidy), self._thread(self._tidy), self._thread(self._stage)]
        others += [self._thread(work) for work in self.beside]
        try:
            for thread in producers:
                thread.join(self.seconds + PATIENCE)
            deadline = time.monotonic() + PATIENCE
            while not self.failures and not self._quiet():
                assert time.monotonic() < deadline, "the claimers do not come to an end"
                self.done.wait(0.02)
        finally:
            self.done.set()
            for thread in others:
                thread.join(PATIENCE)
        if self.failures:
            raise self.failures[0]

    def wanted(self, since: float) -> bool:
        """Whether a producer that began then shall go on."""
        passed = time.monotonic() - since
        if passed < self.seconds:
            return True
        self.done.wait(0.02)  # gently: all that is enqueued must come to its end
        return passed < PATIENCE / 2 and not self.enough()

    def lost(self) -> set[JobId]:
        """Committed jobs that were never completed."""
        completed = {job for part in self.runs for job, move in part if move is Move.COMPLETE}
        return {job for part in self.committed for job in part} - completed

    def _quiet(self) -> bool:
        db = self.db
        if db.one("SELECT EXISTS (SELECT FROM rota.timer) OR EXISTS (SELECT FROM rota.lease)"):
            return False
        # Asked after the leases: a job that was given back before is seen now.
        return not any(part.ready for part in db.own.run(claiming.probe(QUEUES))) and not db.one(
            "SELECT EXISTS (SELECT FROM rota.timer) OR EXISTS (SELECT FROM rota.lease)"
        )

    def _thread(self, work: Callable[[], None]) -> threading.Thread:
        def guarded() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - the main thread raises it
                self.failures.append(error)
                self.done.set()

        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        return thread

    def _tidy(self) -> None:
        own = self.db.connect()
        while not self.done.is_set():
            for did in own.run(self.db.store.tidy()):
                self.tidied[
                    did.partition(":")[0] + (" emptied" if "empty" in did else " left")
                ] += 1
            self.done.wait(0.01)

    def _stage(self) -> None:
        own = self.db.connect()
        while not self.done.is_set():
            own.run(self.db.store.stage(20))
            self.done.wait(0.005)


class Producer:
    """Enqueues in every way there is, with transactions that end late, oddly, or not well."""

    def __init__(self, history: History, number: int) -> None:
        self._history = history
        self._db = history.db
        self._chance = random.Random(f"{history.seed} producer {number}")
        self._name = f"{history.seed} {number}"
        self._raw: Raw = self._db.bare()
        self._own = self._db.connect()
        self._prepared: list[tuple[str, list[JobId]]] = []
        self._kept: list[JobId] = []
        self._undone: list[JobId] = []
        history.committed.append(self._kept)
        history.undone.append(self._undone)

    def run(self) -> None:
        """Go on for as long as the history wants."""
        begin = time.monotonic()
        number = 0
        while self._history.wanted(begin) and not self._history.done.is_set():
            number += 1
            if self._chance.random() < 0.3:
                self._kept += self._enqueue(None)
            else:
                self._transaction(f"{self._name} {number}")
        while self._prepared:
            self._end_prepared()

    def _enqueue(self, conn: Raw | None) -> list[JobId]:
        count = self._chance.choices((1, 2, 5, 30, 250), (50, 20, 15, 12, 3))[0]
        options: dict[str, Any] = {
            "queue": self._chance.choice(QUEUES),
            "priority": self._chance.choice(PRIORITIES),
            "max_attempts": 100,
        }
        if self._chance.random() < 0.1:
            options["delay"] = self._chance.choice((0.0, 0.01))
        if conn is None:
            return self._db.enqueue(count, on=self._own, **options)
        # Transactions that may be prepared must not notify.
        return self._db.enqueue(count, conn=conn, wake=False, **options)

    def _pause(self) -> None:
        time.sleep(self._chance.choice((0.0, 0.0, 0.001, 0.005, 0.03)))

    def _transaction(self, name: str) -> None:
        mine: list[JobId] = []
        for _ in range(self._chance.randint(1, 4)):
            if self._chance.random() < 0.4:
                self._raw.execute("SAVEPOINT part")
                part = self._enqueue(self._raw)
                if self._chance.random() < 0.5:
                    self._raw.execute("ROLLBACK TO SAVEPOINT part")
                    self._undone += part
                else:
                    self._raw.execute("RELEASE SAVEPOINT part")
                    mine += part
            else:
                mine += self._enqueue(self._raw)
            self._pause()
        end = self._chance.random()
        if end < 0.15:
            self._raw.rollback()
            self._undone += mine
        elif end < 0.35 and len(self._prepared) < PREPARED_EACH:
            self._raw.execute(f"PREPARE TRANSACTION '{name}'")
            self._prepared.append((name, mine))
        else:
            self._raw.commit()
            self._kept += mine
        if self._prepared and self._chance.random() < 0.3:
            self._end_prepared()

    def _end_prepared(self) -> None:
        name, jobs = self._prepared.pop(self._chance.randrange(len(self._prepared)))
        kept = self._chance.random() < 0.7
        # Not through psycopg's own two-phase calls: the transaction belongs to no session now.
        self._raw.commit()
        self._raw.autocommit = True
        self._raw.execute(f"{'COMMIT' if kept else 'ROLLBACK'} PREPARED '{name}'")
        self._raw.autocommit = False
        (self._kept if kept else self._undone).extend(jobs)


class Claimer:
    """Claims with one limit; completes most jobs and gives some of them back."""

    def __init__(self, history: History, limit: int) -> None:
        self._history = history
        self._limit = limit
        self._chance = random.Random(f"{history.seed} claimer {limit}")
        self._own = history.db.connect()
        self._session = history.db.session()
        self._runs: list[tuple[JobId, Move]] = []
        history.runs.append(self._runs)

    def run(self) -> None:
        """Go on until the history is done."""
        store = self._history.db.store
        queues = list(QUEUES)
        while not self._history.done.is_set():
            queues.reverse()
            jobs = self._own.run(store.claim(self._session, queues, self._limit))
            if not jobs:
                self._history.done.wait(0.005)
                continue
            self._chance.shuffle(jobs)
            cut = self._chance.choice((0, 0, len(jobs) // 2))
            for part in (jobs[:cut], jobs[cut:]):
                if part:
                    self._settle(part)

    def _settle(self, jobs: list[ClaimedJob]) -> None:
        settlements = []
        for job in jobs:
            move = self._chance.choices((Move.COMPLETE, Move.RELEASE, Move.RETRY), (90, 5, 5))[0]
            error = error_json(job.attempt, "E", "again") if move is Move.RETRY else None
            keep = self._chance.choice((0.0, 3600.0))
            settlements.append(Settlement(job.id, job.lease, move, 0.0, keep, None, error))
            self._runs.append((job.id, move))
        store = self._history.db.store
        refused = self._own.run(store.settle(self._session, settlements))
        self._history.refused += refused


@pytest.fixture(autouse=True)
def small_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments so small that every round of housekeeping turns the rings."""
    monkeypatch.setattr("rota.store.postgres.rings.LOG_SIZE", 0)
    monkeypatch.setattr("rota.store.postgres.rings.CURSOR_SIZE", 0)
    monkeypatch.setattr("rota.store.postgres.rings.LEASE_SIZE", 0)


def test_every_committed_job_runs_exactly_once(db: Database) -> None:
    """None is lost, none runs twice, none of a rolled-back part runs, and nothing is left."""
    seed = random.randrange(2**32)
    history = History(db, seed, seconds=4.0 if LARGE else 1.0)
    jobs, few, turns = (1000, 100, 4) if LARGE else (300, 30, 1)
    history.enough = lambda: (
        sum(map(len, history.committed)) > jobs
        and sum(map(len, history.undone)) > few
        and min(history.tidied["log emptied"], history.tidied["cursor emptied"]) > turns
    )
    history.run()
    committed = [job for part in history.committed for job in part]
    undone = {job for part in history.undone for job in part}
    print(f"seed {seed}: {len(committed)} jobs, {len(undone)} rolled back, {history.tidied}")  # noqa: T201
    runs = Counter(job for part in history.runs for job, _ in part)
    completions = Counter(
        job for part in history.runs for job, move in part if move is Move.COMPLETE
    )
    again = Counter(job for part in history.runs for job, move in part if move is not Move.COMPLETE)
    assert len(committed) == len(set(committed)) > jobs
    assert len(undone) > few
    assert history.lost() == set()
    assert not undone & runs.keys()
    assert completions == Counter(committed)
    assert runs == completions + again
    assert history.refused == []
    assert db.one("SELECT count(*) FROM rota.job WHERE state <> 'completed'") == 0
    assert history.tidied["log emptied"] > turns
    assert history.tidied["cursor emptied"] > turns


@pytest.mark.large
def test_without_holes_the_same_history_loses_jobs(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: a cursor that forgets running transactions."""
    forgetful = mutant(claiming.CLAIM, NEW_HOLES)
    monkeypatch.setattr(claiming, "CLAIM", forgetful)
    monkeypatch.setattr(claiming, "CLAIM_LIGHT", [forgetful] * len(claiming.CLAIM_LIGHT))
    history = History(db, 4711, seconds=3.0)
    history.run()
    assert history.lost()
