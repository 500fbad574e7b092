"""The example service with orders, served by uvicorn, with a worker of its own."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2 as httpx
import pytest

from tests.cli.calling import rota as command
from tests.cli.calling import started
from tests.contrib.serving import Server, address, serving, uvicorn
from tests.fixtures.workers import LONG, ROOT

EXAMPLES = ROOT / "examples"


@pytest.fixture
def server(store: object, store_url: str) -> Iterator[Server]:
    """The service on a database that is up to date."""
    del store
    with uvicorn("fastapi_orders.service:app", EXAMPLES, ROTA_DATABASE_URL=store_url) as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    """A client of the service."""
    with httpx.Client(base_url=address(server), timeout=LONG) as client:
        yield client


def events(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    """The events of a stream: name and data."""
    name = ""
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def test_an_order(client: httpx.Client, store_url: str) -> None:
    """An order is stored with its job; who looks on sees it wait, run and end, with its result."""
    accepted = client.post("/orders", json={"customer": "Ada", "items": 3})
    assert accepted.status_code == 201
    order, job = accepted.json()["order"], accepted.json()["job"]
    seen = client.get(f"/jobs/{job}").json()
    assert (seen["state"], seen["progress"], seen["result"]) == ("available", 0, None)
    with client.stream("GET", f"/jobs/{job}/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        coming = events(stream.iter_lines())
        assert next(coming)[1]["state"] == "available"
        target = "fastapi_orders.jobs:rota"
        with started("worker", target, "--drain", url=store_url, cwd=EXAMPLES) as worker:
            rest = list(coming)
            assert worker.wait(LONG) == 0
    assert {name for name, _ in rest[:-1]} == {"change"}
    assert any(0 < data["progress"] < 1 for _, data in rest)
    name, last = rest[-1]
    assert name == "finished"
    assert (last["state"], last["result"]) == ("completed", f"parcel-{order}")
    assert (last["progress"], last["message"]) == (1, "3 of 3 items packed")
    assert client.get(f"/jobs/{job}").json()["result"] == f"parcel-{order}"


def test_one_command(store: object, store_url: str) -> None:
    """`python -m fastapi_orders` runs the service with a worker beside it, and ends both."""
    del store
    with serving(EXAMPLES, "fastapi_orders", "--port=0", ROTA_DATABASE_URL=store_url) as server:
        with httpx.Client(base_url=address(server), timeout=LONG) as client:
            job = client.post("/orders", json={"customer": "Ada", "items": 1}).json()["job"]
            with client.stream("GET", f"/jobs/{job}/events") as stream:
                *_, (name, last) = events(stream.iter_lines())
        assert (name, last["state"]) == ("finished", "completed")
        server.stop()
    assert "worker stopped" in "".join(server.said)


def test_what_is_wrong(client: httpx.Client, store_url: str) -> None:
    """A bad order stores no job; a job that is not there is not found, and opens no stream."""
    assert client.post("/orders", json={"customer": "", "items": 3}).status_code == 422
    for path in ("/jobs/4711", "/jobs/4711/events", "/jobs/0"):
        assert client.get(path).status_code == 404
    assert json.loads(command("jobs", "list", "--json", url=store_url).stdout) == {"jobs": []}


def test_a_listener_does_not_keep_the_server(store: object, store_url: str) -> None:
    """A stream that nothing ends is cut when the server's own patience is over."""
    del store
    options = ("--timeout-graceful-shutdown", "1")
    target = "fastapi_orders.service:app"
    with uvicorn(target, EXAMPLES, *options, ROTA_DATABASE_URL=store_url) as server:
        with httpx.Client(base_url=address(server), timeout=LONG) as client:
            job = client.post("/orders", json={"customer": "Ada", "items": 3}).json()["job"]
            with client.stream("GET", f"/jobs/{job}/events") as stream:
                assert next(events(stream.iter_lines()))[1]["state"] == "available"
                server.stop()
        assert "Application shutdown complete" in "".join(server.said)
