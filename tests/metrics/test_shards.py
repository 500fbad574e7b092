"""The metrics of several databases, and of a worker that serves them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from werkzeug.test import Client

from rota import Rota, State
from rota.app.shards import Shards
from rota.metrics.page import Metrics
from rota.prometheus import instrument
from tests.metrics.test_page import figures
from tests.worker.test_shards import drained

NAMES = ("eu", "us")
AWAY = "postgresql://nobody@127.0.0.1:1/nothing"


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Shards]:
    """Two files: `eu` has one job, `us` two."""
    with Rota.shards({name: f"sqlite:///{tmp_path}/{name}.db" for name in NAMES}) as app:

        @app.task(name="send", queue="mail")
        async def send() -> None: ...

        for name in ("eu", "us", "us"):
            with app.on(name):
                send.enqueue()
        yield app


def of(app: Shards) -> dict[tuple[str, ...], float]:
    """What Prometheus is told of the shards."""
    databases = {name: shard.database for name, shard in app.items()}
    page = Client(Metrics(databases, every=0.0)).get("/metrics")
    assert page.status_code == 200
    assert page.text.count("# TYPE rota_jobs gauge") == 1
    return figures(page.text)


def test_each_shard(app: Shards) -> None:
    """Every figure has the shard's name as a label, so that Prometheus adds them up."""
    found = of(app)
    assert [found["rota_jobs", "mail", name, State.AVAILABLE] for name in NAMES] == [1, 2]
    assert found["rota_jobs_appended_total", "mail", "us"] == 2
    assert [found["rota_shard_up", name] for name in NAMES] == [1, 1]


def test_a_shard_that_is_away(app: Shards) -> None:
    """It is said to be away, and the others are told of."""
    with Rota.shards({"away": AWAY, "us": app["us"].url}) as partly:
        found = of(partly)
    assert (found["rota_shard_up", "away"], found["rota_shard_up", "us"]) == (0, 1)
    assert found["rota_jobs", "mail", "us", State.AVAILABLE] == 2
    assert not [key for key in found if key[0] != "rota_shard_up" and "away" in key]


def test_a_worker_of_all(app: Shards) -> None:
    """What a worker measures is added up; jobs of one id on two shards are two."""
    registry = CollectorRegistry()
    instrument(app, registry=registry)
    drained(app, concurrency=7)

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, labels)

    labels = {"queue": "mail", "task": "send"}
    assert value("rota_jobs_settled_total", outcome="complete", **labels) == 3
    assert value("rota_job_run_seconds_count", **labels) == 3
    assert (value("rota_worker_busy"), value("rota_worker_slots")) == (0, 0)
