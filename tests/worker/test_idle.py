"""An idle worker costs little: it leaves signs of life out, and asks for less."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from typing import Any

import pytest

from rota import Rota
from rota.app.bulk_job import NAME as BULK
from rota.model.job import SessionInfo
from rota.store.migrate import migrate
from rota.worker import upkeep
from tests.fixtures.workers import LONG, until, working

HEARTBEAT = 0.6

TIMEOUT = 5 * HEARTBEAT


@pytest.fixture
def app(postgres_url: str) -> Iterator[Rota]:
    """An app on PostgreSQL."""
    with Rota(postgres_url) as app, closing(app.database.store.connect()) as connection:
        migrate(app.database.store, connection)
        yield app


@pytest.fixture
def renewed(app: Rota, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When each sign of life was sent."""
    times: list[float] = []
    renew = app.database.store.renew

    def renewing(session: Any) -> Any:
        times.append(time.monotonic())
        return renew(session)

    monkeypatch.setattr(app.database.store, "renew", renewing)
    return times


@contextmanager
def one_of(app: Rota, count: int) -> Iterator[None]:
    """A worker that is one of so many."""
    info = SessionInfo("elsewhere", 1, ("default",), 1000.0, tuple(sorted({*app.tasks, BULK})))
    for _ in range(count - 1):
        app.database.run(app.database.store.open_session(info))
    with working(app, session_timeout=TIMEOUT):
        yield


def pauses(times: list[float], count: int) -> list[float]:
    """The next pauses between signs of life."""
    first = len(times)
    until(lambda: len(times) > first + count, "signs of life", seconds=LONG + 3 * count * HEARTBEAT)
    begun = times[first : first + count + 1]
    return [after - before for before, after in pairwise(begun)]


@pytest.fixture
def patient(app: Rota) -> Iterator[tuple[Callable[[], Any], threading.Event]]:
    """A task that waits until it is let go."""
    go, began = threading.Event(), threading.Event()

    @app.task(name="patient")
    def patient() -> None:
        began.set()
        go.wait(LONG)

    def enqueue() -> None:
        began.clear()
        patient.enqueue()
        assert began.wait(LONG)

    yield enqueue, go
    go.set()


def test_one_of_many_leaves_signs_of_life_out(
    app: Rota, renewed: list[float], patient: Any
) -> None:
    """Every second one, while it has no jobs."""
    enqueue, go = patient
    with one_of(app, 3):
        assert min(pauses(renewed, 3)) >= 1.9 * HEARTBEAT
        enqueue()
        assert min(pauses(renewed, 4)) < 1.9 * HEARTBEAT
        go.set()


def test_one_of_few_leaves_none_out(app: Rota, renewed: list[float], patient: Any) -> None:
    """There is little to save."""
    del patient
    with one_of(app, 2):
        assert min(pauses(renewed, 4)) < 1.9 * HEARTBEAT


def test_the_first_job_asks_for_a_sign_of_life(
    app: Rota, renewed: list[float], patient: Any
) -> None:
    """A worker that has left one out gives it at once when it has jobs, however short they are."""
    enqueue, go = patient
    go.set()
    with one_of(app, 3):
        shortest = LONG
        for _ in range(8):
            first = len(renewed)
            until(lambda first=first: len(renewed) > first)  # type: ignore[misc]
            last = renewed[-1]
            until(lambda last=last: time.monotonic() > last + 1.1 * HEARTBEAT)  # type: ignore[misc]
            enqueue()
            until(lambda last=last: renewed[-1] > last)  # type: ignore[misc]
            shortest = min(shortest, renewed[-1] - last)
            if shortest < 1.9 * HEARTBEAT:
                break
        assert shortest < 1.9 * HEARTBEAT


def test_it_asks_rarely_for_what_is_untidy(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that has claimed nothing has made nothing untidy."""
    asked: list[bool] = []
    look = app.database.store.look

    def looking(*args: Any, untidy: bool, **options: Any) -> Any:
        asked.append(untidy)
        return look(*args, untidy=untidy, **options)

    monkeypatch.setattr(app.database.store, "look", looking)
    monkeypatch.setattr(upkeep, "TIDY", 10 * LONG)
    app.task(name="nothing")(lambda: None)
    with working(app, poll=0.05):
        until(lambda: len(asked) > 10, "looks")
        assert not any(asked)
        # In due time the next look asks.
        monkeypatch.setattr(upkeep, "TIDY", 0.0)
        until(lambda: any(asked))
