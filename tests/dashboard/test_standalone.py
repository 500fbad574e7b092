"""`rota dashboard`: which hosts and passwords its own server asks for, and what it allows then."""

import base64
import json
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

import pytest
from werkzeug.test import Client

from rota import Rota
from rota.dashboard.access import Access, Right
from rota.dashboard.standalone import guarded
from rota.dashboard.wsgi import Wsgi
from rota.service.web import Server, loopback
from tests.cli.calling import ROTA, environment, rota


def rights(app: Rota, host: str, password: str | None) -> frozenset[Right]:
    """What a request may do there."""
    inner = guarded(app, host, password).inner
    assert isinstance(inner, Wsgi)
    access = inner._access
    assert isinstance(access, Access)
    return access.rights


def test_what_is_allowed(app: Rota) -> None:
    """On loopback, or with a password, everything; else only reading."""
    assert rights(app, "127.0.0.1", None) == set(Right)
    assert rights(app, "0.0.0.0", None) == {Right.READ, Right.ARGS}  # noqa: S104
    assert rights(app, "0.0.0.0", "secret") == set(Right)  # noqa: S104


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True),
        ("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("example.org", False),  # noqa: S104
        ("localhost.example.org", False),
    ],
)  # fmt: skip
def test_loopback(host: str, found: bool) -> None:  # noqa: FBT001
    """What only this machine reaches."""
    assert loopback(host) is found


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8200", 200), ("127.0.0.1:8200", 200), ("[::1]:8200", 200), ("127.0.0.1", 200),
        ("evil.example:8200", 421), ("evil.example", 421), ("", 421),
    ],
)  # fmt: skip
def test_names_of_other_hosts(app: Rota, host: str, status: int) -> None:
    """A page of another site cannot reach it under a name of its own."""
    client = Client(guarded(app, "127.0.0.1", None))
    assert client.get("/", headers={"host": host}).status_code == status


def test_the_password(app: Rota) -> None:
    """It is asked for before anything is shown; a wrong one is refused."""
    client = Client(guarded(app, "0.0.0.0", "sécret"))  # noqa: S104

    def status(given: str | None) -> int:
        if given is None:
            return client.get("/").status_code
        text = base64.b64encode(given.encode()).decode()
        return client.get("/", headers={"authorization": f"Basic {text}"}).status_code

    assert status(None) == HTTPStatus.UNAUTHORIZED
    assert status("rota:secret") == HTTPStatus.UNAUTHORIZED
    assert status("root:sécret") == HTTPStatus.UNAUTHORIZED
    assert status("rota:sécret") == HTTPStatus.OK
    for strange in ("Basic x", "Bearer cm90YQ==", "Basic", "Basic \x00"):
        answer = client.get("/", headers={"authorization": strange})
        assert answer.status_code == HTTPStatus.UNAUTHORIZED


def test_it_is_served(app: Rota) -> None:
    """By a server of its own, to several clients."""
    with _serving(app) as url:
        for _ in range(3):
            with urllib.request.urlopen(f"{url}/", timeout=10) as answer:  # noqa: S310
                assert b"<title>Overview" in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{url}/nowhere", timeout=10)  # noqa: S310


@contextmanager
def _serving(app: Rota) -> Iterator[str]:
    server = Server("127.0.0.1", 0, guarded(app, "127.0.0.1", None))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_command_needs_a_database() -> None:
    """A path that is mistyped makes no file, and opens no port."""
    result = rota("dashboard", "--listen", "0", url="sqlite:////nowhere/rota.db")
    assert result.exit_code != 0
    assert "there is no database file" in result.stderr


def test_the_command_serves(tmp_path: Path) -> None:
    """It says where, and ends in order with Ctrl+C."""
    url = f"sqlite:///{tmp_path}/rota.db"
    with Rota(url) as app:
        app.ready()
    words = [*ROTA, "dashboard", "--url", url, "--listen", "0", "--json"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, env=environment(None), text=True
    ) as process:
        assert process.stdout is not None
        said = "".join(iter(process.stdout.readline, "}\n")) + "}"
        with urllib.request.urlopen(json.loads(said)["url"], timeout=10) as answer:  # noqa: S310
            assert b"<title>Overview" in answer.read()
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
