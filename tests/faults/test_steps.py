"""Steps with killed workers and a crashing server: what was remembered is not done again.

It is written once.
"""

import signal
from pathlib import Path

import pytest

from rota.measure.servers import PostgresServer
from tests.faults.processes import Ledger, until
from tests.faults.test_effects import effects, with_table, worker_of


def taken_over(ledger: Ledger, where: str, *, server: PostgresServer | None = None) -> None:
    """A worker dies at this place, with the server if one is given; another one comes to the end."""
    ledger.hold(where)
    ledger.walk.enqueue(0)
    victim = worker_of(ledger, "steps")
    until(lambda: ledger.noted(where), f"the handler to be {where}")
    victim.signal(signal.SIGKILL)
    if server is not None:
        server.restart(mode="immediate")
        ledger.app.close()
    ledger.unhold(where)
    successor = worker_of(ledger, "steps")
    until(lambda: not ledger.unfinished(), "the job to be taken over")
    assert ledger.noted("start")[0] == 2
    assert (ledger.noted("one")[0], ledger.noted("two")[0]) == (1, 1)
    [job] = ledger.records()
    assert job.result == f"[{victim.pid},{successor.pid}]"
    booked = victim if where == "stepped" else successor
    assert effects(ledger) == [(0, booked.pid)]


@pytest.mark.large
@pytest.mark.parametrize("where", ["written", "stepped"])
def test_a_killed_worker(store_url: str, tmp_path: Path, where: str) -> None:
    """The next worker goes on after the last step, and makes an uncommitted transaction then."""
    with Ledger(tmp_path, store_url) as ledger:
        with_table(ledger)
        taken_over(ledger, where)


@pytest.mark.large
def test_a_crashed_server(postgres_server: PostgresServer, tmp_path: Path) -> None:
    """A step that has returned is on disk, though nothing was settled since."""
    with Ledger(tmp_path, postgres_server.create_database("steps")) as ledger:
        with_table(ledger)
        taken_over(ledger, "stepped", server=postgres_server)
