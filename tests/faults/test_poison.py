"""A job that kills every worker it meets: it is found, and the jobs beside it are not punished."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rota import State
from tests.faults.processes import Ledger, until

INNOCENT = 300


@pytest.fixture
def ledger(store_url: str, tmp_path: Path) -> Iterator[Ledger]:
    """An app of the test's own."""
    with Ledger(tmp_path, store_url) as ledger:
        yield ledger


def deaths_until_done(ledger: Ledger, most: int) -> int:
    """Start a worker whenever the last one has died; how many died."""
    deaths = 0
    worker = ledger.worker(session_timeout=1.0)
    while until(lambda: not worker.alive or not ledger.unfinished(), "a death, or the end", 60):  # noqa: B023
        if worker.alive:
            return deaths
        deaths += 1
        assert deaths <= most, worker.said
        worker = ledger.worker(session_timeout=1.0)
    return deaths


@pytest.mark.parametrize("attempts", [1, pytest.param(3, marks=pytest.mark.large)])
def test_innocent_jobs_lose_nothing(ledger: Ledger, attempts: int) -> None:
    """All others complete at their first attempt; the poison job has exactly its own attempts."""
    quick, poison = (task.using(max_attempts=attempts) for task in (ledger.quick, ledger.poison))
    innocent = quick.enqueue_many((number,) for number in range(INNOCENT))
    killer = poison.enqueue(INNOCENT)
    innocent += quick.enqueue_many((INNOCENT + 1 + number,) for number in range(INNOCENT))
    # As many as may be held, over eight, and again: three deaths of several, then its own ones.
    deaths = deaths_until_done(ledger, most=4 + attempts)
    found = {job.id: job for job in ledger.records()}
    assert {found[job].state for job in innocent} == {State.COMPLETED}
    assert {found[job].attempt for job in innocent} == {1}
    assert (found[killer.id].state, found[killer.id].attempt) == (State.DISCARDED, attempts)
    alone = [error for error in found[killer.id].errors if "during this attempt" in error.message]
    assert [error.attempt for error in alone] == list(range(1, attempts + 1))
    assert deaths == len(found[killer.id].errors)
    assert ledger.noted("start").keys() == set(range(2 * INNOCENT + 1))
