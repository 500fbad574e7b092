"""`rota workers`."""

import json
import os

from rota.model.job import SessionInfo
from rota.store.connections import Connection
from rota.store.protocol import Store
from tests.cli.calling import rota
from tests.store.factories import claim, enqueue, open_session


def test_no_workers(store_url: str, store: Store) -> None:
    """There are headings alone, and JSON has an empty list."""
    assert store.name in store_url
    assert len(rota("workers", "list", url=store_url).stdout.splitlines()) == 1
    assert json.loads(rota("workers", "list", "--json", url=store_url).stdout) == {"workers": []}


def test_what_runs_where(store_url: str, store: Store, connection: Connection) -> None:
    """Each worker with its host, process and queues, and its jobs since when."""
    busy = open_session(store, connection)
    connection.run(store.open_session(SessionInfo("beta", 7, ("mail", "web-*"), timeout=600.0)))
    jobs = enqueue(store, connection, 3)
    claim(store, connection, busy)
    shown = rota("workers", "list", url=store_url).output
    lines = shown.splitlines()
    assert "alpha:4711" in lines[1]
    assert [line.split().count("shop.send") for line in lines[1:4]] == [1, 1, 1]
    assert [str(job) in line for job, line in zip(jobs, lines[1:4], strict=True)] == [True] * 3
    assert "beta:7" in lines[4]
    assert "mail, web-*" in lines[4]
    found = json.loads(rota("workers", "list", "--json", "--jobs", "2", url=store_url).stdout)
    one, two = found["workers"]
    assert (one["host"], one["pid"], one["held"], one["alive"]) == ("alpha", 4711, 3, True)
    assert [(job["id"], job["task"], job["queue"], job["attempt"]) for job in one["jobs"]] == [
        (job, "shop.send", "default", 1) for job in jobs[:2]
    ]
    assert (one["jobs"][0]["since"] is None) is (store.name == "sqlite")
    assert (two["queues"], two["jobs"]) == (["mail", "web-*"], [])


def test_more_than_are_shown(store_url: str, store: Store, connection: Connection) -> None:
    """What is left out is counted, and what shows it is named."""
    busy = open_session(store, connection)
    enqueue(store, connection, 3)
    claim(store, connection, busy)
    result = rota("workers", "list", "--jobs", "1", url=store_url)
    assert "alpha:4711 holds 2 more; --jobs shows more" in result.stderr


def test_a_worker_that_is_dead(store_url: str, store: Store, connection: Connection) -> None:
    """It is marked until it is rescued."""
    open_session(store, connection, timeout=0.0)
    assert "!" in rota("workers", "list", url=store_url).output
    [found] = json.loads(rota("workers", "list", "--json", url=store_url).stdout)["workers"]
    assert found["alive"] is False
    assert found["pid"] != os.getpid()
