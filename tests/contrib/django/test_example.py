"""The example project: started, and driven as its users do."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from rota import Rota
from tests.contrib.django.test_suite import ROOT
from tests.fixtures.workers import LONG, until

PROJECT = ROOT / "examples" / "django_shop"


class Shop:
    """The project on a database, and its web server's address."""

    def __init__(self, url: str) -> None:
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            self.port = free.getsockname()[1]
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("ROTA_")}
        self._env = inherited | {"SHOP_DATABASE_URL": url, "PYTHONPATH": str(ROOT / "src")}

    def manage(self, *arguments: str) -> None:
        """Run one of the project's commands."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=PROJECT, env=self._env, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    @contextmanager
    def running(self, *arguments: str) -> Iterator[None]:
        """One of the project's commands, until the end of the block."""
        process = subprocess.Popen(
            [sys.executable, "manage.py", *arguments],
            cwd=PROJECT, env=self._env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield
        finally:
            process.terminate()
            process.wait(LONG)

    def ask(self, path: str, **sent: object) -> tuple[int, Any]:
        """The status and the JSON of a page."""
        data = urlencode(sent).encode() if sent else None
        try:
            with urlopen(f"http://127.0.0.1:{self.port}{path}", data, timeout=LONG) as answer:
                return answer.status, json.load(answer)
        except HTTPError as error:
            with error:
                text = error.read()
                return error.code, json.loads(text) if text.startswith(b"{") else None

    def awake(self) -> bool:
        """Whether the server answers."""
        try:
            self.ask("/receipts/1")
        except URLError:
            return False
        return True


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgres", marks=pytest.mark.large)])
def test_orders(database: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """An order has its receipt, once a worker runs; an order that is rolled back has none."""
    url = f"sqlite:///{tmp_path}/shop.db"
    if database == "postgres":
        url = request.getfixturevalue("postgres_url")
    shop = Shop(url)
    shop.manage("migrate")
    shop.manage("check", "--database", "default", "--fail-level", "WARNING")
    with shop.running("runserver", "--noreload", str(shop.port)):
        until(shop.awake, "the server")
        status, placed = shop.ask("/orders", email="ada@example.org", cents=1250)
        assert status == 201
        page = f"/receipts/{placed['receipt']}"
        assert shop.ask(page) == (200, {"status": "READY", "receipt": None, "attempts": 0})
        assert shop.ask("/orders", email="ada@example.org", cents=0)[0] == 400
        assert shop.ask(f"/receipts/{int(placed['receipt']) + 1}")[0] == 404
        with shop.running("rota", "worker"):
            until(lambda: shop.ask(page)[1]["status"] == "SUCCESSFUL", "the receipt")
        assert shop.ask(page)[1] == {
            "status": "SUCCESSFUL",
            "receipt": "receipt of 12.50 to ada@example.org",
            "attempts": 1,
        }


def test_up(tmp_path: Path) -> None:
    """`manage.py up` makes the tables, and runs the server and a worker beside it."""
    shop = Shop(f"sqlite:///{tmp_path}/shop.db")
    with shop.running("up", f"127.0.0.1:{shop.port}"):
        until(shop.awake, "the server")
        _, placed = shop.ask("/orders", email="ada@example.org", cents=1250)
        page = f"/receipts/{placed['receipt']}"
        until(lambda: shop.ask(page)[1]["status"] == "SUCCESSFUL", "the receipt")
    with Rota(f"sqlite:///{tmp_path}/shop.db") as rota:
        until(lambda: not rota.admin.workers(), "the end of the worker")
