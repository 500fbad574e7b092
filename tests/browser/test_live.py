"""Pages that are open: news come by themselves, and never under a reader's hands."""

import threading

import pytest

from rota import Context, Rota
from rota.dashboard import asgi
from tests.browser.chromium import Chromium
from tests.browser.conftest import Serve
from tests.browser.serving import under_asgi, under_wsgi
from tests.fixtures.workers import LONG, working

SELECT = "getSelection().selectAllChildren(document.querySelector('#live td'));"


def queued(app: Rota, *queues: str) -> None:
    """A job in each queue."""
    if "send" not in app.tasks:
        app.task(name="send")(lambda: None)
    for queue in queues:
        app.find_task("send").using(queue=queue).enqueue()


def test_a_job_until_its_end(browser: Chromium, app: Rota, serve_both: Serve) -> None:
    """Its progress, its lines and its end appear on its page while a worker runs it."""
    further = threading.Event()

    @app.task(name="report", store_result=True)
    def report(context: Context) -> str:
        context.progress(0.4, "page 4")
        context.log("reading")
        assert further.wait(LONG)
        further.clear()
        context.progress(0.9, "page 9")
        context.log("writing")
        assert further.wait(LONG)
        return "done on page 10"

    job = report.enqueue()
    with serve_both(app) as address:
        browser.open(f"{address}/jobs/{job.id}")
        assert "No worker is alive." in browser.text(".why")
        with working(app):
            browser.until_seen("40% · page 4")
            assert "reading" in browser.text("table.log")
            further.set()
            browser.until_seen("90% · page 9")
            assert "writing" in browser.text("table.log")
            further.set()
            browser.until_seen("done on page 10")
        assert browser.text(".lead .state") == "completed"
        assert browser.all(".why") == []


def test_a_flow_until_its_end(browser: Chromium, app: Rota, serve_both: Serve) -> None:
    """The graph and the table of a flow follow it while a worker runs its jobs."""
    further = threading.Event()

    @app.task(name="pack")
    def pack(number: int) -> None:
        assert number < 2 or further.wait(LONG)

    with app.flow("parcel") as flow:
        packed = flow.map(pack, range(3), name="pack")
        flow.add(pack, 0, name="send", after=[packed])
    with serve_both(app) as address:
        browser.open(f"{address}/flows/{flow.handle.id}")
        assert browser.text(".lead .state") == "running"
        assert "waiting" in browser.text("svg.flow")
        with working(app):
            browser.until_seen("running · 2 of 3", "svg.flow")
            further.set()
            browser.until_seen("completed · 3 of 3", "svg.flow")
            browser.until_seen("2 of 2 nodes have ended")
        assert browser.text(".lead .state") == "completed"
        assert "waiting" not in browser.text("#live")


def test_nothing_moves_while_text_is_selected(
    browser: Chromium, app: Rota, serve_both: Serve
) -> None:
    """The page says so, and shows what is new once nothing is selected."""
    queued(app, "one")
    with serve_both(app) as address:
        browser.open(f"{address}/queues")
        browser.run(SELECT)
        queued(app, "two")
        # News came and were kept, or were not asked for.
        browser.until(
            lambda: browser.run("return (window.lastNews ?? '').includes('two') || heldBack > 0"),
            "news that are held back",
        )
        assert "two" not in browser.text("#live")
        browser.until_seen("Updates wait", "footer")
        assert browser.run("return getSelection().toString()") != ""
        browser.run("getSelection().empty()")
        browser.until_seen("two", "#live")
        assert "Updates wait" not in browser.text("footer")


def test_nothing_moves_while_someone_types(browser: Chromium, app: Rota, serve: Serve) -> None:
    """A field in the part that changes keeps what was typed, and the focus."""
    queued(app, "one")
    with serve(app) as address:
        browser.open(f"{address}/queues")
        browser.run(
            "document.querySelector('#live').insertAdjacentHTML('afterbegin', '<input>');"
            "document.querySelector('#live input').focus();"
        )
        browser.press(*"half a wo")
        queued(app, "two")
        browser.until(lambda: browser.run("return (window.lastNews ?? '').includes('two')"), "news")
        assert browser.run("return document.activeElement.value") == "half a wo"
        assert "two" not in browser.text("#live")


def test_a_hidden_tab_is_left_alone(browser: Chromium, app: Rota, serve_both: Serve) -> None:
    """It has no stream and asks for nothing; what it missed is there when it is seen again."""
    queued(app, "one")
    with serve_both(app) as address:
        browser.open(f"{address}/queues")
        browser.until(lambda: browser.run("return document.readyState") == "complete", "the page")
        browser.hide(hidden=True)
        browser.run("window.lastNews = undefined; window.heldBack = 0;")
        queued(app, "two")
        # By then a stream would have told it, too.
        browser.until(lambda: browser.run("return heldBack > 0"), "a request that is held back")
        assert browser.run("return window.lastNews") is None
        assert (
            browser.run("return document.getElementById('live').textContent.includes('two')")
            is False
        )
        browser.hide(hidden=False)
        browser.until_seen("two", "#live")


def test_what_a_reader_has_done_stays(browser: Chromium, app: Rota, serve: Serve) -> None:
    """The focus, details that were closed, and how far something is scrolled, over all news."""
    further = threading.Event()

    @app.task(name="fails", max_attempts=2, retry=lambda *_: 0)
    def fails(context: Context, text: str) -> None:
        if context.attempt == 1:
            raise ValueError(text)
        context.progress(0.5, "so far")
        assert further.wait(LONG)

    job = fails.enqueue("many words " * 2_000)
    with serve(app) as address, working(app):
        browser.open(f"{address}/jobs/{job.id}")
        browser.until_seen("so far")
        browser.find("#attempt-1 summary").click()
        browser.run("document.querySelector('[aria-labelledby=args] pre').scrollTop = 40;")
        browser.run("document.querySelector('.lead a').focus({ preventScroll: true });")
        further.set()
        browser.until_seen("completed", ".lead")
        assert browser.run("return document.querySelector('#attempt-1').open") is False
        assert (
            browser.run("return document.querySelector('[aria-labelledby=args] pre').scrollTop")
            == 40
        )
        assert browser.run("return document.activeElement.textContent") == "default"


def test_the_focus_follows_its_row(browser: Chromium, app: Rota, serve: Serve) -> None:
    """A link that has the focus keeps it where its row moves, and never becomes another's."""
    queued(app, "b", "d")
    with serve(app) as address:
        browser.open(f"{address}/queues")
        browser.run("document.querySelectorAll('#live tbody th a')[1].focus();")
        queued(app, "a", "c")
        browser.until_seen("c", "#live tbody")
        assert [each.text for each in browser.all("#live tbody th a")] == ["a", "b", "c", "d"]
        assert browser.run("return document.activeElement.textContent") == "d"


def test_a_sentence_for_screen_readers(browser: Chromium, app: Rota, serve: Serve) -> None:
    """It is told when the counts have changed, and nothing is while they are the same."""
    queued(app, "one")
    with serve(app) as address:
        browser.open(f"{address}/")
        assert browser.run("return document.getElementById('voice').textContent") == ""
        queued(app, "one")
        told = "return document.querySelector('#voice[role=status]').textContent"
        browser.until(lambda: browser.run(told) == "2 available, 0 running, 0 discarded", told)


@pytest.mark.parametrize("kind", [under_asgi, pytest.param(under_wsgi, marks=pytest.mark.large)])
def test_a_server_that_is_gone(
    browser: Chromium, app: Rota, monkeypatch: pytest.MonkeyPatch, kind: Serve
) -> None:
    """The page says that what it shows may be old."""
    monkeypatch.setattr(asgi, "EVERY", 0.05)
    queued(app, "one")
    with kind(app) as address:
        browser.open(f"{address}/queues")
        browser.until(lambda: browser.run("return document.readyState") == "complete", "the page")
        assert "does not answer" not in browser.text("footer")
    browser.until_seen("The server does not answer", "footer")
    browser.leave()
    assert all("ERR_" in line or "htmx:" in line for line in browser.complaints())
