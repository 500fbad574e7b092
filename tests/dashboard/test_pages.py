"""What the pages show, on both databases."""

import html
from collections.abc import Callable
from typing import Any

import pytest

from rota import Context, Discard, Limit, Rota, State
from rota.dashboard.pages import ROUTES
from rota.model.job import SessionInfo
from tests.cli.calling import answer
from tests.dashboard.conftest import Get, drain
from tests.fixtures.workers import until, working

Show = Callable[..., str]
Data = Callable[..., Any]


@pytest.fixture
def shop(app: Rota) -> Rota:
    """An app with jobs in several states."""

    @app.task(name="mail.send", queue="mail")
    def send(number: int) -> None:
        del number

    @app.task(name="stock.refresh", queue="stock")
    def refresh(sku: str) -> None:
        raise Discard(sku)

    refresh.enqueue("A-1")
    drain(app)
    send.enqueue_many([(number,) for number in range(60)])
    send.using(delay=3600).enqueue(60)
    app.cron.add("nightly", "0 3 * * *", send, args=(1,))
    return app


def test_every_page(shop: Rota, get: Get) -> None:
    """Each route answers people and programs."""
    with shop.flow("restock") as flow:
        flow.add(shop.find_task("stock.refresh"), "B-1")
    for route in (route for route in ROUTES if route.method == "GET"):
        path = route.path.replace("{id}", "1").replace("{name}", "rota.css")
        for json in (False, True):
            response = get(path, json=json, name="mail")
            assert response.status == 200, (path, response.body)


def test_the_overview(shop: Rota, data: Data, page: Show) -> None:
    """Sums, queues, and what needs a person."""
    del shop
    found = data("/")
    assert found["jobs"]["available"] == 60
    assert found["jobs"]["scheduled"] == 1
    assert found["jobs"]["discarded"] == 1
    assert [queue["name"] for queue in found["queues"]] == ["mail", "stock"]
    assert found["notices"][0]["text"] == "No worker takes jobs from queue mail"
    assert '<a href="./queue?name=mail">No worker takes jobs from queue mail</a>' in page("/")


def test_many_queues_without_a_worker(app: Rota, data: Data) -> None:
    """Some are named, the others counted."""
    task = app.task(name="send")(lambda: None)
    for number in range(5):
        task.using(queue=f"q{number}").enqueue()
    told = [notice["text"] for notice in data("/")["notices"]]
    assert told[2:] == [
        "No worker takes jobs from queue q2",
        "No worker takes jobs from 2 other queues",
    ]


def test_the_live_part_alone(shop: Rota, page: Show) -> None:
    """What pages ask for anew is the part that changes, and nothing around it."""
    del shop
    part = page("/", part="live")
    assert "mail" in part
    assert "<html" not in part
    assert page("/limits", part="live") in page("/limits")


def test_pages_of_jobs(shop: Rota, data: Data, page: Show) -> None:
    """Jobs come the newest first, page by page, each once, with ids as texts."""
    del shop
    first = data("/jobs", state="available")
    second = data("/jobs", state="available", before=first["before"])
    ids = [job["id"] for job in first["jobs"] + second["jobs"]]
    assert len(ids) == 60
    assert all(isinstance(one, str) for one in ids)
    assert sorted(ids, key=int, reverse=True) == ids
    assert second["before"] is None
    assert f"before={first['before']}" in page("/jobs", state="available")


def test_a_page_that_looked_far_enough(
    shop: Rota, data: Data, page: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a filter leaves few jobs, a page says up to where it looked, and the next one goes on."""
    monkeypatch.setattr("rota.dashboard.listing.BOUND", 30)
    asked = {"task": "stock.refresh"}
    first = data("/jobs", **asked)
    assert first["jobs"] == []
    assert "Look further back" in page("/jobs", **asked)
    found, pages = [], 0
    while first["before"] is not None:
        first = data("/jobs", before=first["before"], **asked)
        found += first["jobs"]
        pages += 1
    assert [job["id"] for job in found] == [str(shop.jobs.list(task="stock.refresh")[0].id)]
    assert pages == 2


def test_available_behind_what_runs(app: Rota, data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of a quiet queue are shown at once, however many newer ones of a busy queue were claimed."""
    monkeypatch.setattr("rota.dashboard.listing.BOUND", 10)
    task = app.task(name="send")(lambda: None)
    task.using(queue="quiet").enqueue()
    for _ in range(60):
        task.enqueue()
    database = app.database
    session = database.run(database.store.open_session(SessionInfo("host", 1, ("default",), 60.0)))
    assert len(database.run(database.store.claim(session, ["default"], 60))) == 60
    assert [job["id"] for job in data("/jobs", state="available")["jobs"]] == ["1"]


@pytest.mark.parametrize(
    ("asked", "number"),
    [
        ({"queue": "stock"}, 1),
        ({"task": "stock.refresh"}, 1),
        ({"state": "discarded", "queue": "stock"}, 1),
        ({"state": "scheduled", "task": "mail.send"}, 1),
        ({"state": "discarded", "queue": "mail"}, 0),
        ({"arg": "number=7"}, 1),
        ({"arg": "number=7", "state": "available", "queue": "mail"}, 1),
        ({"arg": "sku=A-1", "state": "discarded"}, 1),
        ({"arg": "sku=A-1", "state": "available"}, 0),
        ({"arg": "nothing.there.0=A-1"}, 0),
        ({"state": "available", "task": "stock.refresh"}, 0),
    ],
)
def test_filters(shop: Rota, data: Data, asked: dict[str, str], number: int) -> None:
    """Each filter is a parameter of the link."""
    del shop
    assert len(data("/jobs", **asked)["jobs"]) == number


@pytest.mark.parametrize(
    "asked",
    [
        {"arg": "x"},
        {"arg": '"=1'},
        {"arg": ".=1"},
        {"state": "lost"},
        {"before": "x"},
        {"queue": "\0"},
        {"before": "0"},
    ],
)
def test_a_filter_that_cannot_be(shop: Rota, get: Get, asked: dict[str, str]) -> None:
    """It is said in a plain page what is wrong."""
    del shop
    response = get("/jobs", **asked)
    assert response.status == 400
    assert next(iter(asked)) in response.body.decode()


@pytest.mark.parametrize("job", ["4711", "0", "x", "1" * 50, "٣"])
def test_a_job_that_is_gone(shop: Rota, get: Get, job: str) -> None:
    """A plain page says so."""
    del shop
    response = get(f"/jobs/{job}")
    assert response.status == 404
    assert "There is no job" in response.body.decode()


def test_one_job(app: Rota, data: Data, page: Show) -> None:
    """Its args, its progress, its lines, and how its attempts failed."""

    @app.task(name="report", store_result=True, max_attempts=1)
    def report(context: Context, day: str) -> str:
        context.progress(0.4, "page 4")
        context.log(f"reading {day}")
        message = f"no {day}"
        raise LookupError(message)

    job = report.enqueue("monday")
    drain(app)
    found = data(f"/jobs/{job.id}")
    assert found["id"] == str(job.id)
    assert found["args"] == {"day": "monday"}
    assert found["state"] == "discarded"
    assert found["progress"]["fraction"] == 0.4
    assert [line["message"] for line in found["log"]] == ["reading monday"]
    assert found["errors"][0]["message"] == "no monday"
    assert found["timeline"][0]["what"] == "enqueued"
    shown = page(f"/jobs/{job.id}")
    assert "LookupError: no monday" in shown
    assert "reading monday" in shown


def test_markup_is_shown_and_not_obeyed(app: Rota, page: Show) -> None:
    """Names, args, messages and lines full of markup are texts on each page."""
    evil = "<script>alert('x')</script>"

    @app.task(name=evil, queue=evil, max_attempts=1)
    def task(context: Context, text: str) -> None:
        context.log(text)
        context.progress(0.5, text)
        raise ValueError(text)

    job = task.enqueue(evil)
    drain(app)
    task.enqueue(evil)
    for path, asked in (
        ("/", {}), ("/queues", {}), ("/queue", {"name": evil}), ("/jobs", {"task": evil, "queue": evil}),
        (f"/jobs/{job.id}", {}), ("/discarded", {"queue": evil}), ("/queues", {"name": evil}),
    ):  # fmt: skip
        shown = page(path, **asked)
        assert evil not in shown, path
        assert html.escape(evil)[:14] in shown, path


def test_a_long_text(app: Rota, page: Show, data: Data) -> None:
    """A page shows its beginning and its end; JSON has all of it."""

    @app.task(name="long", max_attempts=1)
    def long(text: str) -> None:
        raise ValueError(text)

    text = "a" + 900_000 * "x" + "z"
    job = long.enqueue(text)
    drain(app)
    shown = page(f"/jobs/{job.id}")
    assert len(shown) < 100_000
    assert "characters left out" in shown
    assert data(f"/jobs/{job.id}")["args"] == {"text": text}


def test_discarded_jobs_in_groups(app: Rota, data: Data) -> None:
    """Those together that failed in the same way at the same line."""

    @app.task(name="one", max_attempts=1)
    def one(number: int) -> None:
        raise KeyError(number)

    @app.task(name="two", max_attempts=1)
    def two() -> None:
        message = "two"
        raise ValueError(message)

    one.enqueue_many([(number,) for number in range(3)])
    two.enqueue()
    drain(app)
    found = data("/discarded")
    assert [(each["task"], each["exception"], each["jobs"]) for each in found["groups"]] == [
        ("one", "KeyError", 3),
        ("two", "ValueError", 1),
    ]
    assert found["groups"][0]["frame"].startswith("dashboard/test_pages.py:")


def test_limits(app: Rota, data: Data) -> None:
    """Each limit, and how much of it is taken."""

    @app.task(name="report", limit=Limit(key="reports", running=1))
    def report() -> None: ...

    report.enqueue()
    report.enqueue()
    database = app.database
    session = database.run(database.store.open_session(SessionInfo("host", 1, ("default",), 60.0)))
    assert len(database.run(database.store.claim(session, ["default"], 10))) == 1
    assert data("/limits")["limits"] == [
        {
            "key": "reports", "running": 1, "held": 1, "rate": None, "seconds": None, "started": 0,
            "waiting": True, "full": True,
        }
    ]  # fmt: skip
    [waiting] = data("/jobs", state="available")["jobs"]
    [running] = data("/jobs", state="running")["jobs"]
    why = data(f"/jobs/{waiting['id']}")["why"]
    assert [(each["subject"], each["jobs"]) for each in why] == [("limit", [running["id"]])]


def test_why_a_job_waits_behind_others(app: Rota, data: Data) -> None:
    """Those before it in the queue, those of smaller priority, a queue that is paused and unserved."""

    @app.task(name="send")
    def send() -> None: ...

    send.using(priority=-1).enqueue()
    send.enqueue()
    last = send.enqueue()
    app.queue("default").pause()
    why = data(f"/jobs/{last.id}")["why"]
    assert [each["subject"] for each in why] == ["paused", "no worker", "priority", "ahead"]
    assert why[-1]["text"] == "1 job is ahead of it."
    app.queue("default").resume()
    database = app.database
    info = SessionInfo("host", 1, ("default",), 60.0, ("other",))
    database.run(database.store.open_session(info))
    why = data(f"/jobs/{last.id}")["why"]
    assert [each["subject"] for each in why] == ["unknown task", "priority", "ahead"]


def test_why_a_job_waits_for_its_time(app: Rota, data: Data) -> None:
    """A scheduled job says when."""

    @app.task(name="send")
    def send() -> None: ...

    job = send.using(delay=7200).enqueue()
    info = SessionInfo("host", 1, ("default",), 60.0, ("send",))
    app.database.run(app.database.store.open_session(info))
    [why] = data(f"/jobs/{job.id}")["why"]
    assert why["subject"] == "time"
    assert why["text"].startswith(
        ("It waits for its time, due in 2 h", "It waits for its time, due in 1 h")
    )
    assert app.job(job.id).status is State.SCHEDULED


def test_the_command_says_the_same(app: Rota, data: Data) -> None:
    """The page and `rota jobs show` give the same reasons for a flow's node, a signal and a limit."""

    @app.task(name="approve")
    async def approve(ctx: Context) -> None:
        await ctx.wait_for("approved")

    @app.task(name="report", limit=Limit(key="reports", running=1))
    def report() -> None: ...

    with app.flow("order") as flow:
        flow.add(report, name="ship", after=[flow.add(approve)])
    approval = flow.handle.job("approve")
    with working(app):
        until(lambda: approval.status is State.SCHEDULED)
    asked = [approval.id, flow.handle.job("ship").id]
    asked += [report.enqueue().id, report.enqueue().id]
    subjects = set()
    for job in asked:
        on_the_page = data(f"/jobs/{job}")["why"]
        [said] = answer("jobs", "show", job, url=app.url)["jobs"]
        # The command's advice names its database.
        assert [(one["subject"], one["text"]) for one in said["why"]] == [
            (one["subject"], one["text"]) for one in on_the_page
        ]
        subjects |= {one["subject"] for one in on_the_page}
    assert subjects == {"no worker", "signal", "flow", "ahead"}


def test_a_queue_that_is_not_there(get: Get) -> None:
    """A plain page says so."""
    response = get("/queue", name="nowhere")
    assert response.status == 404
    assert "no queue named nowhere" in response.body.decode()
