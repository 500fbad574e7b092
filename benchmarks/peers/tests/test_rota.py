"""Rota's own driver, end to end."""

from dataclasses import replace

import pytest

from benchmarks.peers.draining import drain
from benchmarks.peers.enqueueing import enqueue
from benchmarks.peers.field import FIELD
from benchmarks.peers.places import place
from benchmarks.peers.servers import Servers
from benchmarks.peers.trickling import trickle
from rota import __version__
from rota.measure.servers import PostgresServer

SQLITE = Servers(None, None)
PACE = 100
"""Jobs a second at least, on the busiest machine."""


def test_on_sqlite() -> None:
    """Jobs are enqueued, and two workers drain them beside a reader, each job once."""
    rota = replace(FIELD["rota-sqlite"], pace=PACE)
    version, figures = enqueue(rota, SQLITE, 0.1, how="one")
    assert version == __version__
    assert figures["jobs"]
    _, figures = drain(rota, SQLITE, 5, workers=2, held=True)
    assert (figures["run"], figures["finished"]) == (5 * PACE, True)


@pytest.mark.large
def test_on_postgresql(postgres_server: PostgresServer) -> None:
    """The same on a server, whose processor time is known, too."""
    rota = replace(FIELD["rota"], pace=PACE)
    servers = Servers(postgres_server, None)
    _, figures = drain(rota, servers, 5, held=True)
    assert (figures["run"], figures["finished"]) == (5 * PACE, True)
    _, figures = trickle(rota, servers, 0.5, workers=2)
    assert figures["jobs"]
    assert figures["server_ms_per_job"]
    assert figures["workers_ms_per_job"]


@pytest.mark.large
def test_what_waits_on_postgresql(postgres_server: PostgresServer) -> None:
    """The jobs that were enqueued are counted, without those that have run."""
    with place(FIELD["rota"], Servers(postgres_server, None)) as at:
        at.driver.ask("load", "10")
        assert at.waiting() == 11  # with the warm-up
        with at.driver.started("work") as worker:
            worker.answer()
            worker.tell()
            assert at.idle(30)
