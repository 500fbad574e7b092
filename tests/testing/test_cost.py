"""What a test costs: one enqueue, one assertion, one drain."""

import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rota import Rota
from rota.testing import Kit

TESTS = 100


@pytest.mark.parametrize("kit_url", ["postgres"], indirect=True)
def test_a_test_costs_little(app: Rota, kit_url: str) -> None:
    """Less than ten milliseconds of processor time, of this process and of the server's together.

    Other programs on the machine make a processor slower, so the quickest test counts.
    """

    @app.task(name="mail")
    def mail(user: str) -> None: ...

    def one(conn: Any) -> None:
        with Kit(conn, app=app) as kit:
            mail.using(conn=conn).enqueue("a@example.org")
            kit.assert_enqueued(mail, user="a@example.org")
            assert kit.drain().completed == 1
        conn.rollback()

    with psycopg.connect(kit_url) as conn:
        server = Path(f"/proc/{conn.info.backend_pid}/schedstat")
        if not server.exists():
            pytest.skip("the server's processor time cannot be read here")
        costs = []
        for _ in range(TESTS):
            before = spent(server)
            one(conn)
            costs.append(spent(server) - before)
    assert min(costs) < 0.010


def spent(server: Path) -> float:
    """Seconds of processor time: this process's, and the server's for the connection."""
    return time.process_time() + int(server.read_text(encoding="ascii").split()[0]) / 1e9
