"""`web_lifespan`: a web application that enqueues jobs, and may run them as well."""

import asyncio
import contextlib
import secrets
import signal
import socket
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from rota import Rota, State, WorkerConfig
from rota.contrib.starlette import web_lifespan, worker_beside
from rota.errors import ConfigError, SchemaMissing
from rota.events import WorkerStarted, WorkerStopped
from rota.testing import Kit
from tests.contrib.serving import address, uvicorn
from tests.fixtures.workers import LONG, until
from tests.store.postgres.database import Database


@pytest.fixture
def app(store: object, store_url: str) -> Iterator[Rota]:
    """An app on a database that is up to date."""
    del store
    with Rota(store_url) as app:
        yield app


def connections(app: Rota) -> int:
    """How many connections the app has and does not use."""
    store: Any = app.database.store
    return sum(len(idle) for idle in store._pool._idle)


def test_with_the_test_kit(tmp_path: Path) -> None:
    """The lifespan does not wait for the transaction of its test, and leaves it as it is."""
    file = tmp_path / "rota.db"
    with closing(sqlite3.connect(file)) as conn, Rota(f"sqlite:///{file}") as app:
        conn.execute("BEGIN IMMEDIATE")
        with Kit(conn, app=app), TestClient(Starlette(lifespan=web_lifespan(app))):
            pass
        assert conn.in_transaction
        conn.execute("CREATE TABLE note (text)")
        conn.rollback()


def test_a_database_without_tables(postgres_url: str, tmp_path: Path) -> None:
    """The server does not come up, and says what to do."""
    (tmp_path / "web.py").write_text(
        "from rota import Rota\n"
        "from starlette.applications import Starlette\n"
        "from rota.contrib.starlette import web_lifespan\n"
        f"app = Starlette(lifespan=web_lifespan(Rota({postgres_url!r})))\n"
    )
    with uvicorn("web:app", tmp_path) as server:
        assert server.ended() != 0
        assert "run `rota migrate --url " in "".join(server.said)
    with (
        Rota(postgres_url) as app,
        pytest.raises(SchemaMissing, match="rota migrate"),
        TestClient(Starlette(lifespan=web_lifespan(app))),
    ):
        pass


def test_around_the_applications_own(app: Rota) -> None:
    """The own lifespan gets the application and gives the state; the worker is inside of it."""
    told: list[object] = []
    app.task(name="work")(print)
    app.on(WorkerStarted)(lambda _: told.append("worker started"))
    app.on(WorkerStopped)(lambda _: told.append("worker stopped"))

    @contextlib.asynccontextmanager
    async def own(web: Starlette) -> AsyncIterator[dict[str, Any]]:
        told.append(web)
        yield {"greeting": "hello"}
        told.append("own ended")

    async def greet(request: Request) -> JSONResponse:
        return JSONResponse(request.state.greeting)

    lifespan = web_lifespan(app, worker=True, then=own)
    web = Starlette(lifespan=lifespan, routes=[Route("/", greet)])
    with TestClient(web) as client:
        assert client.get("/").json() == "hello"
        told.append("served")
    assert told == [web, "worker started", "served", "worker stopped", "own ended"]


def test_it_closes(app: Rota) -> None:
    """The connections are open while the application runs, and closed after it."""
    web = Starlette(lifespan=web_lifespan(app))
    with TestClient(web):
        assert connections(app) > 0
    assert connections(app) == 0


@pytest.mark.parametrize("worker", [False, True])
def test_it_closes_when_it_cannot_begin(app: Rota, *, worker: bool) -> None:
    """An error in the application's own lifespan leaves nothing open, and no worker behind."""
    app.task(name="work")(print)

    @contextlib.asynccontextmanager
    async def own(_: Starlette) -> AsyncIterator[None]:
        app.ready()
        raise ZeroDivisionError
        yield

    web = Starlette(lifespan=web_lifespan(app, worker=worker, then=own))
    with pytest.raises(ZeroDivisionError), TestClient(web):
        pass
    assert connections(app) == 0


def test_the_worker_runs_jobs(app: Rota) -> None:
    """A job that a request enqueues runs in the same process, on the server's event loop."""
    loops: list[object] = []

    @app.task(name="add", store_result=True)
    async def add(one: int, other: int) -> int:
        loops.append(asyncio.get_running_loop())
        return one + other

    async def enqueue(_: Request) -> JSONResponse:
        loops.append(asyncio.get_running_loop())
        job = await add.aenqueue(1, 2)
        return JSONResponse(await job.aresult(LONG))

    web = Starlette(lifespan=web_lifespan(app, worker=True), routes=[Route("/", enqueue)])
    with TestClient(web) as client:
        assert client.get("/").json() == 3
    assert loops[0] is loops[1]


def test_at_the_end_it_gives_its_jobs_back(app: Rota) -> None:
    """What runs longer than the worker's grace is another worker's."""
    begun = threading.Event()

    @app.task(name="endless")
    async def endless() -> None:
        begun.set()
        await asyncio.Event().wait()

    async def enqueue(_: Request) -> JSONResponse:
        job = await endless.aenqueue()
        assert await asyncio.to_thread(begun.wait, LONG)
        return JSONResponse(job.id)

    lifespan = web_lifespan(app, worker=WorkerConfig(grace=0.01))
    with TestClient(Starlette(lifespan=lifespan, routes=[Route("/", enqueue)])) as client:
        job = app.job(client.get("/").json())
        assert job.status is State.RUNNING
    assert (job.record().state, job.record().attempt) == (State.AVAILABLE, 0)


def test_a_worker_that_cannot_start(app: Rota) -> None:
    """The server does not come up without the worker it shall have."""
    web = Starlette(lifespan=web_lifespan(app, worker=True))
    with pytest.raises(ConfigError, match="has no tasks"), TestClient(web):
        pass


ENDED = "the worker in this web process has ended"


def test_a_worker_that_is_refused(postgres_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """A worker that ends while the server goes on says so at once, and the server's end fails."""
    role = f"app_{secrets.token_hex(4)}"
    with Database(postgres_url) as db:
        db.sql(f"CREATE ROLE {role}")
        db.sql(f"GRANT USAGE ON SCHEMA rota TO {role}")
        for kind in ("TABLES", "SEQUENCES"):
            db.sql(f"GRANT ALL ON ALL {kind} IN SCHEMA rota TO {role}")
        db.sql(f"REVOKE DELETE ON rota.lease FROM {role}")
        with Rota(f"{postgres_url}&options=-c%20role%3D{role}") as app:
            work = app.task(name="work")(print)
            web = Starlette(lifespan=web_lifespan(app, worker=True))
            refused = pytest.raises(ConfigError, match="permission denied for table lease")
            with refused, TestClient(web):
                work.enqueue()
                until(lambda: ENDED in caplog.text)
            assert ENDED in caplog.text
        db.sql(f"DROP OWNED BY {role}")
        db.sql(f"DROP ROLE {role}")


SERVED = """
import asyncio, sys
from rota import Context, Rota, WorkerConfig
from starlette.applications import Starlette
from starlette.routing import Route
from rota.contrib.starlette import web_lifespan

rota = Rota({url!r})

@rota.task(name="endless")
async def endless():
    print("it runs", file=sys.stderr, flush=True)
    await asyncio.Event().wait()

@rota.task(name="patient")
def patient(ctx: Context):
    print("it runs", file=sys.stderr, flush=True)
    while not ctx.wait_cancelled(60):
        pass
    print("it is told", file=sys.stderr, flush=True)

async def hang(request):
    print("it hangs", file=sys.stderr, flush=True)
    await asyncio.Event().wait()

lifespan = web_lifespan(rota, worker=WorkerConfig(grace={grace}))
app = Starlette(lifespan=lifespan, routes=[Route("/", hang)])
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_signals_are_the_servers(app: Rota, tmp_path: Path, number: int) -> None:
    """The server's own signal ends both, and the job is another worker's."""
    job = app.task(name="endless")(print).enqueue()
    (tmp_path / "web.py").write_text(SERVED.format(url=app.url, grace=0.1))
    with uvicorn("web:app", tmp_path) as server:
        server.wait_for("it runs")
        address(server)
        assert server.stop(number) in {0, -number}
    assert job.status is State.AVAILABLE


@pytest.mark.asyncio
async def test_an_end_by_an_error(app: Rota) -> None:
    """Where something else of the application has failed, the worker does not wait for its handlers."""
    begun = asyncio.Event()

    @app.task(name="endless")
    async def endless() -> None:
        begun.set()
        await asyncio.Event().wait()

    job = await endless.aenqueue()
    with pytest.raises(ZeroDivisionError):  # noqa: PT012 - it must be raised in the block
        async with asyncio.timeout(LONG), worker_beside(app, WorkerConfig(grace=2 * LONG)):
            await begun.wait()
            raise ZeroDivisionError
    assert await job.astatus() is State.AVAILABLE


@pytest.mark.parametrize("task", ["endless", "patient"])
def test_a_server_that_does_not_wait(app: Rota, tmp_path: Path, task: str) -> None:
    """At the second Ctrl-C uvicorn ends no lifespan and cancels every task: no wait for the grace.

    A handler on the loop is cancelled as well, one in a thread is told by its Context, and no
    attempt is spent.
    """
    job = app.task(name=task)(print).enqueue()
    (tmp_path / "web.py").write_text(SERVED.format(url=app.url, grace=2 * LONG))
    with uvicorn("web:app", tmp_path) as server:
        server.wait_for("it runs")
        url = urlsplit(address(server))
        with socket.create_connection((str(url.hostname), url.port or 80)) as asking:
            asking.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            server.wait_for("it hangs")
            server.process.send_signal(signal.SIGINT)
            server.wait_for("Waiting for connections to close")
            server.process.send_signal(signal.SIGINT)
        # From Python 3.12 on the loop's server waits for the connection's end, whatever uvicorn
        # does.
        server.ended()
    record = job.record()
    assert (record.state, record.attempt, record.errors) == (State.AVAILABLE, 0, ())
    assert ("it is told\n" in server.said) is (task == "patient")


async def _undecorated(_: Starlette) -> AsyncIterator[None]:
    yield


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param({"worker": 4}, "True, False or a rota.WorkerConfig", id="worker"),
        pytest.param({"then": "app"}, "then= takes a function", id="then"),
        pytest.param({"then": _undecorated}, "@contextlib.asynccontextmanager", id="undecorated"),
    ],
)
def test_wrong_arguments(app: Rota, arguments: dict[str, Any], words: str) -> None:
    """What the arguments may be is said when the application is made."""
    with pytest.raises(ConfigError, match=words):
        web_lifespan(app, **arguments)
    with pytest.raises(ConfigError, match=r"takes the rota.Rota first, not a Starlette"):
        web_lifespan(Starlette())  # type: ignore[call-overload]
