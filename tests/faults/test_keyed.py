"""Rates and fair shares when a worker is killed with their jobs in its hands."""

import json
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rota import Limit, State
from rota.model.job import ClaimedJob
from tests.faults.processes import Ledger, WorkerProcess, until
from tests.store.factories import claim, open_session


@pytest.fixture
def ledger(store_url: str, tmp_path: Path) -> Iterator[Ledger]:
    """An app of the test's own."""
    with Ledger(tmp_path, store_url) as ledger:
        yield ledger


def worker(ledger: Ledger) -> WorkerProcess:
    """A worker that is soon missed."""
    return ledger.worker(queues=("long",), session_timeout=1.0, concurrency=4)


def claimable(ledger: Ledger, limit: int = 100) -> list[ClaimedJob]:
    """What one more worker would get now; it gives it back."""
    store = ledger.app.database.store
    with closing(store.connect()) as connection:
        session = open_session(store, connection)
        jobs = claim(store, connection, session, limit, ("long",))
        connection.run(store.close_session(session))
    return jobs


def test_a_killed_worker_has_spent_its_starts(ledger: Ledger) -> None:
    """What it started counts in the window; its successor starts what is left, and no more."""
    calls = ledger.patient.using(limit=Limit("api", per_hour=3))
    calls.enqueue_many({"number": number} for number in range(2))
    victim = worker(ledger)
    until(lambda: len(ledger.noted("start")) == 2, "as many to start as there are")
    victim.signal(signal.SIGKILL)
    calls.enqueue_many({"number": number} for number in range(2, 6))
    worker(ledger)
    until(lambda: len(ledger.lines("start")) == 3, "the last one that may start")
    until(lambda: ledger.count(State.AVAILABLE) == 5, "the dead worker's jobs to go back")
    assert not claimable(ledger)
    ledger.go()
    until(lambda: ledger.count(State.COMPLETED) == 1, "it to end")
    assert not claimable(ledger)
    assert len(ledger.lines("start")) == 3


def test_a_killed_worker_keeps_no_shares(ledger: Ledger) -> None:
    """What it held goes back to the lanes of its keys, which have their shares again; all runs."""
    big, small = 0, 1
    reports = ledger.patient.using(fair="tenant:{number}")
    reports.enqueue_many({"number": big} for _ in range(30))
    reports.enqueue_many({"number": small} for _ in range(4))
    victim = worker(ledger)
    until(lambda: len(ledger.lines("start")) == 4, "as many to start as it runs at once")
    assert ledger.noted("start") == {big: 2, small: 2}
    victim.signal(signal.SIGKILL)
    worker(ledger)
    until(lambda: len(ledger.lines("start")) == 8, "its successor to start as many")
    until(lambda: ledger.count(State.AVAILABLE) == 30, "the dead worker's jobs to go back")
    # All that is left of the small one's jobs are those that the dead worker had.
    numbers = Counter(json.loads(job.args)["number"] for job in claimable(ledger, 4))
    assert numbers == {big: 2, small: 2}
    ledger.go()
    until(lambda: not ledger.unfinished(), "all to end")
    assert ledger.noted("end") == {big: 30, small: 4}
    assert Counter(job.attempt for job in ledger.records()) == {1: 34}
