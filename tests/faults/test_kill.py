"""Workers that are killed or frozen: their jobs go on elsewhere, and only those."""

import functools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rota import State
from rota.model.job import JobId
from tests.faults.processes import Ledger, WorkerProcess, until

TAKEOVER = 20.0
"""Seconds after which all jobs of a killed worker must have run elsewhere, at default settings."""


@pytest.fixture
def ledger(store_url: str, tmp_path: Path) -> Iterator[Ledger]:
    """An app of the test's own."""
    with Ledger(tmp_path, store_url) as ledger:
        yield ledger


@pytest.fixture
def postgres(postgres_url: str, tmp_path: Path) -> Iterator[Ledger]:
    """The same on PostgreSQL alone."""
    with Ledger(tmp_path, postgres_url) as ledger:
        yield ledger


def has_worked(ledger: Ledger, worker: WorkerProcess) -> bool:
    """Whether a worker has started a job, or there is none left for it."""
    lines = (ledger.folder / "ledger").read_text(encoding="ascii")
    return f" {worker.pid}\n" in lines or not ledger.unfinished()


def test_a_killed_worker_at_default_settings(postgres: Ledger) -> None:
    """All unfinished jobs run elsewhere within 20 seconds; the finished ones do not run again."""
    ledger = postgres
    count = 4000
    ledger.quick.enqueue_many({"number": number} for number in range(count))
    ledger.patient.enqueue_many({"number": count + number} for number in range(8))
    victim = ledger.worker(queues=("default", "long"), concurrency=16)
    until(lambda: ledger.count(State.COMPLETED) >= 200, "some jobs to end")
    until(lambda: sum(n >= count for n in ledger.noted("start")) >= 8, "the long ones to start")
    victim.signal(signal.SIGKILL)
    killed = time.monotonic()
    finished = {job.id for job in ledger.records(State.COMPLETED)}
    assert len(ledger.records(State.RUNNING)) >= 8
    ledger.go()
    ledger.worker(queues=("default", "long"))
    until(lambda: not ledger.unfinished(), "the jobs to be taken over", TAKEOVER + 5)
    assert time.monotonic() - killed < TAKEOVER
    records = {job.id: job for job in ledger.records(State.COMPLETED)}
    assert len(records) == count + 8
    assert {job.attempt for job in records.values()} == {1}
    starts = ledger.noted("start")
    assert set(starts) == set(ledger.noted("end")) == set(range(count + 8))
    for job in finished:
        assert starts[json.loads(records[job].args)["number"]] == 1
    assert max(starts.values()) == 2


def test_workers_killed_one_after_the_other(ledger: Ledger) -> None:
    """Jobs outlive several workers; a death costs no more than one job an attempt."""
    count = 600
    ledger.quick.enqueue_many({"number": number} for number in range(count))
    ledger.worker(session_timeout=1.0, concurrency=4)
    for _ in range(3):
        victim = ledger.worker(session_timeout=1.0, concurrency=4)
        until(functools.partial(has_worked, ledger, victim), "the next victim to work")
        victim.signal(signal.SIGKILL)
    until(lambda: not ledger.unfinished(), "the jobs to be taken over")
    assert ledger.count(State.COMPLETED) == count
    assert set(ledger.noted("end")) == set(range(count))
    # Each death may have been of one job alone, and no job was alone with more of them.
    assert max(job.attempt for job in ledger.records()) <= 4
    assert sum(job.attempt - 1 for job in ledger.records()) <= 3


def test_a_worker_that_was_frozen(postgres: Ledger) -> None:
    """A worker that slept past its session's end cannot settle; its successor's result stands.

    On PostgreSQL alone: frozen while it writes to a SQLite file, a process stops all others.
    """
    ledger = postgres
    handle = ledger.stubborn.enqueue(0)
    frozen = ledger.worker(queues=("long",), session_timeout=1.0)
    until(lambda: ledger.noted("start")[0] == 1, "the job to start")
    frozen.signal(signal.SIGSTOP)
    successor = ledger.worker(queues=("long",), session_timeout=1.0)
    until(lambda: ledger.noted("start")[0] == 2, "the job to be taken over")
    ledger.go(frozen)
    frozen.signal(signal.SIGCONT)
    until(lambda: "LeaseLost" in frozen.said, "the late settlement to be refused")
    [running] = ledger.records()
    assert (running.id, running.state, running.attempt) == (handle.id, State.RUNNING, 2)
    ledger.go(successor)
    until(lambda: not ledger.unfinished(), "the successor's end")
    [done] = ledger.records()
    assert (done.state, done.attempt, done.result) == (State.COMPLETED, 2, str(successor.pid))
    # It goes on under a new session.
    after = ledger.stubborn.enqueue(1)
    ledger.go(frozen)
    until(
        lambda: (
            ledger.app.database.run(ledger.app.database.store.get([JobId(after.id)]))[
                0
            ].state.finished
        ),
        "more",
    )
    assert frozen.alive
    assert successor.alive
    assert "LeaseLost" not in successor.said


def test_a_killed_worker_with_a_concurrency_per_queue(ledger: Ledger) -> None:
    """Its successor takes over what it ran, runs no more of the queue at once, and all of it."""
    ledger.app.database.run(ledger.app.database.store.set_queue("long", {"concurrency": 2}))
    ledger.patient.enqueue_many({"number": number} for number in range(9))
    victim = ledger.worker(queues=("long",), session_timeout=1.0)
    until(lambda: len(ledger.noted("start")) == 2, "as many to start as may")
    victim.signal(signal.SIGKILL)
    ledger.worker(queues=("long",), session_timeout=1.0)
    until(lambda: sum(ledger.noted("start").values()) == 4, "the successor to start as many")
    until(lambda: ledger.count(State.RUNNING) == 2, "the dead worker's jobs to go back")
    assert sum(ledger.noted("start").values()) == 4
    ledger.go()
    until(lambda: not ledger.unfinished(), "all the jobs to end")
    assert set(ledger.noted("end")) == set(range(9))
    assert sorted(job.attempt for job in ledger.records(State.COMPLETED)) == [1] * 9


def test_a_clearing_that_is_killed(ledger: Ledger) -> None:
    """Killed between two batches it leaves whole jobs and right numbers, and nothing locked."""
    total = 20_000
    ledger.patient.enqueue_many({"number": number} for number in range(total))
    command = [sys.executable, "-m", "rota", "queues", "clear", "long", "--yes"]
    with subprocess.Popen([*command, "--url", ledger.url]) as clearing:
        until(lambda: ledger.count(State.AVAILABLE) < total, "the first batch to go")
        clearing.kill()
    left = ledger.count(State.AVAILABLE)
    assert left < total
    assert len(ledger.records(State.AVAILABLE)) == left
    done = subprocess.run([*command, "--url", ledger.url], check=True, timeout=60)
    assert done.returncode == 0
    assert ledger.records() == []
