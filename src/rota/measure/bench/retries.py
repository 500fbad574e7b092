"""What do failing jobs cost, and how late do they come back?"""

from collections import defaultdict

from rota.measure.bench import tasks
from rota.measure.bench.crew import Crew, Plan, Told
from rota.measure.bench.drain import run_dry
from rota.measure.bench.figures import distribution, percentiles, ratio
from rota.measure.bench.scratch import Scratch
from rota.measure.reports.report import Bars, Lines, Result, Series
from rota.terminal.progress import Progress


def retries(
    scratch: Scratch, *, jobs: int, share: float, failures: int, progress: Progress
) -> Result:
    """Drain jobs of which a share fails some times, next to jobs that do not fail."""
    with scratch.fresh() as url:
        plain = _run(url, jobs, 0, 0, progress)
    failing = round(jobs * share)
    with scratch.fresh() as url:
        failed = _run(url, jobs, failing, failures, progress)
    attempts: dict[int, dict[int, float]] = defaultdict(dict)
    for report in failed:
        for key, at in report.starts:
            number = int(key)
            attempts[number][round((key - number) * 1000)] = at
    lateness = [
        at - starts[attempt - 1] - tasks.RETRY_DELAY
        for starts in attempts.values()
        for attempt, at in starts.items()
        if attempt - 1 in starts
    ]
    made = sum(len(starts) for starts in attempts.values())
    rates = {"none fail": _rate(plain), f"{share:.0%} fail {failures} times": _rate(failed)}
    before, after = rates.values()
    figures = {
        "jobs": jobs,
        "jobs_that_fail": failing,
        "failures_of_each": failures,
        "delay_s": tasks.RETRY_DELAY,
        "jobs_started": len(attempts),
        "attempts": made,
        "attempts_expected": jobs + failing * failures,
        "rate_none_fail": round(before),
        "rate": round(after),
        "ratio_to_none_fail": ratio(after, before),
        **{f"lateness_{name}": value for name, value in percentiles(lateness).items()},
    }
    series: dict[str, Series] = {}
    charts: list[Lines | Bars] = [Bars("Attempts per second", "attempts per second", {"": rates})]
    if lateness:
        x, y = distribution(lateness)
        series["lateness of retries"] = Series("% of jobs", tuple(x[:-1]), tuple(y[:-1]), "ms")
        charts.append(
            Lines("How late retries start: the further left and the steeper, the better",
                  "milliseconds after the delay", "% of retries that have started",
                  tuple(series))
        )  # fmt: skip
    return Result(figures=figures, series=series, charts=tuple(charts), notes=NOTES)


NOTES = (
    (
        "rate: attempts (settlements) per second of busy time; pauses of more than half of the delay, "
        "in which all jobs that are left wait for their time, are left out."
    ),
    (
        "lateness: the start of an attempt minus the start of the attempt before minus the delay; it "
        "holds the failed attempt itself, its settlement, and the staging."
    ),
)


def _run(url: str, jobs: int, failing: int, failures: int, progress: Progress) -> list[Told]:
    app = tasks.open_app(url)
    # Failing jobs are spread evenly among the others.
    fails = {n * jobs // failing for n in range(failing)} if failing else set()
    for start in range(0, jobs, 100_000):
        numbers = range(start, min(start + 100_000, jobs))
        tasks.flaky.enqueue_many((n, failures if n in fails else 0) for n in numbers)
    app.close()
    with Crew(Plan(url)) as crew:
        # Each failed attempt is settled too.
        told = run_dry(crew, jobs + failing * failures, "drain with retries", progress)
        return told + crew.stop()


def _rate(told: list[Told]) -> float:
    steps = sorted(step for report in told for step in report.settlements)
    before, busy = min(report.began for report in told), 0.0
    for at, _ in steps:
        if at - before < tasks.RETRY_DELAY / 2:
            busy += at - before
        before = at
    return round(sum(count for _, count in steps) / max(busy, 1e-6), 1)
