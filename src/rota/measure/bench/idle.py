"""What does an idle worker cost?"""

import time

from rota.measure.bench.crew import Crew, Plan
from rota.measure.bench.lanes import Lanes
from rota.measure.bench.observer import Observer, observing
from rota.measure.bench.scratch import Scratch
from rota.measure.reports.report import Result
from rota.terminal.progress import Progress

REPORTED = 10.0
"""Seconds before the watch, at least. A session of PostgreSQL that falls silent reports its last
work up to ten seconds later, which must not count as idle work."""

SHORTEST = 2.0
"""Seconds of the watch, at least: a session reports no more often than once a second."""


def idle(
    scratch: Scratch, *, seconds: float, rest: float, workers: int, lanes: int, progress: Progress
) -> Result:
    """Watch idle workers for a while, on lanes that have had a job each."""
    found = Lanes(lanes)
    with scratch.fresh() as url, observing(url, scratch) as observer:
        found.fill(url, lanes, progress)
        with Crew(Plan(url, queues=found.queues), workers) as crew:
            crew.go()
            settled = 0
            while settled < lanes:
                time.sleep(0.05)
                settled += sum(report.settled for report in crew.tell())
            figures = watch(crew, observer, seconds, rest, progress)
            crew.stop()
    return Result(
        figures={"workers": workers, "lanes": lanes, "queues": len(found.queues), **figures},
        notes=NOTES,
    )


NOTES = (
    (
        "Processor time is what the worker's own process used, as the operating system counts it, in "
        "percent of one core; that of all the server's processes together is beside it, where they run on this "
        "machine. Transactions are those of the whole "
        "database (xact_commit + xact_rollback), autovacuum's among them, counted from another database "
        "of the server, so that the observer's are not. Sessions report theirs about once a second, and "
        "up to ten seconds late when they fall silent, hence the rest before. "
        f"With a --rest below {REPORTED:g} or --seconds below {SHORTEST:g} they are not measured."
    ),
)


def watch(
    crew: Crew, observer: Observer, seconds: float, rest: float, progress: Progress
) -> dict[str, float | int | None]:
    """Processor time, transactions and memory of idle workers.

    They rest for `rest` seconds and are watched for `seconds`. Where these are too few, the
    transactions are not known, and `None`.
    """
    progress.begin("idle", rest + seconds)
    began = time.monotonic()
    _wait(began, rest, progress)
    first, seen, server = crew.tell(), observer.transactions(), observer.processor()
    start = time.monotonic()
    _wait(began, rest + seconds, progress)
    last, now, worked = crew.tell(), observer.transactions(), observer.processor()
    took = time.monotonic() - start
    used = [end.cpu - begin.cpu for begin, end in zip(first, last, strict=True)]
    per_second = None
    if seen is not None and now is not None and rest >= REPORTED and seconds >= SHORTEST:
        per_second = (now - seen) / took
    return {
        "idle_seconds": round(took, 2),
        "processor_percent_per_worker": round(100 * sum(used) / len(used) / took, 3),
        "processor_percent_highest": round(100 * max(used) / took, 3),
        "server_processor_percent": (
            None
            if server is None or worked is None
            else round(100 * (sum(worked.values()) - sum(server.values())) / took, 3)
        ),
        "transactions_per_second": None if per_second is None else round(per_second, 2),
        "transactions_per_second_per_worker": (
            None if per_second is None else round(per_second / len(used), 2)
        ),
        "memory_mb_per_worker": round(sum(report.memory for report in last) / len(last) / 1e6, 1),
    }


def _wait(began: float, until: float, progress: Progress) -> None:
    while (left := began + until - time.monotonic()) > 0:
        time.sleep(min(left, 0.25))
        progress.at(time.monotonic() - began)
