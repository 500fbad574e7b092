"""How long does each page of the dashboard take in the server, however many jobs there are?"""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import NamedTuple
from urllib.parse import quote

from rota.app.app import Rota
from rota.dashboard.access import Access
from rota.dashboard.mounting import Dashboard
from rota.errors import RotaError
from rota.measure.bench.crew import Crew, Plan
from rota.measure.bench.figures import percentile
from rota.measure.bench.observer import Observer, observing
from rota.measure.bench.past import CAUSE, Past, fill
from rota.measure.bench.producer import Load, Producers
from rota.measure.bench.scratch import Scratch
from rota.measure.bench.viewers import PURPOSE, watch
from rota.measure.reports.report import Figures, Lines, Result, Series, Value
from rota.model.flow import Condition, Edge, FlowOrder, NodeOrder
from rota.model.job import JobSpec, Order
from rota.model.states import State
from rota.terminal.progress import Progress

LONGEST = 50.0
"""Milliseconds that a page may take in the server."""

BATCH = 20
"""Jobs of one enqueue of the load."""


MAP, NODES = 1_000, 1_000
"""Jobs of a flow's map, and other nodes of it."""


class Asked(NamedTuple):
    """A page, or a question that a form asks before something is done; neither changes anything."""

    path: str
    query: str = ""
    form: str = ""


def dashboard(
    scratch: Scratch,
    *,
    sizes: Sequence[int],
    requests: int,
    rate: float,
    seconds: float,
    progress: Progress,
) -> Result:
    """Ask for every page, in databases of these sizes, while jobs are enqueued and worked beside.

    Args:
        scratch: Where to make the databases.
        sizes: Numbers of jobs.
        requests: Of each page.
        rate: Jobs per second that are enqueued and worked meanwhile; 0: none.
        seconds: For which an open overview is watched; 0 leaves that out.
        progress: Shows how far it is.
    """
    found: dict[str, Mapping[str, Mapping[str, Value]]] = {}
    opened: dict[str, Figures] = {}
    sizes = sorted(set(sizes))
    for size in sizes:
        with (
            scratch.fresh() as url,
            observing(url, scratch) as observer,
            Rota(_named(url)) as app,
        ):
            past = fill(app, size, progress)
            _flow(app)
            with _load(url, rate):
                found[f"{size:,} jobs"] = _pages(app, past, observer, requests, progress)
            for viewers in (0, 1, 10) if seconds else ():
                opened[f"{size:,} jobs, {viewers} open"] = watch(
                    app, observer, viewers, seconds, progress
                )
    figures: dict[str, Figures] = {"pages": found}
    if opened:
        figures["open_overviews"] = opened
    at = tuple(float(size) for size in sizes)
    series = {
        name: Series(
            "ms", at, tuple(_milliseconds(pages[name]) for pages in found.values()), "jobs"
        )
        for name in next(iter(found.values()))
    }
    charts = (
        Lines("Pages do not get slower with the number of jobs", "jobs", "milliseconds", tuple(series)),
    )  # fmt: skip
    return Result(figures=figures, series=series, charts=charts, notes=NOTES)


def _flow(app: Rota) -> None:
    """A flow of a map and 1,000 nodes, each of which waits for one before it; nobody runs its jobs."""
    wide = NodeOrder("wide", Order(JobSpec("shop.flow", "flow"), ["{}"] * MAP), many=True)
    one = Order(JobSpec("shop.flow", "flow"), ["{}"])
    nodes = [
        NodeOrder(f"group-{number % 50}/{number}", one, (Edge(number // 2, Condition.COMPLETED),))
        for number in range(NODES)
    ]
    app.database.run(app.database.store.flows.create(FlowOrder("flow", [wide, *nodes], 0.0)))


NOTES = (
    (
        "Each request finds nothing that was looked up before, so it is the slowest of its second: people who look "
        "at the same time share what it finds. It goes through the WSGI application, without a socket. own_ms is "
        "the processor time of the thread that makes the page, server_ms that of the server's processes for it, as "
        "the operating system counts them. over says whether the median is over "
        f"{LONGEST:g} ms."
    ),
)


def _milliseconds(page: Mapping[str, Value]) -> float:
    return float(page["p50_ms"] or 0)


def asked(past: Past) -> dict[str, Asked]:
    """Every page, and what can be asked of it, by a name."""
    pages = {
        "overview": Asked("/"),
        "its live part": Asked("/", "part=live"),
        "queues": Asked("/queues"),
        "one queue": Asked("/queue", "name=shop-1"),
        "jobs": Asked("/jobs"),
    }
    for state in State:
        pages[f"jobs, {state}"] = Asked("/jobs", f"state={state}")
    middle = past.last // 2
    filters = {
        "of a queue": "queue=shop-3", "of a task": "task=shop.task_2", "of no task": "task=none",
        "by arg": "arg=order_id%3D77", "by arg, none": "arg=user.name%3Dnobody",
        "by key": "subject=order:42", "by keys": "subject=order:*", "by few keys": "subject=order:77*",
    }  # fmt: skip
    pages |= {f"jobs {name}": Asked("/jobs", query) for name, query in filters.items()}
    pages |= {
        f"jobs, {state}, by arg, none": Asked("/jobs", f"state={state}&arg=user.name%3Dnobody")
        for state in State
    }
    pages |= {
        f"jobs, {state}, by keys": Asked("/jobs", f"state={state}&subject=order:*")
        for state in State
    }
    pages["jobs, deep"] = Asked("/jobs", f"before={middle}")
    for state in State:
        pages[f"jobs, {state}, deep"] = Asked("/jobs", f"state={state}&before={middle}")
    pages |= {f"one job, {state}": Asked(f"/jobs/{job}") for state, job in past.jobs.items()}
    pages |= {
        "flows": Asked("/flows"), "flows by state": Asked("/flows", "state=failed"), "one flow": Asked("/flows/1"),
        "discarded": Asked("/discarded"), "discarded of a queue": Asked("/discarded", "queue=shop-0"),
        "cron": Asked("/cron"), "limits": Asked("/limits"), "workers": Asked("/workers"), "doctor": Asked("/doctor"),
        "history": Asked("/history"), "history of a queue, a week": Asked("/history", "queue=shop-1&span=week"),
        "audit": Asked("/audit"),
    }  # fmt: skip
    return pages


def questions() -> dict[str, Asked]:
    """How many jobs match, where no counter knows it, by a name."""
    return {
        f"how many {name}": Asked(f"/jobs/{action}", form=f"which=all&{form}")
        for name, action, form in (
            ("of a task", "delete", "task=shop.task_2"),
            ("of no task", "delete", "task=none"),
            ("available of a task", "cancel", "state=available&task=shop.task_2"),
            ("by an arg", "cancel", "arg=order_id%3D77"),
            ("by keys", "cancel", "subject=order:*"),
            ("in a group", "retry", f"state=discarded&task=shop.task_0&cause={quote(CAUSE)}"),
        )
    }


def _pages(
    app: Rota, past: Past, observer: Observer, requests: int, progress: Progress
) -> dict[str, Mapping[str, Value]]:
    """What each page takes, as HTML, and some of them as JSON."""
    pages = app.dashboard(access=Access.all())
    wanted: list[tuple[str, Asked, str]] = [
        (name, page, "text/html") for name, page in asked(past).items()
    ]
    wanted += [
        (f"{name}, JSON", page, "application/json")
        for name, page in asked(past).items()
        if name in {"overview", "jobs", "one job, completed"}
    ]
    wanted += [(name, question, "text/html") for name, question in questions().items()]
    progress.begin("ask for pages", len(wanted))
    found: dict[str, Mapping[str, Value]] = {}
    for number, (name, page, accept) in enumerate(wanted):
        found[name] = _timed(pages, page, accept, observer, requests)
        progress.at(number + 1)
    return found


def _timed(
    pages: Dashboard, asked: Asked, accept: str, observer: Observer, requests: int
) -> dict[str, Value]:
    took: list[float] = []
    own = 0.0
    _ask(pages, asked, accept)  # plans, connections, templates
    before = _used(observer)
    for _ in range(requests):
        pages.core.forget()
        began, used = time.perf_counter(), time.thread_time()
        _ask(pages, asked, accept)
        took.append((time.perf_counter() - began) * 1000)
        own += time.thread_time() - used
    after = _used(observer)
    took.sort()
    return {
        "p50_ms": round(percentile(took, 0.5), 1),
        "p95_ms": round(percentile(took, 0.95), 1),
        "max_ms": round(took[-1], 1),
        "own_ms": round(own / requests * 1000, 1),
        "server_ms": (
            None
            if before is None or after is None
            else round((after - before) / requests * 1000, 1)
        ),
        "over": percentile(took, 0.5) > LONGEST,
    }


def _used(observer: Observer) -> float | None:
    used = observer.processor()
    return None if used is None else used.get(PURPOSE, 0.0)


def _ask(pages: Dashboard, asked: Asked, accept: str) -> None:
    status = ""

    def start(line: str, headers: object) -> None:
        nonlocal status
        del headers
        status = line

    environ = {
        "REQUEST_METHOD": "POST" if asked.form else "GET", "PATH_INFO": asked.path, "QUERY_STRING": asked.query,
        "HTTP_ACCEPT": accept, "HTTP_SEC_FETCH_SITE": "same-origin", "SCRIPT_NAME": "",
        "CONTENT_LENGTH": str(len(asked.form)), "wsgi.input": BytesIO(asked.form.encode()),
    }  # fmt: skip
    body = b"".join(pages.wsgi(environ, start))
    # That no job matches is an answer, too.
    if not status.startswith("200") and not (asked.form and status.startswith("404")):
        message = f"the dashboard answers {asked} with {status}: {body[:500]!r}"
        raise RotaError(message)


@contextlib.contextmanager
def _load(url: str, rate: float) -> Iterator[None]:
    """Jobs that are enqueued and worked, so many a second."""
    if not rate:
        yield
        return
    with Crew(Plan(url)) as crew, Producers(Load(url, rate, BATCH)) as producers:
        crew.go()
        producers.go()
        yield
        producers.stop()
        crew.stop()


def _named(url: str) -> str:
    """The URL with a name for the connections."""
    return url if url.startswith("sqlite") else f"{url}&application_name=rota%20{PURPOSE}"
