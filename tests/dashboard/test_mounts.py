"""The dashboard under ASGI and WSGI, mounted somewhere and alone."""

import asyncio
import re
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

import pytest
from fastapi import FastAPI
from flask import Flask
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount
from starlette.testclient import TestClient
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.test import Client

from rota import Rota
from rota.dashboard import asgi
from rota.dashboard.access import Access
from rota.dashboard.pages import ROUTES
from rota.dashboard.several import core_of
from rota.errors import ConfigError

Ask = Callable[[str], tuple[int, str, dict[str, str]]]


def from_starlette(rota: Rota) -> Ask:
    """Mounted two levels deep."""
    inner = Starlette(routes=[Mount("/rota", rota.dashboard(access=Access.all()))])
    client = TestClient(Starlette(routes=[Mount("/ops", inner)]))
    return lambda path: _answer(client.get(f"/ops/rota{path}"))


def from_fastapi(rota: Rota) -> Ask:
    """Mounted, in an application whose server is told of a prefix."""
    app = FastAPI()
    app.mount("/rota", rota.dashboard(access=lambda request: Access.all()))  # noqa: ARG005
    client = TestClient(app, root_path="/behind")
    return lambda path: _answer(client.get(f"/behind/rota{path}"))


def alone(rota: Rota) -> Ask:
    """An application of its own."""
    client = TestClient(rota.dashboard(access=Access.all()))
    return lambda path: _answer(client.get(path))


def from_flask(rota: Rota) -> Ask:
    """Mounted beside an application of Flask's."""
    app = Flask("shop")
    wsgi = rota.dashboard(access=Access.all()).wsgi
    app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/rota": wsgi})  # type: ignore[method-assign]
    client = Client(app)

    def ask(path: str) -> tuple[int, str, dict[str, str]]:
        response = client.get(f"/rota{path}")
        return response.status_code, response.text, dict(response.headers.items(lower=True))

    return ask


def _answer(response: Any) -> tuple[int, str, dict[str, str]]:
    return response.status_code, response.text, dict(response.headers)


@pytest.fixture(params=[from_starlette, from_fastapi, alone, from_flask])
def ask(request: pytest.FixtureRequest, app: Rota) -> Ask:
    """Asks for a path below the mount."""
    send = app.task(name="send")(lambda: None)
    send.enqueue()
    with app.flow("letters") as flow:
        flow.map(send, [()] * 2)
        flow.add(send)
    found: Ask = request.param(app)
    return found


def test_every_page_and_every_link(ask: Ask) -> None:
    """All pages are there, and all that they link to, by relative links, is there, too."""
    shown = (route.path for route in ROUTES if route.method == "GET")
    paths = [path.replace("{id}", "1").replace("{name}", "rota.css") for path in shown]
    paths[paths.index("/queue")] = "/queue?name=default"
    for path in paths:
        status, text, headers = ask(path)
        assert status == HTTPStatus.OK, (path, text)
        assert headers["content-security-policy"].startswith("default-src 'none'")
        if not headers["content-type"].startswith("text/html"):
            continue
        for link in re.findall(r'(?:href|src|hx-get)="([^"#]*)"', text):
            assert not link.startswith(("/", "http")), link
            status, _, _ = ask(_joined(path, link.replace("&amp;", "&")))
            assert status == HTTPStatus.OK, (path, link)


def _joined(path: str, link: str) -> str:
    """Where a relative link of a page leads."""
    parts = path.partition("?")[0].split("/")[:-1]
    for part in link.partition("?")[0].split("/"):
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts) + (f"?{link.partition('?')[2]}" if "?" in link else "")


def test_the_mount_itself(app: Rota) -> None:
    """Without its last slash relative links would lead elsewhere, so it is added."""
    flask = Flask("shop")
    wsgi = app.dashboard(access=Access.all()).wsgi
    flask.wsgi_app = DispatcherMiddleware(flask.wsgi_app, {"/ops/rota": wsgi})  # type: ignore[method-assign]
    response = Client(flask).get("/ops/rota")
    assert response.status_code == HTTPStatus.PERMANENT_REDIRECT
    assert response.headers["location"] == "rota/"
    dashboard = app.dashboard(access=Access.all())
    client = TestClient(Starlette(routes=[Mount("/ops/rota", dashboard)]))
    assert client.get("/ops/rota").url.path == "/ops/rota/"
    client = TestClient(dashboard, root_path="/ops/rota")
    assert client.get("/ops/rota").url.path == "/ops/rota/"


def test_forms(app: Rota) -> None:
    """What a form sends arrives, under ASGI and WSGI; what is too large does not."""
    app.task(name="send")(lambda: None)
    headers = {"sec-fetch-site": "same-origin"}
    dashboard = app.dashboard(access=Access.all())
    client, other = TestClient(dashboard), Client(dashboard.wsgi)
    large = {"name": "pläne", "more": "x" * 100_000}
    for answer in (
        client.post("/queue/pause", data=large, headers=headers).status_code,
        other.post("/queue/pause", data=large, headers=headers).status_code,
    ):
        assert answer == HTTPStatus.BAD_REQUEST
    form = {"name": "pläne"}
    client.post("/queue/pause", data=form, headers=headers, follow_redirects=False)
    assert [(one.name, one.paused) for one in app.admin.queues()] == [("pläne", True)]
    other.post("/queue/resume", data=form, headers=headers)
    assert [(one.name, one.paused) for one in app.admin.queues()] == [("pläne", False)]


def test_json(app: Rota) -> None:
    """Programs ask for JSON, by the header that they send anyway."""
    client = TestClient(app.dashboard(access=Access.read()))
    response = client.get("/", headers={"accept": "application/json"})
    assert response.json()["queues"] == []


def test_access_by_request(app: Rota) -> None:
    """A function, `async` or not, says what a request may do; it gets the framework's request."""

    def by_header(request: Request) -> Access:
        return Access.read() if request.headers.get("x-user") == "ada" else Access.none()

    async def later(request: Request) -> Access:
        await asyncio.sleep(0)
        return by_header(request)

    for access in (by_header, later):
        client = TestClient(app.dashboard(access=access))
        assert client.get("/").status_code == HTTPStatus.FORBIDDEN
        assert client.get("/", headers={"x-user": "ada"}).status_code == HTTPStatus.OK
    wsgi = app.dashboard(
        access=lambda environ: Access.read() if environ.get("HTTP_X_USER") else Access.none()
    ).wsgi
    assert Client(wsgi).get("/").status_code == HTTPStatus.FORBIDDEN
    assert Client(wsgi).get("/", headers={"x-user": "ada"}).status_code == HTTPStatus.OK


def test_access_that_says_nothing(app: Rota) -> None:
    """A function that forgets to return grants nothing."""
    client = TestClient(app.dashboard(access=lambda request: None))  # noqa: ARG005
    with pytest.raises(ConfigError, match="must return an Access"):
        client.get("/")


def test_a_stream_tells_what_changes(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins with the live part, sends it again when that has changed, and ends with its reader."""
    monkeypatch.setattr(asgi, "EVERY", 0.01)
    task = app.task(name="send")(lambda: None)
    task.using(queue="one").enqueue()
    dashboard = app.dashboard(access=Access.read())
    dashboard.core = core_of(app, every=0.0)
    chunks = _stream(dashboard, "/queues", lambda: task.using(queue="two").enqueue())
    first, last = next(chunks), next(chunks)
    assert b"data: " in first
    assert b">one</a>" in first
    assert b">two</a>" not in first
    assert b">two</a>" in last


@pytest.mark.parametrize("path", ["/jobs", "/nowhere"])
def test_pages_without_a_live_part_have_no_stream(app: Rota, path: str) -> None:
    """The parameter means nothing there."""
    client = TestClient(app.dashboard(access=Access.read()))
    assert (
        client.get(path, params={"part": "stream"}).headers["content-type"].startswith("text/html")
    )


def test_a_stream_is_refused_as_its_page_is(app: Rota) -> None:
    """Without the right there is no stream."""
    client = TestClient(app.dashboard(access=Access.none()))
    assert client.get("/", params={"part": "stream"}).status_code == HTTPStatus.FORBIDDEN


def _stream(dashboard: Any, path: str, between: Callable[[], object]) -> Iterator[bytes]:
    """The first chunk of a stream, and the first with `two` in it that comes after `between`."""
    chunks: list[bytes] = []

    async def read() -> None:
        gone = asyncio.Event()
        asked = asyncio.Event()

        async def receive() -> dict[str, Any]:
            if not asked.is_set():
                asked.set()
                return {"type": "http.request", "body": b"", "more_body": False}
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                assert (b"content-type", b"text/event-stream; charset=utf-8") in message["headers"]
            elif chunk := message.get("body"):
                if not chunks:
                    chunks.append(chunk)
                    await asyncio.to_thread(between)
                elif b">two</a>" in chunk:
                    chunks.append(chunk)
                    gone.set()

        scope = {
            "type": "http", "method": "GET", "path": path, "root_path": "", "headers": [],
            "query_string": b"part=stream",
        }  # fmt: skip
        async with asyncio.timeout(30):
            await dashboard(scope, receive, send)

    asyncio.run(read())
    yield from chunks
