"""Much of everything: pages show a part, say how much is left, and go on."""

from collections.abc import Callable
from typing import Any

import pytest

from rota import Rota
from rota.cron.entry import CronEntry
from rota.dashboard.listing import newest
from rota.model.job import JobFilter, SessionInfo
from tests.dashboard.conftest import drain

Data = Callable[..., Any]
Text = Callable[..., str]


@pytest.fixture
def store_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """SQLite alone: what a page shows of many is not the store's."""
    return f"sqlite:///{tmp_path_factory.mktemp('many')}/rota.db"


def test_many_workers(app: Rota, data: Data, page: Text) -> None:
    """Fifty on a page; a queue's page names fifty of those that serve it."""
    store, run = app.database.store, app.database.run
    for number in range(60):
        run(store.open_session(SessionInfo("host", number, ("default",), 600.0)))
    app.task(name="send")(lambda: None)
    app.find_task("send").enqueue()
    run(
        store.claim(
            run(store.open_session(SessionInfo("last", 1, ("default",), 600.0))), ["default"], 1
        )
    )
    first = data("/workers")
    assert (len(first["workers"]), first["all"]) == (50, 61)
    assert "And 11 more" in page("/workers")
    second = data("/workers", after=first["after"])
    assert [worker["host"] for worker in second["workers"]] == ["host"] * 10 + ["last"]
    assert len(second["workers"][-1]["jobs"]) == 1
    assert second["after"] is None
    queue = data("/queue", name="default")
    assert (len(queue["workers"]), queue["more_workers"]) == (50, 11)
    assert "And 11 more" in page("/queue", name="default")


def test_many_entries(app: Rota, data: Data, page: Text) -> None:
    """A hundred cron entries on a page, by name."""
    for number in range(101):
        app.database.run(
            app.database.store.cron.add(CronEntry(f"entry {number:03}", "0 9 * * *", "send"))
        )
    first = data("/cron")
    assert (len(first["entries"]), first["after"]) == (100, "entry 099")
    assert "And 1 more" in page("/cron")
    second = data("/cron", after="entry 099")
    assert [entry["name"] for entry in second["entries"]] == ["entry 100"]
    assert second["after"] is None


def test_large_jobs(app: Rota, data: Data, page: Text) -> None:
    """A list has no args and the beginning of a message; no job is found by what lies in large args."""
    text = "x" * 900_000

    @app.task(name="send", max_attempts=1)
    def send(number: int, text: str) -> None:
        del number
        raise ValueError(text)

    job = send.enqueue(1, text)
    small = send.enqueue(1, "small")
    drain(app)
    assert len(page("/jobs")) < 10_000
    assert len(page("/discarded")) < 10_000
    jobs, _ = newest(app.database, JobFilter(), 100)
    assert {job.args for job in jobs} == {"{}"}
    [found] = data("/jobs", arg="number=1")["jobs"]
    assert found["id"] == str(small.id)
    whole = page(f"/jobs/{job.id}")
    assert "characters left out" in whole
    assert len(whole) < 100_000
