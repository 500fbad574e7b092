"""The dashboard of several databases: the page of all, pages of each, one that does not answer."""

import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient
from werkzeug.test import Client

from rota import ConfigError, Rota, WorkerConfig
from rota.app.shards import Shards
from rota.dashboard.access import Access
from rota.dashboard.message import Request, Response
from rota.dashboard.pages import overview
from rota.dashboard.several import Several
from rota.top import aside
from rota.worker import Worker

NAMES = ("eu", "us")
AWAY = "postgresql://nobody@127.0.0.1:1/nothing"
OWN = {"sec-fetch-site": "same-origin"}


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Shards]:
    """Two files: `eu` has one job that waits, `us` two, and one that was discarded."""
    with Rota.shards({name: f"sqlite:///{tmp_path}/{name}.db" for name in NAMES}) as app:

        @app.task(name="fail", queue="mail", max_attempts=1)
        def fail() -> None:
            raise ValueError

        with app.on("us"):
            fail.enqueue()
            Worker(app["us"], WorkerConfig(drain=True)).run()
        for name in ("eu", "us", "us"):
            with app.on(name):
                fail.enqueue()
        yield app


def asking(app: Shards) -> Callable[..., Response]:
    """Asks its dashboard, which looks anew for each request, with everything allowed."""
    core = Several(app, every=0.0)

    def ask(path: str, *, method: str = "GET", json: bool = False, **query: str) -> Response:
        headers = OWN | ({"accept": "application/json"} if json else {})
        form = {"sure": "yes"} if method == "POST" else {}
        return core.answer(Request(method, path, Access.all(who="ann"), query, headers, form))

    return ask


def data(response: Response) -> Any:
    """What a program gets."""
    assert response.status == HTTPStatus.OK, response.body
    return msgspec.json.decode(response.body)


def test_each_and_the_sum(app: Shards) -> None:
    """The first page has the figures of each shard and of all.

    A queue's are added up, with where it is.
    """
    found = data(asking(app)("/", json=True))
    assert [(one["name"], one["jobs"]["available"]) for one in found["shards"]] == [
        ("eu", 1),
        ("us", 2),
    ]
    assert (found["sum"]["jobs"]["available"], found["sum"]["jobs"]["discarded"]) == (3, 1)
    [queue] = found["sum"]["queues"]
    assert (queue["name"], queue["jobs"]["available"]) == ("mail", 3)
    assert [shard["name"] for shard in queue["shards"]] == [*NAMES]
    assert found["away"] == []
    assert [(one["shard"], one["text"]) for one in found["notices"]] == [
        (name, "No worker takes jobs from queue mail") for name in NAMES
    ]


def test_the_pages_of_a_shard(app: Shards) -> None:
    """Below its name are all pages of one database, and their links stay there.

    The head leads to the other shards.
    """
    ask = asking(app)
    assert len(data(ask("/shard/us/jobs", json=True))["jobs"]) == 3
    assert len(data(ask("/shard/eu/jobs", json=True))["jobs"]) == 1
    page = ask("/shard/us/jobs").body.decode()
    assert 'href="./queues"' in page
    assert 'href="../../shard/eu/jobs"' in page
    assert 'href="../../"' in page
    assert "Jobs · us · Rota" in page
    # What is one shard's own may not be there on another one.
    assert 'href="../../../shard/eu/"' in ask("/shard/us/jobs/1").body.decode()


def test_the_way_to_a_shard(app: Shards) -> None:
    """A path without its last slash leads to the one with it; a shard that there is not is no page."""
    ask = asking(app)
    answer = ask("/shard/eu")
    assert (answer.status, answer.headers["location"]) == (HTTPStatus.PERMANENT_REDIRECT, "eu/")
    for path in ("/shard/mars/", "/shard/", "/jobs", "/shard/eu/shard/us/"):
        assert ask(path).status == HTTPStatus.NOT_FOUND


def test_an_action(app: Shards) -> None:
    """What is done on a shard's page is done on that shard, and written down there."""
    answer = asking(app)("/shard/us/jobs/3/cancel", method="POST")
    assert answer.status == HTTPStatus.SEE_OTHER
    assert answer.headers["location"].startswith("../../jobs/3?")
    assert str(app["us"].job(3).status) == "cancelled"
    assert [entry.who for entry in app["us"].admin.audit()] == ["ann"]
    assert str(app["eu"].job(1).status) == "available"


def test_the_same_rights(app: Shards) -> None:
    """Without the right to read there is nothing to see on any shard's page.

    Looking changes nothing.
    """
    core = Several(app, every=0.0)
    for path in ("/", "/shard/eu/", "/static/rota.css"):
        assert core.answer(Request("GET", path, Access.none())).status == HTTPStatus.FORBIDDEN
    read = Request("POST", "/shard/us/jobs/3/cancel", Access.read(), headers=OWN)
    assert core.answer(read).status == HTTPStatus.FORBIDDEN


def test_a_shard_that_is_away(app: Shards, tmp_path: Path) -> None:
    """It is named with the reason, and in no sum; the others are shown."""
    del app
    urls = {"away": AWAY, "us": f"sqlite:///{tmp_path}/us.db"}
    with Rota.shards(urls) as partly:
        ask = asking(partly)
        found = data(ask("/", json=True))
        assert found["away"] == ["away"]
        assert found["shards"][0]["failure"]
        assert found["sum"]["jobs"]["available"] == 2
        assert "away cannot be reached" in ask("/").body.decode()
        assert ask("/shard/away/").status == HTTPStatus.SERVICE_UNAVAILABLE
        assert ask("/shard/us/").status == HTTPStatus.OK


def test_a_shard_that_does_not_answer(app: Shards, monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps the page waiting for a moment only, and is asked once however often the page is."""
    monkeypatch.setattr(aside.answers, "__defaults__", (0.2,))
    go, asked = threading.Event(), []
    figures = overview.figures

    def stopped(looks: Any) -> Any:
        if looks._database is app["eu"].database:
            asked.append(looks)
            go.wait(30)
        return figures(looks)

    monkeypatch.setattr(overview, "figures", stopped)
    ask = asking(app)
    for _ in range(3):
        found = data(ask("/", json=True))
        assert found["away"] == ["eu"]
        assert "no answer for" in found["shards"][0]["failure"]
        assert found["sum"]["jobs"]["available"] == 2
    assert len(asked) == 1
    go.set()


def test_mounted(app: Shards) -> None:
    """`rota.dashboard` has it for ASGI, with a stream, and for WSGI; without `access` there is none."""
    both = app.dashboard(access=Access.all())
    client = TestClient(both)
    assert "All shards" in client.get("/").text
    assert client.get("/shard/us/queues").status_code == HTTPStatus.OK
    assert Client(both.wsgi).get("/shard/us/").status_code == HTTPStatus.OK
    with pytest.raises(ConfigError, match="say who may do what"):
        app.dashboard()
