"""The charts: the numbers behind them, and when they are asked for."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from rota import HistoryPoint, Rota
from rota.app.admin import Admin
from rota.dashboard.charts import path
from rota.dashboard.files import KINDS
from rota.dashboard.pages.history import SPANS
from tests.dashboard.conftest import Get, drain
from tests.store.factories import minutes_pass

Show = Callable[..., str]
Data = Callable[..., Any]


@pytest.fixture
def shop(app: Rota) -> Rota:
    """An app in whose second minute three jobs came and two ended; then none looked for five minutes."""

    @app.task(name="mail.send", queue="mail")
    def send(number: int) -> None:
        del number

    look(app)
    send.enqueue_many([(1,), (2,)])
    drain(app)
    send.enqueue(3)
    look(app)
    look(app, minutes=5)
    look(app)
    return app


def look(app: Rota, *, minutes: int = 1) -> None:
    """So many minutes are over, and the last one is recorded."""
    store = app.database.store
    with store.lent() as connection:
        minutes_pass(store, connection, minutes)
        connection.run(store.history.record())


def test_the_numbers(shop: Rota, data: Data) -> None:
    """Those of the store, of a queue or of all together."""
    del shop
    found = data("/history", queue="mail")
    assert (found["queue"], found["step_seconds"]) == ("mail", 60)
    assert [
        (one["appended"], one["completed"], one["seconds"]) for one in found["points"][-3:]
    ] == [
        (3, 2, 60),
        (0, 0, 300),
        (0, 0, 60),
    ]
    assert [one["available"] for one in data("/history")["points"][-3:]] == [1, 1, 1]
    assert data("/history", queue="nobody knows")["points"][-1]["appended"] == 0


@pytest.mark.parametrize("path", ["/", "/queue", "/history"])
def test_the_table_behind_the_charts(shop: Rota, page: Show, path: str) -> None:
    """The newest row first; lines are drawn for those who have no JavaScript."""
    del shop
    text = page(path, name="mail", queue="mail" if path == "/history" else "")
    rows = re.findall(r"<tr data-at=.*?</tr>", text)
    told = [re.findall(r'data-is="([^"]*)"', row) for row in rows]
    assert [row[:4] for row in told[:3]] == [
        ["0.0", "0.0", "0.0", "1"],
        ["0.0", "0.0", "0.0", "1"],
        ["3.0", "2.0", "0.0", "1"],
    ]
    assert text.count('<path class="') == 5
    assert " style=" not in text
    assert "charts.js" in text
    assert "uplot.min.js" in text


def test_the_page_of_the_history(shop: Rota, page: Show) -> None:
    """It is among the names of the pages, asks for a queue, and other pages' charts lead to it."""
    del shop
    assert '<a href="./history" aria-current="page">History</a>' in page("/history")
    shown = page("/history", queue="mail", span="day")
    assert '<input name="queue" data-key="/" value="mail"' in shown
    assert '<input type="hidden" name="span" value="day">' in shown
    assert shown.count('id="history"') == 1
    assert 'href="./history?queue=mail&amp;span=hour">History</a></h2>' in page(
        "/queue", name="mail"
    )


def test_longer_spans(shop: Rota, page: Show, data: Data) -> None:
    """Up to 300 points each; the links keep the page."""
    del shop
    for name, span in SPANS.items():
        assert span.minutes // span.step <= 300
        assert sum(one["appended"] for one in data("/history", span=name)["points"]) == 3
        assert data("/history", span=name)["step_seconds"] == span.step * 60
    assert data("/history", span="nonsense")["step_seconds"] == 60
    assert 'href="./queue?name=mail&amp;span=week"' in page("/queue", name="mail", span="day")


def test_nothing_is_known(app: Rota, page: Show, data: Data) -> None:
    """A page without minutes says so."""
    del app
    assert "workers record each minute" in page("/")
    assert data("/history")["points"] == []


def test_what_changes_every_second_asks_for_no_history(
    shop: Rota, page: Show, data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the live part nor the JSON of the overview and of a queue."""
    asked = []
    real = type(shop.admin).history

    def history(admin: Admin, queue: str | None, **named: Any) -> list[HistoryPoint]:
        asked.append(queue)
        return real(admin, queue, **named)

    monkeypatch.setattr(Admin, "history", history)
    page("/", part="live")
    page("/queue", name="mail", part="live")
    data("/")
    data("/queue", name="mail")
    assert asked == []
    page("/")
    page("/queue", name="mail")
    assert asked == [None, "mail"]


def test_a_queue_with_a_hostile_name(app: Rota, page: Show, get: Get) -> None:
    """It is text, and nothing else."""
    name = '"><script>alert(1)</script>'

    @app.task(name="one", queue=name)
    def one() -> None: ...

    one.enqueue()
    look(app)
    assert "<script>alert" not in page("/history", queue=name)
    assert get("/history", queue="x" * 300).status == 400


def test_the_files_are_sent(get: Get) -> None:
    """As what they are."""
    for name in ("uplot.min.js", "uplot.min.css", "charts.js", "charts.css"):
        response = get(f"/static/{name}")
        assert response.status == 200
        assert response.headers["content-type"] == KINDS[name]


def test_lines_break_where_nothing_is_known() -> None:
    """A value between two gaps is a dot."""
    assert path([0.0, 10.0, None, 5.0, None], 10.0) == "M0.0,120.0h.1L150.0,0.0M450.0,60.0h.1"
    assert path([None], 0.0) == ""
    assert path([0.0], 0.0) == "M0.0,120.0h.1"
