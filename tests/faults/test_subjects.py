"""Subjects whose worker is killed in the middle of a round."""

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from rota import Placing, State, Unique
from tests.faults.processes import LONG, Ledger, WorkerProcess, until


@pytest.fixture
def ledger(store_url: str, tmp_path: Path) -> Iterator[Ledger]:
    """An app of the test's own."""
    with Ledger(tmp_path, store_url) as ledger:
        yield ledger


def worker(ledger: Ledger) -> WorkerProcess:
    """A worker that is soon missed."""
    return ledger.worker(queues=("long",), session_timeout=1.0)


def test_killed_in_a_later_round(ledger: Ledger) -> None:
    """It comes round again with its id, key and count; the attempt is one of that round alone."""
    crawl = ledger.crawl.using(unique=Unique(key="site:{number}"), max_attempts=2)
    subject = crawl.enqueue(number=1)
    victim = worker(ledger)
    until(lambda: subject.record().iteration >= 2, "some rounds")
    ledger.hold("round")
    until(lambda: ledger.noted("round"), "one that does not end")
    victim.signal(signal.SIGKILL)
    before = subject.record()
    assert (before.state, before.attempt) == (State.RUNNING, 1)
    assert crawl.enqueue(number=1).id == subject.id
    worker(ledger)
    until(lambda: ledger.noted("round")[1] == 2, "the round to be taken over")
    during = subject.record()
    assert (during.state, during.attempt) == (State.RUNNING, 2)
    assert (during.iteration, during.last_run) == (before.iteration, before.last_run)
    assert during.unique_key == "site:1"
    assert crawl.enqueue(number=1).id == subject.id
    ledger.unhold("round")
    until(lambda: subject.record().iteration > before.iteration + 1, "further rounds")
    ledger.say("enough")
    after = subject.wait(LONG)
    assert (after.state, after.attempt) == (State.COMPLETED, 1)
    attempts = Counter(attempt for _, attempt, _ in ledger.lines("start"))
    assert attempts == {1: after.iteration + 1, 2: 1}
    assert crawl.enqueue(number=1).placing is Placing.CREATED
