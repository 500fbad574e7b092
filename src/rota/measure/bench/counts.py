"""What does it cost to count the jobs of each queue, next to a COUNT(*)?"""

import sqlite3
import time
from collections.abc import Callable, Sequence
from statistics import median

from rota.measure.bench import tasks
from rota.measure.bench.crew import Crew, Plan
from rota.measure.bench.drain import run_dry
from rota.measure.bench.figures import ratio
from rota.measure.bench.scratch import Scratch
from rota.measure.reports.report import Figures, Lines, Result, Series, Value
from rota.terminal.progress import Progress

TRIES = 5
"""So often each is measured, in turns; the median counts."""


def counts(scratch: Scratch, *, sizes: Sequence[int], finished: bool, progress: Progress) -> Result:
    """Fill one database step by step, and count at each size.

    Args:
        scratch: Where to make the database.
        sizes: Numbers of jobs.
        finished: Have a worker settle the jobs first, so that kept ones are counted, not
            available ones.
        progress: Shows how far it is.
    """
    found: dict[str, Figures] = {}
    ours: list[float] = []
    plain: list[float] = []
    sizes = sorted(set(sizes))
    with scratch.fresh() as url:
        have = 0
        for size in sizes:
            _fill(url, have, size, progress)
            if finished:
                with Crew(Plan(url)) as crew:
                    run_dry(crew, size - have, "settle", progress)
                    crew.stop()
            have = size
            figures, queues_ms, count_ms = _measure(url, size, finished=finished)
            found[f"{size:,} jobs"] = figures
            ours.append(queues_ms)
            plain.append(count_ms)
    at = tuple(float(size) for size in sizes)
    series = {
        "queues list": Series("ms", at, tuple(ours), "jobs"),
        "COUNT(*)": Series("ms", at, tuple(plain), "jobs"),
    }
    charts = (
        Lines("Counters do not get slower with the number of jobs, COUNT(*) does",
              "jobs", "milliseconds", tuple(series)),
    )  # fmt: skip
    return Result(figures={"sizes": found}, series=series, charts=charts, notes=NOTES)


NOTES = (
    (
        f"Each is run {TRIES} times in turns on an open connection; the medians are compared. "
        "COUNT(*) counts the table that the jobs are in, as one would without counters."
    ),
)


def _fill(url: str, have: int, size: int, progress: Progress) -> None:
    app = tasks.open_app(url)
    progress.begin(f"enqueue up to {size:,}", size - have)
    for start in range(have, size, 100_000):
        end = min(start + 100_000, size)
        tasks.noop.enqueue_many((n,) for n in range(start, end))
        progress.at(end - have)
    app.close()


def _measure(url: str, size: int, *, finished: bool) -> tuple[dict[str, Value], float, float]:
    app = tasks.open_app(url)
    counted = 0

    def queues() -> None:
        nonlocal counted
        records = app.database.run(app.database.store.queues())
        counted = sum(count for one in records for count in one.counts.values())

    count, close = _count(url, finished=finished)
    times: dict[Callable[[], object], list[float]] = {queues: [], count: []}
    for call in times:
        call()  # opens the connection
    for _ in range(TRIES):
        for call, took in times.items():
            began = time.perf_counter()
            call()
            took.append((time.perf_counter() - began) * 1000)
    close()
    app.close()
    ours, plain = (round(median(took), 3) for took in times.values())
    figures: dict[str, Value] = {
        "jobs": size,
        "counted": counted,
        "queues_ms": ours,
        "count_ms": plain,
        "ratio_to_count": ratio(ours, plain),
    }
    return figures, ours, plain


def _count(url: str, *, finished: bool) -> tuple[Callable[[], object], Callable[[], object]]:
    if url.startswith("sqlite"):
        file = sqlite3.connect(url.partition("///")[2])
        return (
            lambda: file.execute("SELECT count(*) FROM rota_job").fetchone(),
            file.close,
        )
    import psycopg

    server = psycopg.connect(url, autocommit=True)
    statement = (
        "SELECT count(*) FROM rota.finished" if finished else "SELECT count(*) FROM rota.log"
    )
    return lambda: server.execute(statement).fetchone(), server.close
