"""What does SELECT COUNT(*) cost? Article 3's complaint, and its counters, at more and more rows."""

import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

from rota.measure.reports.report import Figures, Lines, Result, Series
from rota_lab.experiment import Experiment
from rota_lab.queue import Trial
from rota_lab.strategy import Job, Strategy

CHUNK = 10_000
"""Jobs that are enqueued at once."""

TRIES = 5
"""How often each way is tried at each size, in turns; the quickest counts, since other work on the
machine can only make it longer."""

SECONDS_PER_MILLION = 60
"""Seconds of enqueueing, at most, on an ordinary machine, for one strategy on one database."""

MEGABYTES_PER_MILLION = 400
"""Disk space of a million jobs, at most, with indexes and the database's log."""


@dataclass(frozen=True, slots=True)
class Count:
    """How long it took to count so many jobs.

    Attributes:
        rows: Jobs in the queue.
        fill: Seconds that it took to enqueue the jobs that were missing.
        times: Seconds of each way, in the order of the tries.
    """

    rows: int
    fill: float
    times: Mapping[str, tuple[float, ...]]


class Counting(Experiment[Count]):
    """The same question at sizes that grow by ten."""

    name = "counting"
    question = "What does SELECT COUNT(*) cost at millions of rows?"
    summary = (
        "Fills a queue tenfold again and again through the design's own enqueue, and counts it."
        " Draws how long counting takes, by rows; both axes are logarithmic."
    )
    see = (
        "A COUNT(*) reads every row, or an entry of an index for each: ten times the rows take ten"
        " times as long, a line that goes up. Counters that are kept while jobs come and go are"
        " read, whatever there is: a flat line. A COUNT(*) that follows a fill may also have to mark"
        f" rows as committed, once; the quickest of {TRIES} tries leaves that out. A line for a"
        " command has a program's start in it."
    )
    article = 3
    said = (
        '"Those queries become excruciatingly slow once you start to handle few million documents'
        ' inside the queue table", because a count is "a full scan": the article gives no times. Its'
        " answer is a table of metrics, which the statements that push, pick and complete documents"
        " keep in step."
    )
    usual = ("skip-locked", "fetchq", "laravel", "rota")
    full = {"rows": 10_000_000}
    quick = {"rows": 100_000}

    def beforehand(self, settings: Mapping[str, float]) -> str | None:
        millions = settings["rows"] / 1e6
        if millions < 1:
            return None
        return (
            f"Filling takes up to {millions * SECONDS_PER_MILLION / 60:,.0f} minutes and"
            f" {millions * MEGABYTES_PER_MILLION / 1000:,.1f} GB of disk for each strategy on each"
            " database, one after the other; --set rows=… makes it less."
        )

    def samples(self, settings: Mapping[str, float]) -> int:
        return len(sizes(int(settings["rows"])))

    def measure(self, trial: Trial) -> Generator[Count, None, None]:
        have = 0
        with trial.fresh() as queue:
            for rows in sizes(int(trial.settings["rows"])):
                began = time.perf_counter()
                _fill(queue.strategy, have, rows)
                took = time.perf_counter() - began
                have = rows
                yield Count(rows, took, _times(queue.strategy))

    def result(self, taken: Mapping[str, Sequence[Count]], settings: Mapping[str, float]) -> Result:
        del settings
        figures: dict[str, Figures] = {}
        series: dict[str, Series] = {}
        for name, counts in taken.items():
            found: dict[str, list[tuple[int, float]]] = {}
            for count in counts:
                for way, times in count.times.items():
                    found.setdefault(way, []).append((count.rows, min(times) * 1000))
            for way, points in found.items():
                key = f"{name}: {way}"
                at = tuple(float(rows) for rows, _ in points)
                series[key] = Series("ms", at, tuple(round(took, 3) for _, took in points), "jobs")
                figures[key] = {
                    **{f"{rows:,} rows, ms": round(took, 2) for rows, took in points},
                    "last_to_first": growth(points),
                }
        chart = Lines(
            "Counting rows takes ten times as long for ten times the rows; counters do not",
            "jobs", "milliseconds", tuple(series), spread=True,
        )  # fmt: skip
        fills = {
            name: {f"{count.rows:,} rows, s": round(count.fill, 2) for count in counts}
            for name, counts in taken.items()
        }
        return Result(
            figures={"time of a count": figures, "seconds to enqueue those that were missing": fills},
            series=series,
            charts=(chart,),
            notes=(
                ("Jobs are enqueued by one process through the design's own enqueue,"
                f" {CHUNK:,} at a time, and none is worked. Autovacuum runs when it wants to."),
            ),
        )  # fmt: skip


def sizes(rows: int) -> list[int]:
    """Ten thousand, and ten times as many again and again, up to so many."""
    found = [10_000]
    while found[-1] * 10 <= rows:
        found.append(found[-1] * 10)
    return found


def growth(points: Sequence[tuple[int, float]]) -> float | None:
    """How many times as long the last takes as the first; None where there is only one."""
    if len(points) < 2 or points[0][1] == 0:  # noqa: PLR2004 - two make a comparison
        return None
    return round(points[-1][1] / points[0][1], 2)


def _fill(strategy: Strategy, have: int, rows: int) -> None:
    for start in range(have, rows, CHUNK):
        end = min(start + CHUNK, rows)
        strategy.enqueue([Job(str(number)) for number in range(start, end)])


def _times(strategy: Strategy) -> dict[str, tuple[float, ...]]:
    ways = strategy.counts()
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(TRIES):
        for name, count in ways.items():
            began = time.perf_counter()
            count()
            times[name].append(time.perf_counter() - began)
    return {name: tuple(some) for name, some in times.items()}
