"""What a test costs: one enqueue, one assertion, one drain."""

import time
from typing import Any

import psutil
import psycopg
import pytest

from rota import Rota
from rota.testing import Kit

TESTS = 40
BEST_OF = 10


@pytest.mark.parametrize("kit_url", ["postgres"], indirect=True)
def test_a_test_costs_little(app: Rota, kit_url: str) -> None:
    """Less than ten milliseconds of processor time, of this process and of the server's together."""

    @app.task(name="mail")
    def mail(user: str) -> None: ...

    def one(conn: Any) -> None:
        with Kit(conn, app=app) as kit:
            mail.enqueue("a@example.org", conn=conn)
            kit.assert_enqueued(mail, user="a@example.org")
            assert kit.drain().completed == 1
        conn.rollback()

    with psycopg.connect(kit_url) as conn:
        server = psutil.Process(conn.info.backend_pid)

        def spent() -> float:
            times = server.cpu_times()
            return time.process_time() + times.user + times.system

        one(conn)
        costs = []
        for _ in range(BEST_OF):
            before = spent()
            for _ in range(TESTS):
                one(conn)
            costs.append((spent() - before) / TESTS)
    assert min(costs) < 0.010
