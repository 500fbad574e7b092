"""What does an enqueue cost, next to a bare INSERT through the same driver in the same run?"""

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from statistics import median

from rota.measure.bench import tasks
from rota.measure.bench.figures import percentiles, ratio
from rota.measure.bench.producer import Load, Producers
from rota.measure.bench.scratch import Scratch
from rota.measure.reports.report import Bars, Figures, Result
from rota.terminal.progress import Progress

BLOCK = 50
"""Enqueues and bare INSERTs take turns in such blocks, so that both meet the same machine."""


def enqueue(
    scratch: Scratch,
    *,
    jobs: int,
    singles: int,
    producers: Sequence[int],
    seconds: float,
    progress: Progress,
) -> Result:
    """One by one next to bare INSERTs; `jobs` at once; and several producers.

    Args:
        scratch: Where to make the databases.
        jobs: How many jobs one `enqueue_many` stores.
        singles: How many enqueues, and bare INSERTs, are timed.
        producers: Numbers of producer processes, each of which enqueues one by one.
        seconds: How long each number of producers is run.
        progress: Shows how far it is.
    """
    figures: dict[str, Figures] = {}
    with scratch.fresh() as url:
        figures["one_by_one"] = _singles(url, singles, progress)
        figures["enqueue_many"] = {**many(url, jobs, progress)}
    rates: dict[str, float] = {}
    runs: dict[str, Figures] = {}
    for count in producers:
        with scratch.fresh() as url:
            found = _producers(url, count, seconds, progress)
        label = f"{count} producer{'s' if count > 1 else ''}"
        rates[label] = found["rate"] or 0.0
        runs[label] = {**found, "ratio_to_first": ratio(rates[label], next(iter(rates.values())))}
    charts = []
    if runs:
        figures["producers"] = runs
        charts.append(Bars("Enqueues one by one, by producers", "jobs per second", {"": rates}))
    return Result(figures=figures, charts=tuple(charts), notes=NOTES)


NOTES = (
    (
        f"one_by_one: enqueues and bare INSERTs take turns in blocks of {BLOCK}, each in a "
        "transaction of its own. ratio_to_bare_insert is the ratio of the rates."
    ),
    (
        "producers: processes that enqueue one job after another without a pause, each on a "
        "connection of its own."
    ),
)


def _singles(url: str, singles: int, progress: Progress) -> Figures:
    progress.begin("one by one", singles)
    app = tasks.open_app(url)
    insert, close = bare_insert(url)
    # The first calls open connections and prepare statements.
    for n in range(BLOCK):
        tasks.noop.enqueue(n)
        insert(n)
    ours: list[float] = []
    bare: list[float] = []
    for start in range(0, singles, BLOCK):
        for call, times in ((tasks.noop.enqueue, ours), (insert, bare)):
            for n in range(start, min(start + BLOCK, singles)):
                began = time.perf_counter()
                call(n)
                times.append(time.perf_counter() - began)
        progress.at(start)
    close()
    app.close()
    return {
        "jobs": singles,
        "rate": round(singles / sum(ours)),
        "bare_insert_rate": round(singles / sum(bare)),
        "ratio_to_bare_insert": ratio(sum(bare), sum(ours)),
        "ratio_of_medians": ratio(median(bare), median(ours)),
        **percentiles(ours),
    }


def many(url: str, jobs: int, progress: Progress) -> dict[str, int | float]:
    """One `enqueue_many` of so many jobs, and how long it took."""
    progress.begin("enqueue_many", jobs)
    app = tasks.open_app(url)
    args = [(n,) for n in range(jobs)]
    tasks.noop.enqueue_many(args[:1000])
    began = time.perf_counter()
    tasks.noop.enqueue_many(args)
    seconds = time.perf_counter() - began
    progress.at(jobs)
    app.close()
    return {"jobs": jobs, "seconds": round(seconds, 3), "rate": round(jobs / seconds)}


def _producers(
    url: str, count: int, seconds: float, progress: Progress
) -> dict[str, float | int | None]:
    progress.begin(f"producers: {count}", seconds)
    with Producers(Load(url, None), count) as producers:
        producers.go()
        # The first calls open connections and prepare statements.
        time.sleep(min(0.5, seconds / 4))
        producers.tell()
        began = time.monotonic()
        while (left := began + seconds - time.monotonic()) > 0:
            time.sleep(min(left, 0.25))
            progress.at(time.monotonic() - began)
        sent = producers.tell()
        took = time.monotonic() - began
        producers.stop()
    jobs = sum(report.jobs for report in sent)
    return {
        "jobs": jobs,
        "rate": round(jobs / took, 1),
        **percentiles(took for report in sent for took in report.seconds),
    }


def bare_insert(url: str) -> tuple[Callable[[int], object], Callable[[], object]]:
    """Two functions: insert one row as plainly as the driver can, and close the connection."""
    columns = "(id {} PRIMARY KEY, task text NOT NULL, args {} NOT NULL)"
    if url.startswith("sqlite"):
        path = url.partition("///")[2]
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE bare" + columns.format("integer", "text"))
        file = sqlite3.connect(path, isolation_level=None)
        file.execute("PRAGMA synchronous = FULL")
        sql = "INSERT INTO bare (task, args) VALUES (?, ?)"
        return lambda n: file.execute(sql, ("bench.noop", f'{{"n":{n}}}')), file.close
    import psycopg

    server = psycopg.connect(url, autocommit=True)
    server.execute("CREATE TABLE bare" + columns.format("bigserial", "json"))
    statement = "INSERT INTO bare (task, args) VALUES (%s, %s::json) RETURNING id"
    return (
        lambda n: server.execute(statement, ("bench.noop", f'{{"n":{n}}}')).fetchone(),
        server.close,
    )
