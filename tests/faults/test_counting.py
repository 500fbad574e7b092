"""The counters after crashes: workers and producers are killed, and nothing is forgotten."""

import functools
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from rota import State
from rota.store.postgres import clearing, counters, rings
from tests.faults.processes import Ledger, WorkerProcess, until

COUNT = 400

PRODUCER = """
import os
import sys

from rota import Rota

rota = Rota(os.environ["LEDGER_URL"])


@rota.task(name="app.quick")
def quick(number: int) -> None: ...


with rota.transaction() as transaction:
    quick.using(conn=transaction).enqueue_many({"number": -1} for _ in range(50))
    quick.using(conn=transaction, delay=60).enqueue(number=-1)
    print("enqueued", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def ledger(store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """An app of the test's own; whoever tidies in this process turns all rings."""
    for ring in ("LOG_SIZE", "CURSOR_SIZE", "TALLY_SIZE", "FINISHED_SIZE"):
        monkeypatch.setattr(rings, ring, 0)
    monkeypatch.setattr(counters, "MARK_AGE", 0.0)
    monkeypatch.setattr(clearing, "REST", 0.0)
    with Ledger(tmp_path, store_url) as ledger:
        yield ledger


def told(ledger: Ledger) -> Counter[tuple[str, State]]:
    """What the counters say."""
    return Counter(
        {
            (queue.name, state): jobs
            for queue in ledger.app.database.run(ledger.app.database.store.queues())
            for state, jobs in queue.counts.items()
        }
    )


def counted(ledger: Ledger) -> Counter[tuple[str, State]]:
    """What counting says."""
    return Counter((job.queue, job.state) for job in ledger.records())


def killed_producer(ledger: Ledger) -> None:
    """A process that dies in the middle of its transaction."""
    producer = subprocess.Popen(
        [sys.executable, "-c", PRODUCER],
        env={**os.environ, "LEDGER_URL": ledger.url},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with producer:
        assert producer.stdout is not None
        assert producer.stdout.readline() == b"enqueued\n"
        producer.send_signal(signal.SIGKILL)


def busy(ledger: Ledger, worker: WorkerProcess) -> bool:
    """Whether a worker has begun, or there is nothing left for it."""
    text = (ledger.folder / "ledger").read_text(encoding="ascii")
    return f" {worker.pid}\n" in text or not left(ledger)


def left(ledger: Ledger) -> int:
    """How many jobs a worker could run now."""
    return ledger.count(State.AVAILABLE) + ledger.count(State.RUNNING)


def upkeep(ledger: Ledger, chance: random.Random) -> None:
    """Squeezes and turns of the rings, in this process."""
    for _ in range(chance.randint(1, 4)):
        ledger.app.database.run(ledger.app.database.store.squeeze())
        if chance.random() < 0.7:
            ledger.app.database.run(ledger.app.database.store.tidy())


def test_the_counters_after_crashes(ledger: Ledger) -> None:
    """Workers and producers die by SIGKILL while tables turn; counting agrees when nothing runs."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201
    chance = random.Random(seed)
    jobs = ledger.quick.using(max_attempts=30)
    for _ in range(4):
        jobs.enqueue_many({"number": number} for number in range(COUNT))
        jobs.using(delay=chance.choice((0.01, 3600))).enqueue_many(
            {"number": number} for number in range(20)
        )
        victims = [ledger.worker(session_timeout=1.0, concurrency=8) for _ in range(2)]
        killed_producer(ledger)
        upkeep(ledger, chance)
        some = ledger.records(State.AVAILABLE)[:10]
        ledger.app.database.run(ledger.app.database.store.cancel([job.id for job in some[:5]]))
        ledger.app.database.run(ledger.app.database.store.delete([job.id for job in some[5:]]))
        for victim in victims:
            until(functools.partial(busy, ledger, victim), "a victim to work")
            victim.end()
        # Nothing runs, though some jobs are still in dead hands.
        until(lambda: told(ledger) == counted(ledger), "the last transactions to end")
        upkeep(ledger, chance)
        assert told(ledger) == counted(ledger)
    ledger.worker(session_timeout=1.0)
    until(lambda: not left(ledger), "the rest to run")
    assert told(ledger) == counted(ledger)
    [queue] = ledger.app.database.run(ledger.app.database.store.queues())
    assert queue.claimed >= queue.counts[State.COMPLETED]
    assert queue.appended >= queue.claimed
