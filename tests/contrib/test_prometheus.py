"""`rota.prometheus`: what a worker measures of itself."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from rota import ConfigError, Retry, Rota, Snooze
from rota.events import JobSettled, LeasesLost, SessionLost, SessionRescued
from rota.model.job import JobId, Rescue, SessionId
from rota.prometheus import exposition, instrument
from rota.service.endpoint import answer
from rota.worker.health import Health, Phase
from tests.contrib import traced
from tests.fixtures.workers import drained, until, working
from tests.worker.chores import adopt


class Figures:
    """The metrics in a registry of a test's own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

    def __call__(self, name: str, **labels: str) -> float | None:
        """The value of a sample."""
        return self.registry.get_sample_value(name, labels)

    def labels(self, name: str) -> set[str]:
        """All values of all labels of a metric."""
        return {
            value
            for family in self.registry.collect()
            for sample in family.samples
            if sample.name.startswith(name)
            for key, value in sample.labels.items()
            if key != "le"
        }


@pytest.fixture
def figures() -> Figures:
    """A registry of this test's own."""
    return Figures()


@pytest.fixture
def app(tmp_path: Path, figures: Figures) -> Iterator[Rota]:
    """An app that is instrumented; nothing here differs between the stores."""
    with Rota(f"sqlite:///{tmp_path}/rota.db") as app:
        instrument(app, registry=figures.registry)
        yield app


def test_runs(app: Rota, figures: Figures) -> None:
    """Waiting and running are measured, and ends are counted by outcome."""

    @app.task(name="send", queue="mail", max_attempts=2, retry=lambda *_: 0.0)
    async def send(order: int) -> Any:
        if order == 1:
            return Retry("once more")
        return Snooze(3600) if order == 2 else None

    send.enqueue_many((n,) for n in range(5))
    with app.events.collect(JobSettled) as seen, working(app):
        until(lambda: len(seen) == 6, "the runs")
    of = {"queue": "mail", "task": "send"}
    assert figures("rota_job_wait_seconds_count", **of) == 5
    assert figures("rota_job_run_seconds_count", **of) == 6
    assert figures("rota_jobs_settled_total", outcome="complete", **of) == 3
    assert figures("rota_jobs_settled_total", outcome="retry", **of) == 1
    assert figures("rota_jobs_settled_total", outcome="discard", **of) == 1
    assert figures("rota_jobs_settled_total", outcome="snooze", **of) == 1
    assert figures("rota_claimed_jobs_sum") == 6
    assert (figures("rota_claim_seconds_count") or 0) >= 2
    assert (figures("rota_settle_seconds_count") or 0) >= 1


def test_places(app: Rota, figures: Figures) -> None:
    """What runs just then, out of how much; nothing once the worker has stopped."""
    import threading

    go_on = threading.Event()

    @app.task(name="wait")
    def wait() -> None:
        go_on.wait(20)

    wait.enqueue()
    with working(app, concurrency=7):
        until(lambda: figures("rota_worker_busy") == 1, "the run")
        assert figures("rota_worker_slots") == 7
        go_on.set()
        until(lambda: figures("rota_worker_busy") == 0, "its end")
    assert figures("rota_worker_slots") == 0


def test_labels_are_bounded(app: Rota, figures: Figures) -> None:
    """Tasks that are not the app's, and queues that nobody has named, are `other`."""

    @app.task(name="send", queue="mail")
    async def send(order: int) -> None: ...

    app.queue("declared", timeout=60)
    for queue in ("mail", "declared", "named", *(f"tenant-{n}" for n in range(20))):
        send.using(queue=queue).enqueue(1)
    with Rota(app.url) as elsewhere:
        for number in range(20):
            elsewhere.task(name=f"strange-{number}", queue="mail")(print).enqueue()
    wanted = ("mail", "declared", "named", "tenant-*")
    with app.events.collect(JobSettled) as seen, working(app, queues=wanted):
        until(lambda: len(seen) >= 43, "the ends")
    assert figures.labels("rota_job") == {
        "mail", "declared", "named", "other", "send", "complete", "release",
    }  # fmt: skip
    assert figures("rota_jobs_settled_total", queue="other", task="send", outcome="complete") == 20
    strange = figures("rota_jobs_settled_total", queue="mail", task="other", outcome="release")
    assert strange is not None
    assert strange >= 20


def test_jobs_of_child_processes(app: Rota, figures: Figures) -> None:
    """They are measured in the worker."""
    task = adopt(app, traced.trace_of_child)
    task.enqueue()
    drained(app, processes=1)
    of = {"queue": "default", "task": task.name}
    assert figures("rota_job_run_seconds_count", **of) == 1
    assert (figures("rota_job_run_seconds_sum", **of) or 0) > 0


def test_takeovers(app: Rota, figures: Figures) -> None:
    """Jobs that were taken from here, and those that were taken back from others."""
    app.events.emit(LeasesLost((JobId(1), JobId(2))))
    app.events.emit(
        SessionRescued(Rescue(SessionId(3), "host:1", (JobId(4), JobId(5)), (JobId(6),)))
    )
    assert figures("rota_leases_lost_total") == 2
    assert figures("rota_jobs_rescued_total") == 3


def test_a_lost_session_has_no_jobs(app: Rota, figures: Figures) -> None:
    """Its jobs end here without a word, and are not counted as busy for ever."""
    import threading

    go_on = threading.Event()

    @app.task(name="wait")
    def wait() -> None:
        go_on.wait(20)

    wait.enqueue()
    with working(app):
        until(lambda: figures("rota_worker_busy") == 1, "the run")
        app.events.emit(SessionLost(SessionId(1)))
        assert figures("rota_worker_busy") == 0
        go_on.set()


def test_several_apps(app: Rota, figures: Figures) -> None:
    """They may share a registry, and an app is measured once."""
    with Rota(app.url) as other:
        instrument(other, registry=figures.registry)
    with pytest.raises(ConfigError, match="already"):
        instrument(app, registry=figures.registry)


def test_the_page(tmp_path: Path) -> None:
    """It is in the format of Prometheus, and the health endpoint of a worker has it."""
    with Rota(f"sqlite:///{tmp_path}/rota.db") as app:
        instrument(app)
        head, _, body = answer(
            b"GET /metrics HTTP/1.1\r\n\r\n", Health(Phase.RUNNING), exposition
        ).partition(b"\r\n\r\n")
    assert b"200 OK" in head
    assert b"Content-Type: text/plain; version=" in head
    names = {family.name for family in text_string_to_metric_families(body.decode())}
    assert {"rota_worker_busy", "rota_jobs_settled", "rota_job_run_seconds"} <= names


def test_no_page_where_nobody_measures() -> None:
    """The health endpoint has none then, and its other pages go on."""
    health = Health(Phase.RUNNING, SessionId(7))
    assert b"404" in answer(b"GET /metrics HTTP/1.1\r\n\r\n", health)
    assert b"405" in answer(b"POST /metrics HTTP/1.1\r\n\r\n", health, exposition)
    assert b"200 OK" in answer(b"GET /ready HTTP/1.1\r\n\r\n", health, exposition)


def test_processes_that_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the client's variable set, the page has what all of them counted, not this process alone."""
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    assert REGISTRY.get_sample_value("process_start_time_seconds") is not None
    assert b"process_start_time_seconds" not in exposition()[0]
