"""The page that Prometheus reads: from the database, once a second, and behind which guard."""

import base64
import contextlib
import json
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from werkzeug.test import Client

from rota import Rota, State
from rota.errors import StoreUnavailable
from rota.metrics import seen
from rota.metrics.page import Metrics
from rota.service.web import Guard
from rota.store.protocol import Store
from rota.top import snapshot
from tests.cli.calling import ROTA, answer, environment, rota
from tests.fixtures.workers import drained


@pytest.fixture
def app(store: Store, store_url: str) -> Iterator[Rota]:
    """An app on an empty database that is up to date."""
    del store  # it made the tables
    with Rota(store_url) as app:
        yield app


@pytest.fixture
def page(app: Rota) -> Client:
    """Its metrics, looked at anew for each request."""
    return Client(Metrics(app.database, every=0.0))


def figures(text: str) -> dict[tuple[str, ...], float]:
    """The samples of a page, by name and labels."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_what_is_in_the_database(app: Rota, page: Client) -> None:
    """Only what was committed is there, whichever process has done it."""

    @app.task(name="send", queue="mail")
    async def send(order: int) -> None: ...

    @app.cron("@daily")
    @app.task(name="digest")
    async def digest() -> None: ...

    send.enqueue_many((n,) for n in range(3))
    with contextlib.suppress(ZeroDivisionError), app.transaction() as transaction:
        send.using(conn=transaction).enqueue(4)
        raise ZeroDivisionError
    before = figures(page.get("/metrics").text)
    assert before["rota_jobs", "mail", State.AVAILABLE] == 3
    assert before["rota_jobs_appended_total", "mail"] == 3
    assert before["rota_queue_oldest_available_seconds", "mail"] > 0
    assert before["rota_queue_workers", "mail"] == 0
    drained(app)
    after = figures(page.get("/metrics").text)
    assert after["rota_jobs", "mail", State.COMPLETED] == 3
    assert after["rota_jobs_claimed_total", "mail"] == 3
    assert after["rota_queue_oldest_available_seconds", "mail"] == 0
    assert after["rota_cron_lateness_seconds", "digest"] == 0
    assert after[("rota_tables_bytes",)] > 0


def test_one_look_a_second(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many ask, the database is looked at once until that is old."""
    looks = 0
    look = snapshot.look

    def counted(*given: Any, **named: Any) -> Any:
        nonlocal looks
        looks += 1
        return look(*given, **named)

    monkeypatch.setattr(seen, "look", counted)
    shared, anew = Metrics(app.database, every=3600.0), Metrics(app.database, every=0.0)
    for _ in range(3):
        shared.text()
    assert looks == 1
    for _ in range(3):
        anew.text()
    assert looks == 4


def test_both_formats(page: Client) -> None:
    """The text format, and OpenMetrics where it is asked for."""
    plain = page.get("/metrics")
    assert plain.content_type.startswith("text/plain; version=")
    asked = page.get("/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"})
    assert asked.content_type.startswith("application/openmetrics-text")
    families = openmetrics(asked.text)  # type: ignore[no-untyped-call]
    names = {family.name for family in families}
    assert {"rota_jobs", "rota_jobs_appended", "rota_look_seconds"} <= names


def test_other_requests(page: Client) -> None:
    """Nothing else is there, and nothing can be changed."""
    assert page.get("/").status_code == 404
    assert page.post("/metrics").status_code == 405
    found = page.head("/metrics")
    assert (found.status_code, found.data) == (200, b"")


def test_a_database_that_is_away(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever scrapes gets an error, so that `up` is 0, and is not told where the database is."""

    def away(_: object) -> None:
        message = "postgresql://secret@host is away"
        raise StoreUnavailable(message)

    monkeypatch.setattr(seen.Sight, "now", away)
    found = Client(Metrics(app.database)).get("/metrics")
    assert (found.status_code, found.text) == (503, "StoreUnavailable\n")


def test_the_guard(app: Rota) -> None:
    """On loopback only names of this machine; elsewhere the password, if there is one."""
    metrics = Metrics(app.database)
    local = Client(Guard(metrics, local=True, password=None))
    assert local.get("/metrics", headers={"host": "evil.example"}).status_code == 421
    assert local.get("/metrics", headers={"host": "localhost:9464"}).status_code == 200
    asked = Client(Guard(metrics, local=False, password="secret"))
    assert asked.get("/metrics").status_code == 401
    given = base64.b64encode(b"rota:secret").decode()
    assert asked.get("/metrics", headers={"authorization": f"Basic {given}"}).status_code == 200


def test_once(app: Rota) -> None:
    """The command prints the same text, or its samples as JSON."""
    shown = rota("metrics", "--once", url=app.url)
    assert shown.exit_code == 0
    assert figures(shown.stdout)[("rota_workers",)] == 0
    samples = answer("metrics", "--once", url=app.url)["samples"]
    assert {"name": "rota_workers", "labels": {}, "value": 0} in samples


def test_without_its_extra(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command says what to install."""
    for name in [name for name in sys.modules if name.startswith("rota.metrics")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.setitem(sys.modules, "prometheus_client.core", None)
    monkeypatch.setitem(sys.modules, "prometheus_client.exposition", None)
    result = rota("metrics", "--once", url=app.url)
    assert result.exit_code == 2
    assert "install rota[prometheus]" in result.stderr


def test_the_command_needs_a_database() -> None:
    """A path that is mistyped makes no file, and opens no port."""
    result = rota("metrics", url="sqlite:////nowhere/rota.db")
    assert result.exit_code != 0
    assert "there is no database file" in result.stderr


def test_the_command_serves(tmp_path: Path) -> None:
    """It says where, and ends in order with Ctrl+C."""
    url = f"sqlite:///{tmp_path}/rota.db"
    with Rota(url) as app:
        app.ready()
    words = [*ROTA, "metrics", "--url", url, "--listen", "0", "--json"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, env=environment(None), text=True
    ) as process:
        assert process.stdout is not None
        said = "".join(iter(process.stdout.readline, "}\n")) + "}"
        with urllib.request.urlopen(json.loads(said)["url"], timeout=20) as found:  # noqa: S310
            assert figures(found.read().decode())[("rota_workers",)] == 0
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


@pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool")
def test_promtool_likes_it(page: Client) -> None:
    """Its names and types are those that Prometheus wants."""
    check: Callable[..., Any] = subprocess.run
    text = page.get("/metrics").data
    found = check(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (0, b"", b"")
