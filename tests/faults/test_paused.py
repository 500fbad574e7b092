"""Queues that are paused while their worker is killed."""

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rota import Limit, State
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


def test_a_worker_killed_while_its_queue_is_paused(ledger: Ledger) -> None:
    """Its jobs are rescued, with limits or without, and stay until the queue is resumed."""
    store = ledger.app.database.store
    ledger.patient.enqueue_many({"number": number} for number in range(4))
    limited = ledger.patient.using(limit=Limit("api", running=2))
    limited.enqueue_many({"number": number} for number in range(4, 8))
    victim = worker(ledger)
    until(lambda: len(ledger.noted("start")) == 4, "some to start")
    begun = ledger.noted("start")
    ledger.app.database.run(store.pause("long"))
    victim.signal(signal.SIGKILL)
    worker(ledger)
    until(lambda: ledger.count(State.AVAILABLE) == 8, "the dead worker's jobs to go back")
    with closing(store.connect()) as connection:
        session = open_session(store, connection)
        assert claim(store, connection, session, queues=("long",)) == []
        connection.run(store.close_session(session))
    assert ledger.noted("start") == begun
    ledger.go()
    ledger.app.database.run(store.resume("long"))
    until(lambda: not ledger.unfinished(), "all to end")
    assert ledger.noted("end") == dict.fromkeys(range(8), 1)
    assert Counter(job.attempt for job in ledger.records(State.COMPLETED)) == {1: 8}
