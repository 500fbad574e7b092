"""Rota in Litestar."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from litestar import Litestar, get
from litestar.testing import TestClient

from rota import ConfigError, Rota
from rota.contrib.litestar import RotaPlugin
from tests.cli.calling import environment
from tests.contrib.serving import uvicorn
from tests.fixtures.workers import LONG

SERVICE = """
from litestar import Litestar
from rota import Rota
from rota.contrib.litestar import RotaPlugin

rota = Rota({url!r})

@rota.task(name="add", store_result=True)
def add(one: int, other: int) -> int:
    return one + other

app = Litestar([], plugins=[RotaPlugin(rota)])
"""


@pytest.fixture
def app(store: object, store_url: str) -> Iterator[Rota]:
    """An app on a database that is up to date."""
    del store
    with Rota(store_url) as app:
        yield app


def test_it_checks_the_database(postgres_url: str, tmp_path: Path) -> None:
    """A server whose database is not migrated does not come up, and says what to do."""
    (tmp_path / "app.py").write_text(SERVICE.format(url=postgres_url))
    with uvicorn("app:app", tmp_path) as server:
        server.wait_for("run `rota migrate --url ")
        assert server.ended() != 0


def test_a_worker_beside(app: Rota) -> None:
    """A job that a request enqueues runs in the same process, on the same event loop."""
    loops: list[object] = []

    @app.task(name="add", store_result=True)
    async def add(one: int, other: int) -> int:
        loops.append(asyncio.get_running_loop())
        return one + other

    @get("/")
    async def calculate() -> int:
        loops.append(asyncio.get_running_loop())
        job = await add.aenqueue(1, 2)
        return await job.aresult(LONG)

    web = Litestar([calculate], plugins=[RotaPlugin(app, worker=True)])
    with TestClient(web) as client:
        assert client.get("/").json() == 3
    assert loops[0] is loops[1]


def test_wrong_arguments(app: Rota) -> None:
    """What the plugin takes is said where it is made."""
    with pytest.raises(ConfigError, match=r"True, False or a rota.WorkerConfig"):
        RotaPlugin(app, worker=4)  # type: ignore[arg-type]


def test_the_command(app: Rota, tmp_path: Path) -> None:
    """`litestar rota worker` runs the jobs of the plugin's app, without a word about where it is."""
    add = app.task(name="add", store_result=True)(lambda one, other: one + other)
    job = add.enqueue(1, 2)
    (tmp_path / "app.py").write_text(SERVICE.format(url=app.url))
    command = [sys.executable, "-m", "litestar", "rota", "worker", "--drain"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(None), capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert job.result(0) == 3
