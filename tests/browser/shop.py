"""A shop whose jobs are in every state, for pages that show everything, and for their pictures."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar, cast

from rota import Context, Discard, Limit, Rota
from rota.app.flow_handle import FlowHandle
from rota.dashboard.access import Access
from rota.dashboard.core import Core
from rota.dashboard.message import Request
from rota.model.job import ClaimedJob, SessionId, SessionInfo
from rota.model.notes import Note
from tests.browser.past import write_day
from tests.fixtures.workers import until, working

if TYPE_CHECKING:
    from types import FunctionType

F = TypeVar("F", bound=Callable[..., object])

PAGES = {
    "overview": "/",
    "queues": "/queues",
    "queue": "/queue?name=mail",
    "jobs": "/jobs?state=retryable&task=mail.send&arg=customer=ada",
    "job-running": "/jobs/{running}",
    "job-waiting": "/jobs/{waiting}",
    "job-failed": "/jobs/{failed}",
    "job-done": "/jobs/{done}",
    "flows": "/flows",
    "flow": "/flows/{flow}",
    "job-of-flow": "/jobs/{member}",
    "discarded": "/discarded",
    "cron": "/cron",
    "limits": "/limits",
    "workers": "/workers",
    "doctor": "/doctor",
    "history": "/history?queue=mail&span=day",
    "audit": "/audit",
    "refused": "/jobs/4711000",
}
"""All that can be looked at, by name: each page, and one job in each kind of trouble."""


@dataclass(frozen=True, slots=True)
class Shop:
    """An app, and the ids of some of its jobs."""

    app: Rota
    done: int
    failed: int
    running: int
    waiting: int
    flow: int
    member: int

    def path(self, page: str) -> str:
        """Where a page is."""
        return PAGES[page].format(**{name: getattr(self, name) for name in self.__slots__})


@contextmanager
def shop(url: str) -> Iterator[Shop]:
    """The shop, on an empty SQLite file that is up to date."""
    with Rota(url) as app:
        yield _filled(app)


def _as_if_in(file: str) -> Callable[[F], F]:
    """A function whose tracebacks name a file of the shop's."""

    def moved(function: F) -> F:
        found = cast("FunctionType", function)
        found.__code__ = found.__code__.replace(co_filename=file)
        return function

    return moved


def _filled(app: Rota) -> Shop:
    @app.task(
        name="mail.send", queue="mail", max_attempts=5, retry=lambda attempt, _: 600 * attempt
    )
    def send(customer: str, order: int) -> None:
        if order % 11 == 0:
            raise ConnectionRefusedError(111, f"mail.example.org refused {customer}")

    @app.task(name="image.resize", queue="images", store_result=True)
    def resize(context: Context, path: str, width: int = 640) -> dict[str, int]:
        context.log(f"read {path}")
        context.progress(1.0, "written")
        return {"width": width, "height": width * 3 // 4}

    @app.task(name="stock.refresh", queue="stock", max_attempts=1)
    @_as_if_in("/srv/shop/stock.py")
    def refresh(sku: str) -> None:
        if sku.startswith("B"):
            raise Discard(f"{sku} is not sold any more")
        raise LookupError(f"no stock of {sku} in the warehouse that answers first")

    @app.task(
        name="report.build", queue="reports", limit=Limit(key="reports", running=1), unique="{day}"
    )
    def build(day: str) -> None:
        del day

    @app.task(name="newsletter.send", queue="newsletter", limit=Limit(key="smtp", per_minute=600))
    def newsletter(number: int) -> None:
        del number

    flow = _flow(app)
    refresh.enqueue_many([(f"{kind}-{number}",) for number in range(6) for kind in "AAB"])
    failed = refresh.enqueue("A-7").id
    done = resize.enqueue("shop/teapot.png").id
    resize.enqueue_many([(f"shop/{number}.png",) for number in range(40)])
    send.enqueue_many([(name, number) for number in range(1, 45) for name in ("ada", "grace")])
    newsletter.enqueue(0)
    newsletter.using(delay=86_400).enqueue_many([(number,) for number in range(12)])
    with working(app):
        until(
            lambda: not app.jobs.count(state="available") + app.jobs.count(state="running"),
            "the jobs",
        )
        _done(app, "ada", "/jobs/cancel", which="all", state="scheduled", task="newsletter.send")
        until(
            lambda: len(app.jobs.list(state="cancelled", task="newsletter.send")) == 12,
            "the jobs that are called off",
        )

    app.cron.add(
        "nightly-report", "0 3 * * *", build, timezone="Europe/Berlin", args=("yesterday",)
    )
    app.cron.add("stock", "*/10 * * * *", refresh, args=("A-1",))
    app.cron.add("weekly-newsletter", "0 9 * * mon", newsletter, args=(1,))
    _done(app, "grace", "/cron/pause", name="weekly-newsletter")

    newsletter.enqueue_many([(number,) for number in range(2_500)])
    _done(app, "grace", "/queue/pause", name="newsletter")
    send.using(delay=3_600).enqueue("ada", 100)
    send.enqueue("ada", 101)
    *_, waiting = build.enqueue_many([(f"2026-11-{day:02}",) for day in range(1, 6)])
    _done(app, "ada", f"/jobs/{refresh.enqueue('A-9').id}/cancel")
    _worked_on(app)
    write_day(app.database.store.url.removeprefix("sqlite:///"), {"": 1.6, "mail": 1.0})
    running = app.jobs.list(state="running", task="report.build")[0].id
    ids = {"done": done, "failed": failed, "running": running, "waiting": waiting}
    return Shop(app, **ids, flow=flow.id, member=flow.job("publish/shop window").id)


def _flow(app: Rota) -> FlowHandle:
    """A catalogue: some goods are no longer sold, so the shop window is skipped.

    A letter waits until tomorrow.
    """
    resize, refresh = app.find_task("image.resize"), app.find_task("stock.refresh")
    with app.flow("catalogue") as small:
        small.add(resize, "shop/front.png", name="front")
    with app.flow("catalogue") as flow:
        stock = flow.map(refresh, [f"B-{number}" for number in range(3)], name="stock")
        front = flow.add(resize, "shop/front.png", name="front page")
        files = [f"shop/{number}.png" for number in range(60)]
        pictures = flow.map(resize, files, after=[front], name="pictures")
        group = flow.flow("publish")
        group.add(resize, "shop/window.png", after=[pictures, stock], name="shop window")
        group.add(resize, "shop/print.png", after=[pictures], name="printed")
        letter = app.find_task("mail.send").using(delay=86_400)
        flow.add(letter, "ada", 9, after=[front], name="letter")
        flow.add(resize, "shop/sorry.png", name="sorry", on="failed", after=[stock])
        flow.add(
            resize, "shop/done.png", name="<thanks> & bye", on="finished", after=[group, stock]
        )
    return flow.handle


def _done(app: Rota, who: str, path: str, **form: str) -> None:
    """Something that a person does on the dashboard."""
    own = {"sec-fetch-site": "same-origin"}
    request = Request("POST", path, Access.all(who=who), {}, own, form | {"sure": "yes"})
    assert Core(app).answer(request).status is HTTPStatus.SEE_OTHER


def _worked_on(app: Rota) -> None:
    """Two workers, one of which runs a report; and one that is silent."""
    database, store = app.database, app.database.store
    every = ("images", "mail", "reports", "stock")

    def opened(host: str, pid: int, queues: tuple[str, ...], timeout: float) -> SessionId:
        info = SessionInfo(host, pid, queues, timeout, tuple(app.tasks))
        return database.run(store.open_session(info))

    batch = opened("batch1", 880, ("reports",), 86_400.0)
    [job] = database.run(store.claim(batch, ["reports"], 1))
    database.run(store.note(list(_told(job))))
    opened("web1", 4242, every, 86_400.0)
    opened("web2", 3911, every, 0.0)


def _told(job: ClaimedJob) -> Iterator[Note]:
    """What its handler has told so far."""
    now = time.monotonic()
    for number, (level, text) in enumerate(
        [
            ("info", "48 orders of 2026-11-01"),
            ("warning", "order 1207 has no invoice; it is left out"),
            ("info", "page 12 of 30"),
        ],
        start=1,
    ):
        yield Note(job.id, job.lease, job.attempt, True, number, now, None, level, text)
    yield Note(job.id, job.lease, job.attempt, False, 0, now, 0.4, None, "page 12 of 30")
