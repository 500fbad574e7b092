"""What do more workers and more lanes bring, and what do they cost while idle?"""

from collections.abc import Sequence

from rota.measure.bench.crew import Crew, Plan, workers_of
from rota.measure.bench.drain import run_dry
from rota.measure.bench.figures import ratio
from rota.measure.bench.idle import watch
from rota.measure.bench.lanes import Lanes
from rota.measure.bench.observer import observing
from rota.measure.bench.scratch import Scratch
from rota.measure.bench.steady import ENDING, STARTING
from rota.measure.reports.report import Bars, Figures, Result
from rota.terminal.progress import Progress


def scale(
    scratch: Scratch,
    *,
    workers: Sequence[int],
    lanes: Sequence[int],
    jobs: int,
    idle_seconds: float,
    rest: float,
    progress: Progress,
) -> Result:
    """Drain jobs with each number of workers over each number of lanes; then watch them idle."""
    rates: dict[str, dict[str, float]] = {}
    calls: dict[str, dict[str, float]] = {}
    runs: dict[str, Figures] = {}
    progress.expect(expected(workers, lanes, jobs, idle_seconds, rest))
    for count in lanes:
        spread = Lanes(count)
        for size in workers:
            run = _run(scratch, spread, size, jobs, (idle_seconds, rest), progress)
            group, label = f"{count:,} lanes" if count > 1 else "1 lane", workers_of(size)
            first = rates.setdefault(group, {})
            first[label] = float(run["rate"] or 0)
            run["ratio_to_fewest_workers"] = ratio(first[label], next(iter(first.values())))
            transactions = run.get("transactions_per_second")
            if transactions is not None:
                calls.setdefault(group, {})[label] = float(transactions)
            runs[f"{group}, {label}"] = dict(run)
    charts = [Bars("Throughput by workers and lanes", "jobs per second", rates)]
    if calls:
        charts.append(Bars("What idle workers ask the database", "transactions per second", calls))
    return Result(figures={"runs": runs}, charts=tuple(charts), notes=NOTES)


JOB, LANE = 0.0003, 0.005
"""Seconds that a job, and a lane, take; rough, for the estimate."""


def expected(
    workers: Sequence[int], lanes: Sequence[int], jobs: int, idle_seconds: float, rest: float
) -> float:
    """About how many seconds it takes: every number of workers over every number of lanes."""
    watched = rest + idle_seconds if idle_seconds else 0.0
    return sum(
        jobs * JOB + count * LANE + size * STARTING + ENDING + watched
        for count in lanes
        for size in workers
    )


NOTES = (
    (
        "Workers are processes of their own. A lane is one queue at one priority; lanes are spread over "
        "up to 32 queues, beyond that each queue has several priorities. The same workers are then "
        "watched while they idle, as `rota bench idle` does."
    ),
)


def _run(  # noqa: PLR0917 - its caller is above
    scratch: Scratch,
    lanes: Lanes,
    workers: int,
    jobs: int,
    idle: tuple[float, float],
    progress: Progress,
) -> dict[str, float | int | None]:
    with scratch.fresh() as url, observing(url, scratch) as observer:
        lanes.fill(url, jobs, progress)
        what = f"drain: {len(lanes.pairs):,} lanes, {workers_of(workers)}"
        with Crew(Plan(url, queues=lanes.queues), workers) as crew:
            told = run_dry(crew, jobs, what, progress)
            seconds, rest = idle
            found = watch(crew, observer, seconds, rest, progress) if seconds else {}
            crew.stop()
    steps = [step for report in told for step in report.settlements]
    took = max(at for at, _ in steps) - min(report.began for report in told)
    return {
        "jobs": sum(count for _, count in steps),
        "seconds": round(took, 3),
        "rate": round(jobs / took),
        # Each look gave one answer per worker, always in the same order.
        "least_busy_worker_jobs": min(
            sum(report.settled for report in told[n::workers]) for n in range(workers)
        ),
        **found,
    }
