"""How often the dashboard looks at the database, and what pages show meanwhile."""

import threading
import time
from dataclasses import replace

import pytest

from rota import Rota
from rota.dashboard import looks
from rota.dashboard.access import Access
from rota.dashboard.core import Core
from rota.dashboard.looks import Looks, Seen
from rota.dashboard.message import Request
from rota.top.history import History
from tests.store.factories import until


@pytest.fixture
def store_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """SQLite alone: looking is not the store's."""
    return f"sqlite:///{tmp_path_factory.mktemp('looks')}/rota.db"


@pytest.fixture
def app(store_url: str) -> Rota:
    """An app whose queue is used."""
    app = Rota(store_url)
    app.task(name="send", queue="mail")(lambda: None)
    app.find_task("send").enqueue()
    return app


def names(seen: Seen) -> list[str]:
    """The queues that were seen."""
    return [row.name for row in seen.rows]


def test_one_look_for_all(app: Rota) -> None:
    """Whoever asks within the time gets what was seen already."""
    shared = Looks(app.database, 3600.0)
    assert shared.now() is shared.now()


def test_a_long_look_is_made_less_often(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a look there is a pause of many times its length."""
    shared = Looks(app.database, 1e-9)
    first = shared.now()
    monkeypatch.setattr(looks, "SHARE", 3600.0 / first.snapshot.took)
    assert shared.now() is first
    for thread in threading.enumerate():
        if thread.name == "rota-look":
            thread.join()
    assert shared.now() is first
    monkeypatch.setattr(looks, "SHARE", 0.0)
    assert shared.now() is not first


def test_a_look_costs_a_hundredth(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks of milliseconds are so far apart that they take a hundredth of the time.

    But they are never more than three times as far apart as usual.
    """
    shared = Looks(app.database, 1000.0)
    first = shared.now()

    def aged(seconds: float, took: float) -> Looks:
        moment = time.monotonic() - seconds
        snapshot = replace(first.snapshot, moment=moment, took=took)
        monkeypatch.setattr(shared, "_seen", replace(first, snapshot=snapshot))
        return shared

    for seconds, took, again in (
        (990, 10.0, False),
        (1010, 9.0, True),
        (1900, 20.0, False),
        (2100, 20.0, True),
        (2900, 40.0, False),
        (3100, 40.0, True),
    ):
        before = aged(seconds, took)._seen
        assert (shared.now() is not before) is again, (seconds, took)


def test_pages_do_not_wait_for_a_long_look(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a long look is due again, pages show the last one until the next has been made."""
    shared = Looks(app.database, 1e-9)
    first = shared.now()
    monkeypatch.setattr(looks, "SHARE", 1e-3)
    app.queue("other").pause()
    until(lambda: shared.now() is first or None)
    until(lambda: names(shared.now()) == ["mail", "other"] or None)


def test_what_was_done_shows_at_once(app: Rota) -> None:
    """After a change the next page looks anew, however new the last look is."""
    core = Core(app, every=3600.0)
    asked = Request("GET", "/queue", Access.all(), {"name": "mail"}, {"accept": "application/json"})
    assert b'"paused":false' in core.answer(asked).body
    own = {"sec-fetch-site": "same-origin"}
    core.answer(Request("POST", "/queue/pause", Access.all(), {}, own, {"name": "mail"}))
    assert b'"paused":true' in core.answer(asked).body


def test_what_was_done_is_not_waited_for(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where looks take long, the last one is shown after a change, and the next is begun at once."""
    shared = Looks(app.database, 1e-9)
    monkeypatch.setattr(looks, "PATIENCE", 0.0)
    monkeypatch.setattr(looks, "SHARE", 1e9)
    first = shared.now()
    app.queue("other").pause()
    shared.forget()
    assert shared.now() is first
    until(lambda: names(shared.now()) == ["mail", "other"] or None)
    assert shared.now() is shared.now()


def test_a_row_keeps_its_minute(app: Rota) -> None:
    """The course of a row is that of its look, though the history goes on."""
    shared = Looks(app.database, 3600.0)
    [row] = shared.now().rows
    history = History()
    for moment in (0.0, 60.0):
        history.add(moment, shared.now().snapshot.queues)
    row = replace(row, minute=history.minute())
    assert set(row.course) == {0.0}
    history.add(600.0, [])
    assert set(row.course) == {0.0}
