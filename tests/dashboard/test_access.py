"""Who may do what: every route with every access, and what keeps a page safe in a browser."""

import itertools
import tempfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

import psycopg
import pytest

from rota import Limit, Rota
from rota.dashboard.access import Access, Right, granted
from rota.dashboard.core import Core
from rota.dashboard.message import Request, Response
from rota.dashboard.pages import ROUTES
from rota.dashboard.routes import Call, Route
from rota.dashboard.safety import HEADERS, same_origin
from rota.errors import ConfigError
from rota.measure.servers import PostgresServer
from tests.dashboard.conftest import Get

OWN = {"sec-fetch-site": "same-origin"}
HERE = {"host": "shop.example", "origin": "https://shop.example"}

SETS = [frozenset(some) for many in range(3) for some in itertools.combinations(Right, many)]
ACCESSES = [*map(Access, SETS), Access.all()]
"""All sets of up to two rights, and the one with all."""


def reaches(
    core: Core, monkeypatch: pytest.MonkeyPatch, route: Route[Call], request: Request
) -> tuple[bool, Response]:
    """Whether a request comes to the page of a route, which does nothing here; and the response."""
    called = []

    def page(call: object) -> Response:
        called.append(call)
        return Response(HTTPStatus.NO_CONTENT)

    watched = replace(route, page=page)
    with monkeypatch.context() as patch:
        routes = tuple(watched if one is route else one for one in ROUTES)
        patch.setattr(core, "routes", routes)
        response = core.answer(request)
    return bool(called), response


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_route_with_every_access(
    core: Core, monkeypatch: pytest.MonkeyPatch, route: Route[Call]
) -> None:
    """A page is called if the request may read and has the route's own right; else it is refused."""
    path = route.path.replace("{id}", "1").replace("{name}", "x")
    for access in ACCESSES:
        request = Request(route.method, path, access, headers=OWN)
        called, response = reaches(core, monkeypatch, route, request)
        assert called == (access.may(Right.READ) and access.may(route.right)), access
        assert called or response.status == HTTPStatus.FORBIDDEN
        assert HEADERS.items() <= response.headers.items()


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_changes_come_from_a_page_of_this_host(
    core: Core, monkeypatch: pytest.MonkeyPatch, route: Route[Call]
) -> None:
    """A route that changes something is not reached from elsewhere; one that only shows is."""
    path = route.path.replace("{id}", "1").replace("{name}", "x")
    for headers, own in (
        (OWN, True),
        (HERE, True),
        ({}, False),
        ({"sec-fetch-site": "none"}, False),
    ):
        request = Request(route.method, path, Access.all(), headers=headers)
        called, _ = reaches(core, monkeypatch, route, request)
        assert called == (own or route.method == "GET")


@pytest.mark.parametrize(
    ("headers", "same"),
    [
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "same-site", **HERE}, False),
        ({"sec-fetch-site": "cross-site", **HERE}, False),
        ({"sec-fetch-site": "none", **HERE}, False),
        (HERE, True),
        ({"host": "shop.example", "origin": "https://SHOP.example"}, True),
        ({"host": "shop.example:8000", "origin": "https://shop.example"}, False),
        ({"host": "shop.example", "origin": "null"}, False),
        ({"host": "", "origin": "null"}, False),
        ({"host": "shop.example", "origin": "https://evil.example"}, False),
        ({"host": "shop.example"}, False),
        ({}, False),
    ],
)
def test_where_a_request_comes_from(headers: Mapping[str, str], same: bool) -> None:  # noqa: FBT001
    """The browser says so; where it says nothing, the origin must be this host."""
    assert same_origin(headers) is same


@pytest.mark.parametrize(
    "path", ["/", "/nowhere", "/jobs/1", "/static/rota.css", "/static/../core.py"]
)
def test_nothing_is_seen_without_the_right_to_read(get: Get, path: str) -> None:
    """Not even whether a page is there."""
    response = get(path, access=Access.none())
    assert response.status == HTTPStatus.FORBIDDEN
    assert "You may not see this dashboard." in response.body.decode()


def test_the_headers_of_every_answer(app: Rota, core: Core, get: Get) -> None:
    """Pages, refusals, files, redirects and failures have the policy, word for word."""
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    app.use("sqlite:////nowhere/rota.db")  # from now on, pages that look fail
    for path in ("/", "/nowhere", "/jobs/x", "/static/rota.css", "/static/x"):
        for method in ("GET", "HEAD", "POST", "DELETE"):
            request = Request(method, path, Access.all(), headers=OWN)
            response = core.answer(request)
            assert response.headers["content-security-policy"] == policy
            assert response.headers["x-content-type-options"] == "nosniff"
            assert "set-cookie" not in response.headers
    assert get("/").status == HTTPStatus.SERVICE_UNAVAILABLE


def test_a_page_that_fails(
    core: Core, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It says so and nothing more; the log has the reason."""

    def broken() -> None:
        message = "password=hunter2"
        raise RuntimeError(message)

    monkeypatch.setattr(core.looks, "now", broken)
    response = core.answer(Request("GET", "/", Access.all()))
    assert response.status == HTTPStatus.INTERNAL_SERVER_ERROR
    assert "hunter2" not in response.body.decode()
    assert HEADERS.items() <= response.headers.items()
    assert "hunter2" in caplog.text


def test_no_inline_script_or_style(app: Rota, get: Get) -> None:
    """The policy forbids them, so no page has any."""
    app.task(name="send")(lambda: None)
    app.find_task("send").enqueue()
    for route in ROUTES:
        if route.method == "GET" and "static" not in route.path:
            shown = get(route.path.replace("{id}", "1"), name="default").body.decode()
            assert "<script>" not in shown
            assert "style=" not in shown
            assert " on" + "click" not in shown
            assert "<style" not in shown


def test_args_are_a_right_of_their_own(app: Rota, get: Get) -> None:
    """Without it a page shows neither args nor headers nor results, to people and to programs."""

    @app.task(name="send", unique="key-{text}", limit=Limit(key="limit-{text}", per_hour=1))
    def send(text: str) -> None:
        del text

    job = send.using(headers={"trace": "header-ARG"}).enqueue("ARG")
    app.cron.add("nightly", "@daily", send, args=("ARG",))
    for path in (f"/jobs/{job.id}", "/cron", "/jobs", "/", "/limits"):
        for json in (False, True):
            assert "ARG" not in get(path, access=Access.read(), json=json).body.decode(), path
    for guess in ({"subject": "key-ARG"}, {"arg": "text=ARG"}):
        assert get("/jobs", access=Access.read(), **guess).status == HTTPStatus.FORBIDDEN
    assert "ARG" in get(f"/jobs/{job.id}", access=Access.only("args")).body.decode()


def test_a_dashboard_says_who_may_see_it(app: Rota) -> None:
    """Without `access=` there is none."""
    with pytest.raises(ConfigError, match="say who may do what"):
        app.dashboard()
    with pytest.raises(ConfigError, match="say who may do what"):
        app.dashboard(access=True)


@pytest.mark.usefixtures("postgres_url")  # skips where there is no PostgreSQL
def test_a_standby_can_only_be_read() -> None:
    """Nothing can be done there, and nothing is offered; all is shown."""
    folder = Path(tempfile.mkdtemp(prefix="rota-")) / "data"
    folder.parent.chmod(0o755)
    with PostgresServer.start(folder=folder) as server:
        with Rota(server.url) as app:
            app.admin.migrate()
            job = app.task(name="send")(lambda: None).enqueue()
            assert not Core(app).looks.read_only()
        with closing(psycopg.connect(server.url)) as raw:
            [(data,)] = raw.execute("SHOW data_directory").fetchall()
        Path(data, "standby.signal").touch()
        server.restart()
        with Rota(server.url) as app:
            core = Core(app)
            for path in (
                "/",
                "/queues",
                "/jobs",
                "/cron",
                "/limits",
                "/workers",
                "/doctor",
                "/audit",
            ):
                response = core.answer(Request("GET", path, Access.all()))
                assert response.status == HTTPStatus.OK, response.body
            request = Request("GET", f"/jobs/{job.id}", Access.all())
            shown = core.answer(request).body.decode()
            assert "available" in shown
            assert "/cancel" not in shown
            request = Request("POST", f"/jobs/{job.id}/retry", Access.all(), headers=OWN)
            assert core.answer(request).status == HTTPStatus.FORBIDDEN
            form = {"which": "all", "queue": "default"}
            request = Request("POST", "/jobs/cancel", Access.all(), {}, OWN, form)
            assert core.answer(request).status == HTTPStatus.FORBIDDEN
            request = Request("GET", "/jobs", Access.all(), {"queue": "default"})
            assert "All that match" not in core.answer(request).body.decode()
        Path(data, "standby.signal").unlink()
    folder.parent.rmdir()


def test_values_of_access() -> None:
    """None, reading, all, and single rights, which include reading."""
    assert not Access.none().rights
    assert Access.read().rights == {Right.READ}
    assert Access.all().rights == set(Right)
    assert Access.only("retry", "pause").rights == {Right.READ, Right.RETRY, Right.PAUSE}
    assert Access.all().looking().rights == {Right.READ, Right.ARGS}
    with pytest.raises(ConfigError, match="the rights are read, args, retry"):
        Access.only("everything")
    with pytest.raises(ConfigError, match="must return an Access"):
        granted(True)


@pytest.mark.parametrize("name", ["core.py", "../core.py", "VENDORED.toml", "", "%2e%2e"])
def test_only_the_files_that_are_meant_are_sent(get: Get, name: str) -> None:
    """The list of files is closed."""
    assert get(f"/static/{name}").status == HTTPStatus.NOT_FOUND
