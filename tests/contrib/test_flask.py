"""Rota in Flask."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from flask import Flask, current_app, g
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import Connection, Engine, text

from rota import ConfigError, Rota, State, WorkerConfig
from rota.contrib.flask import RotaFlask
from rota.errors import LifespanFailed, StoreError
from rota.testing import Kit
from rota.worker import Worker
from tests.cli.calling import answer, environment


@pytest.fixture
def rota(store: object, store_url: str) -> Iterator[Rota]:
    """An app on a database that is up to date."""
    del store
    with Rota(store_url) as rota:
        yield rota


def drain(rota: Rota) -> None:
    """Run the jobs there are."""
    Worker(rota, WorkerConfig(drain=True)).run()


def test_handlers_have_a_context(rota: Rota) -> None:
    """Each run has its own application context, in a thread and on the loop, which ends with it."""
    app = Flask("shop")
    RotaFlask(rota, app)
    ended: list[BaseException | None] = []
    app.teardown_appcontext(ended.append)

    def look() -> list[str]:
        fresh = not hasattr(g, "used")
        g.used = True
        return [current_app.name, str(fresh)]

    @rota.task(name="in_thread", store_result=True)
    def in_thread() -> list[str]:
        return look()

    @rota.task(name="on_loop", store_result=True)
    async def on_loop() -> list[str]:
        return look()

    jobs = [task.enqueue() for task in (in_thread, on_loop) for _ in range(2)]
    drain(rota)
    assert [job.result(0) for job in jobs] == [["shop", "True"]] * 4
    assert ended == [None] * 4


def test_a_failure_reaches_the_teardown(rota: Rota) -> None:
    """As in a request, so that a session is rolled back."""
    app = Flask("shop")
    RotaFlask(rota, app)
    ended: list[BaseException | None] = []
    app.teardown_appcontext(ended.append)

    @rota.task(name="fail", max_attempts=1)
    def fail() -> None:
        raise ZeroDivisionError

    job = fail.enqueue()
    drain(rota)
    assert job.status is State.DISCARDED
    assert [type(error) for error in ended] == [ZeroDivisionError]


def test_an_application_made_later(rota: Rota, store_url: str) -> None:
    """The application of the newest `init_app` counts, and its config says where the jobs are."""
    elsewhere = Rota("sqlite:///not-this-one.db")
    joined = RotaFlask(elsewhere)
    for name in ("first", "second"):
        app = Flask(name)
        app.config["ROTA_DATABASE_URL"] = store_url
        joined.init_app(app)
        assert app.extensions["rota"] is elsewhere

    @elsewhere.task(name="name", store_result=True)
    def name_of_app() -> str:
        return current_app.name

    job = name_of_app.enqueue()
    drain(elsewhere)
    assert rota.job(job.id).status is State.COMPLETED
    assert job.result(0) == "second"
    elsewhere.close()


def test_without_an_application(rota: Rota) -> None:
    """A worker in whose process no application was made says how to start it."""
    RotaFlask(rota)

    @rota.task(name="work", max_attempts=1)
    def work() -> None: ...

    job = work.enqueue()
    with pytest.raises(LifespanFailed, match="flask rota worker"):
        drain(rota)
    assert job.status is State.AVAILABLE


def test_the_application_first() -> None:
    """Extensions of Flask's take the application first; this one says what it takes."""
    with pytest.raises(
        ConfigError, match=r"takes the rota\.Rota first, not a Flask.*RotaFlask\(rota, app\)"
    ):
        RotaFlask(Flask("shop"))  # type: ignore[arg-type]


@pytest.fixture
def shop(rota: Rota, store_url: str) -> Iterator[tuple[Flask, SQLAlchemy]]:
    """An application with Flask-SQLAlchemy and a table."""
    app = Flask("shop")
    app.config["SQLALCHEMY_DATABASE_URI"] = store_url.replace("postgresql:", "postgresql+psycopg:")
    db = SQLAlchemy(app)
    RotaFlask(rota, app)
    with app.app_context():
        db.session.execute(text("CREATE TABLE orders (id integer)"))
        db.session.commit()
    yield app, db
    with app.app_context():
        db.engine.dispose()


def test_the_requests_session(rota: Rota, shop: tuple[Flask, SQLAlchemy]) -> None:
    """`conn=db.session` makes the job a part of the request's transaction."""
    app, db = shop

    @rota.task(name="pack", store_result=True)
    def pack(order: int) -> int:
        found = db.session.execute(
            text("SELECT count(*) FROM orders WHERE id = :id"), {"id": order}
        )
        return int(found.scalar_one())

    @app.post("/orders/<int:order>/<end>")
    def take(order: int, end: str) -> str:
        db.session.execute(text("INSERT INTO orders VALUES (:id)"), {"id": order})
        job = pack.using(conn=db.session).enqueue(order)
        (db.session.commit if end == "commit" else db.session.rollback)()
        return str(job.id)

    client = app.test_client()
    client.post("/orders/1/rollback")
    kept = rota.job(int(client.post("/orders/2/commit").text))
    assert len(answer("jobs", "list", url=rota.url)["jobs"]) == 1
    drain(rota)
    assert kept.result(0) == 1


def test_outside_of_a_request(rota: Rota, shop: tuple[Flask, SQLAlchemy]) -> None:
    """A session of Flask-SQLAlchemy without an application context is no session, and that is said."""
    task = rota.task(name="pack")(print)
    with pytest.raises(StoreError, match="application context"):
        task.using(conn=shop[1].session).enqueue()


SHOP = """
from flask import Flask, current_app
from rota import Rota
from rota.contrib.flask import RotaFlask

rota = Rota()
rota_flask = RotaFlask(rota)


@rota.task(name="{module}.name", store_result=True, executor="thread")
def name() -> str:
    return current_app.name


def create_app() -> Flask:
    app = Flask("shop")
    app.config["ROTA_DATABASE_URL"] = {url!r}
    rota_flask.init_app(app)
    return app
"""


def test_the_command(rota: Rota, tmp_path: Path) -> None:
    """`flask rota …` works on the application's database, and its worker runs the application's jobs."""
    job = rota.task(name="shop.name", store_result=True)(lambda: None).enqueue()
    project = tmp_path / "project"
    project.mkdir()
    (project / "shop.py").write_text(SHOP.format(url=rota.url, module="shop"))

    def flask(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "flask", "--app", "shop:create_app", "rota", *words],
            cwd=project, env=environment(None), capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip

    assert "available" in flask("jobs", "list").stdout
    worked = flask("worker", "--drain", "--concurrency", "2")
    assert worked.returncode == 0, worked.stderr
    assert job.result(0) == "shop"
    assert "Usage: flask rota jobs list" in flask("jobs", "list", "--help").stdout
    assert "doctor" in flask().stdout
    # Commands that need an app have it.
    added = flask("cron", "add", "nightly", "@daily", "--task", "shop.name")
    assert added.returncode == 0, added.stderr
    assert "code says otherwise" not in flask("queues", "show", "default").stdout
    wrong = flask("jobs", "show", "4711")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "4711" in wrong.stderr


def test_the_kit(rota: Rota, shop: tuple[Flask, SQLAlchemy]) -> None:
    """With the test's connection as its engine, requests and handlers are in the test's transaction."""
    app, db = shop

    @rota.task(name="pack", store_result=True)
    def pack(order: int) -> int:
        db.session.execute(text("UPDATE orders SET id = -id WHERE id = :id"), {"id": order})
        db.session.commit()
        return order

    @app.post("/orders/<int:order>")
    def take(order: int) -> str:
        db.session.execute(text("INSERT INTO orders VALUES (:id)"), {"id": order})
        pack.using(conn=db.session).enqueue(order)
        db.session.commit()
        return "taken"

    orders = text("SELECT id FROM orders")
    with app.app_context():
        # Its type says that it is only read.
        engines, engine = cast("dict[str | None, Engine | Connection]", db.engines), db.engine
        with engine.connect() as connection, connection.begin() as transaction:
            engines[None] = connection
            db.session.configure(join_transaction_mode="create_savepoint")
            with Kit(connection, app=rota) as kit:
                assert app.test_client().post("/orders/7").text == "taken"
                kit.assert_enqueued(pack, order=7)
                assert kit.drain()[0].result == 7
                assert connection.execute(orders).scalars().all() == [-7]
            transaction.rollback()
        engines[None] = engine
        assert db.session.execute(orders).all() == []
    assert rota.jobs.count() == 0
