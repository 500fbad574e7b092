"""Limits under everything at once: random histories in which no limit is ever exceeded.

Producers commit, roll back and commit late; claimers take, settle in parts, and die; the rings turn
all the time. Meanwhile the running jobs are counted, by the claimers themselves and by a thread
that looks at the leases. Mutants show that the history would notice.
"""

import random
import re
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import pytest

from rota import Limit
from rota.model.enqueued import Placed
from rota.model.job import ClaimedJob, JobId, JobSpec, Keys, Order, SessionId
from rota.model.settlement import Settlement
from rota.model.states import Move
from rota.store.operation import Statement
from rota.store.postgres import claim_lanes, rings
from rota.store.postgres.connection import PostgresConnection
from tests.fixtures.large import LARGE
from tests.store.factories import error_json
from tests.store.postgres.database import Database, Raw

QUEUES = ("a", "b")
LIMITS = {
    "one": Limit("one:{key}", running=1),
    "two": Limit("two:{key}", running=2),
    "five": Limit("five:{key}", running=5),
    "rate": Limit("rate:{key}", per_second=6),
}
KEYS = "xyz"
PATIENCE = 60.0
TOO_MANY = """
    SELECT limit_key.key, count(*)
    FROM rota.lease CROSS JOIN LATERAL unnest(lease.jobs) AS held (job)
    CROSS JOIN LATERAL (SELECT lane FROM rota.log WHERE log.id = held.job LIMIT 1) AS entry
    JOIN rota.lane ON lane.id = entry.lane
    JOIN rota.limit_key ON limit_key.id = lane.limit_id
    GROUP BY limit_key.key, limit_key.running HAVING count(*) > limit_key.running
"""
"""Limits that more jobs hold than may, whatever the leases say of limits."""


class Counting:
    """The running jobs, as the claimers see them: never earlier than it is so, never longer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        self.exceeded: list[str] = []
        self.starts: dict[str, list[tuple[float, float]]] = defaultdict(list)

    def began(self, jobs: Sequence[ClaimedJob], asked: float) -> None:
        """These jobs were handed out, since `asked`."""
        now = time.monotonic()
        with self._lock:
            for job in jobs:
                key = job.args.strip('"')
                self._running[key] += 1
                self.starts[key].append((asked, now))
                most = LIMITS[key.partition(":")[0]].running
                if most is not None and self._running[key] > most:
                    self.exceeded.append(f"{self._running[key]} of {key}")

    def ended(self, jobs: Sequence[ClaimedJob]) -> None:
        """These jobs are about to leave their leases."""
        with self._lock:
            self._running.subtract(job.args.strip('"') for job in jobs)

    def rates_exceeded(self) -> list[str]:
        """Windows of a second in which more started than may, whatever the clocks."""
        found = []
        for key, starts in self.starts.items():
            rate = LIMITS[key.partition(":")[0]].rate
            if rate is None:
                continue
            most, seconds = rate
            for begin, _ in starts:
                inside = sum(begin <= since and at < begin + seconds for since, at in starts)
                if inside > most:
                    found.append(f"{inside} of {key} in {seconds} s")
        return found


class History:
    """One random history, until it is over and all that was committed has been completed."""

    def __init__(self, db: Database, seed: int, seconds: float) -> None:
        self.db = db
        self.seed = seed
        self.seconds = seconds
        self.enough: Callable[[], bool] = lambda: True
        self.done = threading.Event()
        self.counting = Counting()
        self.seen: list[object] = []
        self.committed: list[JobId] = []
        self.completed: Counter[JobId] = Counter()
        self.deaths = 0
        self.errors: list[BaseException] = []

    def run(self) -> None:
        """All of it."""
        producers = [self._thread(self._produce, number) for number in range(2)]
        others = [self._thread(self._claim, number) for number in range(3)]
        others += [self._thread(self._keep_house, 0), self._thread(self._watch, 0)]
        for thread in producers:
            thread.join()
        deadline = time.monotonic() + PATIENCE
        while self._left() and not self.errors and time.monotonic() < deadline:
            self.done.wait(0.05)
            if self.counting.exceeded or self.seen:
                break
        self.done.set()
        for thread in others:
            thread.join()

    def _wanted(self, since: float) -> bool:
        passed = time.monotonic() - since
        return passed < self.seconds or (passed < PATIENCE / 2 and not self.enough())

    def _left(self) -> bool:
        return len(self.completed) < len(self.committed)

    def _thread(self, work: Callable[[random.Random], None], number: int) -> threading.Thread:
        def guarded() -> None:
            try:
                work(random.Random(f"{self.seed} {work.__name__} {number}"))
            except BaseException as error:  # noqa: BLE001 - the test tells
                self.errors.append(error)

        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        return thread

    def _produce(self, chance: random.Random) -> None:
        raw = self.db.bare()
        begin = time.monotonic()
        while self._wanted(begin) and not self.errors:
            mine: list[JobId] = []
            for _ in range(chance.randrange(1, 4)):
                kind = chance.choice(list(LIMITS))
                keys = [f"{kind}:{chance.choice(KEYS)}" for _ in range(chance.randrange(1, 5))]
                mine += [placed.job for placed in self._enqueue(raw, kind, keys, chance)]
                self.done.wait(chance.random() * 0.02)
            if chance.random() < 0.2:
                raw.rollback()
            else:
                raw.commit()
                self.committed += mine

    def _enqueue(
        self, raw: Raw, kind: str, keys: Sequence[str], chance: random.Random
    ) -> list[Placed]:
        spec = JobSpec(
            task="t",
            queue=chance.choice(QUEUES),
            priority=chance.choice((0, 1)),
            limit=LIMITS[kind],
            max_attempts=1000,
        )
        order = Order(spec, [f'"{key}"' for key in keys], Keys(limit=keys))
        return self.db.inside(raw, self.db.store.enqueue(order)).placed

    def _claim(self, chance: random.Random) -> None:
        own = self.db.connect()
        store = self.db.store
        session = self.db.session(on=own)
        while not self.done.is_set() and not self.errors:
            queues = chance.sample(QUEUES, 2)
            asked = time.monotonic()
            jobs = own.run(store.claim(session, queues, chance.randrange(1, 12)))
            self.counting.began(jobs, asked)
            self.done.wait(chance.random() * 0.01)
            if jobs and chance.random() < 0.05:
                session = self._die(session, jobs, own)
                continue
            chance.shuffle(jobs)
            cut = chance.randrange(len(jobs) + 1)
            for part in (jobs[:cut], jobs[cut:]):
                if part:
                    settlements = [self._settlement(job, chance) for job in part]
                    self.counting.ended(part)
                    assert own.run(store.settle(session, settlements)) == []
                    self.completed.update(
                        settlement.job
                        for settlement in settlements
                        if settlement.move is Move.COMPLETE
                    )
                    self.done.wait(chance.random() * 0.01)

    def _die(
        self, session: SessionId, jobs: Sequence[ClaimedJob], own: PostgresConnection
    ) -> SessionId:
        self.counting.ended(jobs)
        self.db.silence(session)
        self.deaths += 1
        return self.db.session(on=own)

    def _settlement(self, job: ClaimedJob, chance: random.Random) -> Settlement:
        move = chance.choices((Move.COMPLETE, Move.RELEASE, Move.RETRY), (80, 10, 10))[0]
        error = error_json(job.attempt, "E", "again") if move is Move.RETRY else None
        return Settlement(job.id, job.lease, move, 0.0, chance.choice((0.0, 60.0)), None, error)

    def _keep_house(self, chance: random.Random) -> None:
        own = self.db.connect()
        store = self.db.store
        while not self.done.is_set() and not self.errors:
            own.run(store.stage(100))
            own.run(store.rescue())
            own.run(store.tidy())
            self.done.wait(chance.random() * 0.02)

    def _watch(self, _: random.Random) -> None:
        raw = self.db.bare(autocommit=True)
        while not self.done.is_set() and not self.errors:
            self.seen += raw.execute(TOO_MANY).fetchall()
            self.done.wait(0.003)


@pytest.fixture(autouse=True)
def small_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments so small that every round of housekeeping turns the rings."""
    for ring in ("LOG", "CURSOR", "LEASE", "LIMIT"):
        monkeypatch.setattr(rings, f"{ring}_SIZE", 0)


def test_no_limit_is_exceeded_and_every_job_runs(db: Database) -> None:
    """Whatever happens, at every moment."""
    history = History(db, random.randrange(2**32), seconds=4.0 if LARGE else 0.5)
    history.enough = lambda: len(history.committed) > 50 and history.deaths > 0
    history.run()
    print(f"seed {history.seed}: {len(history.committed)} jobs, {history.deaths} deaths")  # noqa: T201
    if history.errors:
        raise history.errors[0]
    assert history.counting.exceeded == []
    assert history.seen == []
    assert history.counting.rates_exceeded() == []
    assert history.completed == Counter(history.committed)
    assert len(history.committed) > 50
    assert history.deaths > 0
    assert db.one("SELECT count(*) FROM rota.lease") == 0


def without_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims do not wait for each other."""
    for name in ("KEYED_LOCK", "KEYED_TRY_LOCK"):
        lock: Statement = getattr(claim_lanes, name)
        text = re.sub(r"pg(_try)?_advisory_xact_lock\(7682004, 0\)", "true", lock.text)
        assert text != lock.text
        monkeypatch.setattr(claim_lanes, name, Statement("unlocked", text))


def with_an_old_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim waits for its turn with the snapshot that it works with."""
    without_the_turn(monkeypatch)
    text = claim_lanes.CLAIM_LANES.text.replace(
        "SELECT queue, priority FROM rota.lane",
        "SELECT queue, priority FROM pg_advisory_xact_lock(7682004, 0), rota.lane",
    )
    assert text != claim_lanes.CLAIM_LANES.text
    monkeypatch.setattr(claim_lanes, "CLAIM_LANES", Statement("late", text))


@pytest.mark.large
@pytest.mark.parametrize("mutant", [without_the_turn, with_an_old_snapshot])
def test_the_same_history_shows_a_mutant(
    db: Database, monkeypatch: pytest.MonkeyPatch, mutant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """Without any of its safeguards a limit is exceeded, or a job runs twice."""
    mutant(monkeypatch)
    history = History(db, 4711, seconds=4.0)

    def shown() -> bool:
        twice = any(count > 1 for count in list(history.completed.values()))
        return bool(history.counting.exceeded or history.seen or twice or history.errors)

    history.enough = shown
    history.run()
    assert shown()
