"""How many connections a worker has."""

import threading
from contextlib import closing

import psycopg
import pytest

from rota import Context, Rota
from tests.fixtures.workers import until, working

pytestmark = pytest.mark.both

COUNT = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND backend_type = 'client backend'"
)

OWN = 4
"""Those of the claimer, the settler, the session and upkeep."""


@pytest.fixture
def store_url(postgres_url: str) -> str:
    """A file has no connections to be counted."""
    return postgres_url


@pytest.mark.parametrize("slots", [1, 4, 16])
def test_a_worker_at_most(app: Rota, slots: int) -> None:
    """Four of its own, one for notes, and those of the app: ten, or one for each slot and two."""
    most = OWN + 1 + max(10, slots + 2)
    inside, counted, calling = (threading.Barrier(slots + 1, timeout=20) for _ in range(3))

    @app.task(name="work")
    def work(ctx: Context) -> None:
        ctx.progress(0.5)
        with ctx.transaction() as tx:
            tx.execute("SELECT 1")
            inside.wait()
            counted.wait()
            assert app.job(ctx.job_id).status
            calling.wait()

    @app.task(name="plain")
    def plain() -> None: ...

    with (
        closing(psycopg.connect(app.url, autocommit=True)) as admin,
        working(app, concurrency=slots),
    ):

        def count() -> int:
            [(number,)] = admin.execute(COUNT).fetchall()
            return int(number)

        plain.enqueue()
        # And that of the app, on which the job was enqueued.
        until(lambda: count() == OWN + 1)
        work.enqueue_many([()] * slots)
        inside.wait()
        until(lambda: OWN + 1 + slots < count() <= most)
        counted.wait()
        calling.wait()
        assert count() <= most
