"""`rota history`."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest

from rota import ConfigError, HistoryPoint, Rota
from tests.cli.calling import answer, make_tables, refused, rota
from tests.store.factories import minutes_pass


@pytest.fixture
def app(store_url: str) -> Iterator[Rota]:
    """An app whose history has two minutes: five jobs came, then none."""
    make_tables(store_url)
    with Rota(store_url) as app:
        look(app)

        @app.task(name="send", queue="mail")
        def send(number: int) -> None: ...

        send.enqueue_many([(number,) for number in range(5)])
        look(app)
        look(app)
        yield app


def look(app: Rota) -> None:
    """A minute is over."""
    store = app.database.store
    with store.lent() as connection:
        assert connection.run(store.history.record())
        minutes_pass(store, connection)


def test_json(app: Rota) -> None:
    """Minute by minute; the same that Python gets."""
    found = answer("history", "--queue", "mail", url=app.url)
    assert {key: found[key] for key in ("queue", "step_seconds")} == {
        "queue": "mail",
        "step_seconds": 60.0,
    }
    assert [point["appended"] for point in found["points"]] == [0, 5, 0]
    assert [point["seconds"] for point in found["points"]] == [0, 60, 60]
    points = app.admin.history("mail")
    assert [point.available for point in points] == [0, 5, 5]
    assert isinstance(points[0], HistoryPoint)
    assert [point["at"] for point in found["points"]] == [
        point.at.isoformat().replace("+00:00", "Z") for point in points
    ]
    assert set(found["points"][0]) == {
        "at", "seconds", "appended", "claimed", "completed", "discarded", "available", "oldest",
    }  # fmt: skip


def test_a_table(app: Rota) -> None:
    """Numbers are blank where they are not known, and rows that took longer say so."""
    lines = rota("history", "--since", "30m", "--every", "1m", url=app.url).stdout.splitlines()
    cells = [[cell.strip() for cell in line.split("\t")] for line in lines]
    assert cells[0][:6] == ["from", "appended", "claimed", "completed", "discarded", "available"]
    assert [row[1] for row in cells[1:]] == ["", "5", "0"]


def test_steps(app: Rota) -> None:
    """Longer ones add up; those that cannot be are refused."""
    assert (
        sum(point.appended for point in app.admin.history(since=timedelta(days=1), step=3600.0))
        == 5
    )
    refused(rota("history", "--every", "90s", url=app.url), 2, "must be whole minutes")
    with pytest.raises(ConfigError, match="queue"):
        app.admin.history("")


def test_async(app: Rota) -> None:
    """The same for async code."""
    found = asyncio.run(app.admin.ahistory("mail", since=600.0))
    assert found == app.admin.history("mail", since=600.0)


def test_nothing_is_known(store_url: str) -> None:
    """A database in which no worker has been has no history, and neither has one of another queue."""
    make_tables(store_url)
    assert answer("history", url=store_url)["points"] == []
