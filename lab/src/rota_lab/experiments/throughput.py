"""Jobs per second. Article 5's benchmark: 10 workers, 10,000 jobs that do nothing."""

import math
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rota.measure.reports.report import Bars, Figures, Lines, Result, Series
from rota_lab.databases import Database
from rota_lab.experiment import Experiment
from rota_lab.queue import Trial
from rota_lab.strategy import Job

LOOK = 0.1
"""Seconds between two looks at what was worked."""

POINTS = 20
"""Intervals of a run's series, about."""

PUBLISHED: Mapping[str, tuple[float, float]] = {
    "DBP-mysql-0-0-5": (190.47, 452.04),
    "DBP-mysql-1-0-1": (155.87, 347.82),
    "DBP-mysql-noindex": (92.29, 171.61),
    "DBO-mysql-0": (90.33, 386.42),
    "DBO-mysql-1": (210.06, 644.52),
    "DBP-pgsql-0-0-5": (206.39, 273.13),
    "DBP-pgsql-1-0-1": (184.03, 332.50),
    "DBP-pgsql-noindex": (142.65, 263.86),
    "DBO-pgsql-0": (54.1, 180.41),
    "DBO-pgsql-1": (201.06, 468.33),
}
"""Jobs per second in the article, on Forpsi and on c4.large, by its names for the methods."""

PUBLISHED_AS: Mapping[str, str] = {
    "laravel-retry, MariaDB": "DBP-mysql-0-0-5",
    "laravel-mark, MariaDB": "DBP-mysql-1-0-1",
    "laravel-unindexed, MariaDB": "DBP-mysql-noindex",
    "laravel-optimistic-first, MariaDB": "DBO-mysql-0",
    "laravel-optimistic, MariaDB": "DBO-mysql-1",
    "laravel-retry, PostgreSQL": "DBP-pgsql-0-0-5",
    "laravel-mark, PostgreSQL": "DBP-pgsql-1-0-1",
    "laravel-unindexed, PostgreSQL": "DBP-pgsql-noindex",
    "laravel-optimistic-first, PostgreSQL": "DBO-pgsql-0",
    "laravel-optimistic, PostgreSQL": "DBO-pgsql-1",
}
"""Trials that are one of the article's methods."""


@dataclass(frozen=True, slots=True)
class Run:
    """What the workers have done.

    Attributes:
        database: The kind of database.
        jobs: How many jobs.
        firsts: When each job was worked for the first time, in seconds since the beginning, in
            order.
        again: How often a job was worked that had been worked before.
        deadlocks: How often a worker was a deadlock's victim.
    """

    database: Database
    jobs: int
    firsts: tuple[float, ...]
    again: int
    deadlocks: int


class Throughput(Experiment[Run]):
    """As many jobs as the workers can do."""

    name = "throughput"
    question = "How many jobs per second?"
    summary = (
        "Has workers do jobs that do nothing, as fast as they can; the article has 10 workers and"
        " 10,000 jobs. Draws jobs per second, beside the article's, and over the run."
    )
    see = (
        "Jobs do nothing, so this is what the design itself costs: commits, locks, conflicts. Each"
        " job counts when its work begins for the first time, so that repeating jobs does not make"
        " a design fast; what is recorded after the last job is not in the time. The second chart"
        " should be flat; a line that falls means that claims get slower the more rows were deleted."
        " The order of the designs can be compared with the article's, the rates cannot: its"
        " machines had other disks and processors."
    )
    article = 5
    said = (
        "10 workers, 10,000 jobs, jobs per second on Forpsi and on c4.large. Pessimistic with five"
        " attempts to delete: MySQL 190.47 and 452.04, PostgreSQL 206.39 and 273.13. With a delete"
        " mark: MySQL 155.87 and 347.82, PostgreSQL 184.03 and 332.50. Without the queue's index:"
        " MySQL 92.29 and 171.61, PostgreSQL 142.65 and 263.86. Optimistic with a window of 1:"
        " MySQL 90.33 and 386.42, PostgreSQL 54.1 and 180.41; with a window of N: MySQL 210.06 and"
        " 644.52, PostgreSQL 201.06 and 468.33."
    )
    variants = (
        "laravel-retry", "laravel-mark", "laravel-unindexed", "laravel-optimistic-first",
    )  # fmt: skip
    full = {"jobs": 10_000, "workers": 10, "patience": 120}
    quick = {"jobs": 200, "workers": 2, "patience": 4}

    def samples(self, settings: Mapping[str, float]) -> int:
        del settings
        return 1

    def measure(self, trial: Trial) -> Generator[Run, None, None]:
        count = int(trial.settings["jobs"])
        seen: dict[str, float] = {}
        worked = deadlocks = 0
        with trial.fresh() as queue, queue.workers(int(trial.settings["workers"])) as workers:
            queue.strategy.enqueue([Job(str(number)) for number in range(1, count + 1)])
            began = workers.go()
            moved = time.monotonic()
            while len(seen) < count and time.monotonic() - moved < trial.settings["patience"]:
                time.sleep(LOOK)
                for report in workers.tell():
                    deadlocks += len(report.deadlocks)
                    worked += len(report.worked)
                    for at, text in report.worked:
                        moved = time.monotonic()
                        seen[text] = min(at, seen.get(text, math.inf))
        firsts = tuple(sorted(at - began for at in seen.values()))
        yield Run(trial.database, count, firsts, worked - len(seen), deadlocks)

    def result(self, taken: Mapping[str, Sequence[Run]], settings: Mapping[str, float]) -> Result:
        del settings
        figures: dict[str, Figures] = {}
        series: dict[str, Series] = {}
        rates: dict[str, float] = {}
        drawn: dict[Database, list[str]] = {}
        for name, [run] in ((name, runs) for name, runs in taken.items() if runs):
            rates[name] = rate(run.firsts)
            method = PUBLISHED_AS.get(name)
            forpsi, c4_large = PUBLISHED[method] if method else (None, None)
            figures[name] = {
                "jobs_per_second": round(rates[name], 1),
                "article's_method": method,
                "article_on_Forpsi": forpsi,
                "article_on_c4.large": c4_large,
                "worked_again": run.again,
                "never_worked": run.jobs - len(run.firsts),
                "deadlocks": run.deadlocks,
            }
            at, y = over_time(run.firsts)
            series[name] = Series("jobs/s", at, y, "%")
            drawn.setdefault(run.database, []).append(name)
        article = {
            name: {"Forpsi": forpsi, "c4.large": c4} for name, (forpsi, c4) in PUBLISHED.items()
        }
        charts: tuple[Lines | Bars, ...] = (
            Bars("Jobs per second: the longer, the better", "jobs per second", {"rate": rates}),
            *(
                Lines(
                    f"{kind.title}, over the run: flat means that it lasts, falling that claims"
                    " get slower",
                    "percent of the run's time", "jobs per second", tuple(names),
                    {name: name.partition(", ")[0] for name in names}, spread=True,
                )
                for kind, names in drawn.items()
            ),
        )  # fmt: skip
        return Result(
            figures={"runs": figures, "the article's table, jobs per second": article},
            series=series,
            charts=charts,
        )


def rate(firsts: Sequence[float]) -> float:
    """Jobs per second, from the beginning until work began on the last job."""
    return len(firsts) / firsts[-1] if firsts else 0.0


def over_time(firsts: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The rate in intervals of the same length: their middles in percent, and jobs per second."""
    if not firsts or firsts[-1] <= 0:
        return (), ()
    count = max(1, min(POINTS, len(firsts) // 20))
    length = firsts[-1] / count
    within = [0] * count
    for at in firsts:
        within[min(count - 1, max(0, int(at / length)))] += 1
    edges = [100 * number / count for number in range(count + 1)]
    return (
        tuple(round((start + end) / 2, 2) for start, end in pairwise(edges)),
        tuple(round(number / length, 2) for number in within),
    )
