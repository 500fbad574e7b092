"""`rota limits`."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from rota import Limit, Rota
from tests.cli.calling import answer, make_tables, refused, rota
from tests.fixtures.workers import working


@pytest.fixture
def app(store_url: str) -> Iterator[Rota]:
    """An app with a task that has a limit."""
    make_tables(store_url)
    with Rota(store_url) as app:
        yield app


def test_list(app: Rota) -> None:
    """Each limit in use has a line, and one that is full is marked."""
    assert answer("limits", "list", url=app.url) == {"limits": []}
    running, watched = threading.Event(), threading.Event()

    @app.task(name="call", limit=Limit("tenant:{tenant}", running=1, per_minute=60))
    async def call(tenant: str) -> None:
        del tenant
        running.set()
        await asyncio.to_thread(watched.wait, 20)

    call.enqueue_many([("acme",), ("acme",)])
    with working(app):
        assert running.wait(20)
        shown = rota("limits", "list", url=app.url).stdout.splitlines()
        found = answer("limits", "list", url=app.url)
        again = app.admin.limits()
        watched.set()
    assert [[cell.strip() for cell in line.split("\t")] for line in shown] == [
        ["limit", "running", "starts", "within", "jobs wait"],
        ["tenant:acme!", "1 of 1", "1 of 60", "1 min", "yes"],
    ]
    assert found == {"limits": [{
        "key": "tenant:acme", "running": 1, "held": 1, "rate": 60, "seconds": 60.0, "started": 1,
        "waiting": True, "full": True,
    }]}  # fmt: skip
    assert [(limit.key, limit.held, limit.full) for limit in again] == [("tenant:acme", 1, True)]


def test_so_many(app: Rota) -> None:
    """`--most` bounds the list, and says that there are more."""
    call = app.task(name="call", limit=Limit("tenant:{tenant}", running=1))(_call)
    call.enqueue_many([("a",), ("b",)])
    listed = rota("limits", "list", "--most", 1, url=app.url)
    assert len(listed.stdout.splitlines()) == 2
    assert "(1 limits; more with --most)" in listed.stderr
    refused(rota("limits", "list", url="sqlite:///nothing.db"), 4, "nothing.db")


async def _call(tenant: str) -> None: ...
