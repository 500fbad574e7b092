"""What a test costs: one enqueue, one assertion, one drain."""

import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rota import Rota
from rota.testing import Kit

TESTS = 100

STATEMENTS = 50
"""Bare ones, for each test."""


@pytest.mark.parametrize("kit_url", ["postgres"], indirect=True)
def test_a_test_costs_little(app: Rota, kit_url: str) -> None:
    """Less than 500 bare statements, in processor time of this process and the server together.

    It takes 150 to 270, depending on the processor, which is less than ten milliseconds. Other
    programs make a processor slower, so the quickest test counts, beside the quickest bare
    statements of the same time.
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
        costs, bare = [], []
        for _ in range(TESTS):
            start = spent(server)
            one(conn)
            middle = spent(server)
            for _ in range(STATEMENTS):
                conn.execute("SELECT 1")
            conn.rollback()
            costs.append(middle - start)
            bare.append((spent(server) - middle) / STATEMENTS)
    assert min(costs) < 500 * min(bare)


def spent(server: Path) -> float:
    """Seconds of processor time: this process's, and the server's for the connection."""
    return time.process_time() + int(server.read_text(encoding="ascii").split()[0]) / 1e9
