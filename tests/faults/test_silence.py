"""A network that drops everything without a word, and a server that hangs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rota import State
from rota.store.postgres import patience
from tests.faults.processes import Ledger, until
from tests.fixtures.proxy import Proxy

SOON = patience.SILENCE
"""Seconds after which a connection's own patience is not over yet: the deadline has to be watched."""


@pytest.fixture
def ledger(postgres_url: str, tmp_path: Path) -> Iterator[Ledger]:
    """An app of the test's own."""
    with Ledger(tmp_path, postgres_url) as ledger:
        yield ledger


def test_a_worker_in_a_silent_network(ledger: Ledger, postgres_url: str) -> None:
    """At its session's deadline it says so, stops its handlers, and comes back when the network does."""
    with Proxy(postgres_url) as proxy:
        worker = ledger.worker(
            url=proxy.url, queues=("long",), session_timeout=2.0, concurrency=4, upkeep=False
        )
        ledger.patient.using(max_attempts=1).enqueue_many({"number": n} for n in range(4))
        until(lambda: len(ledger.noted("start")) == 4, "the jobs to start")
        with proxy.silent():
            until(lambda: "is lost" in worker.said, "the session to be lost", SOON)
            ledger.go()
            until(lambda: "session: " in worker.said, "the worker to say why", SOON)
        until(lambda: not ledger.unfinished(), "everything to complete")
    assert ledger.noted("start") == dict.fromkeys(range(4), 2)
    assert ledger.noted("end") == dict.fromkeys(range(4), 1)
    assert {job.attempt for job in ledger.records(State.COMPLETED)} == {1}
    assert worker.alive
    assert "Traceback" not in worker.said
