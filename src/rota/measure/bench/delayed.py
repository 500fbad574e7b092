"""How late do delayed jobs start, and how many per second can be staged?"""

import time
from datetime import UTC, datetime

from rota.measure.bench import tasks
from rota.measure.bench.crew import Crew, Plan, Told
from rota.measure.bench.drain import LOOK
from rota.measure.bench.figures import Step, distribution, percentiles
from rota.measure.bench.scratch import Scratch
from rota.measure.reports.report import Lines, Result, Series
from rota.terminal.progress import Progress

STEPS_PER_SECOND = 10
"""Due times of the jobs: jobs of the same tenth of a second are due at the same moment."""

LEAD = 1.0
"""Seconds from the last enqueue to the first due time, at least."""

PATIENCE = 60.0
"""Seconds after the last due time in which all jobs must have been settled."""


def delayed(
    scratch: Scratch, *, jobs: int, seconds: float, burst: int, progress: Progress
) -> Result:
    """Jobs that become due evenly over some seconds; then `burst` jobs that are due at once."""
    with scratch.fresh() as url:
        spread = _run(url, jobs, seconds, progress)
    figures: dict[str, dict[str, float | int | None]] = {
        "spread": {
            "jobs": jobs,
            "seconds": seconds,
            "started": len(spread.lateness),
            "enqueue_rate": round(jobs / spread.enqueueing),
            **{f"lateness_{name}": value for name, value in percentiles(spread.lateness).items()},
        }
    }
    x, y = distribution(spread.lateness)
    at, rate = spread.per_second()
    series = {
        "lateness": Series("% of jobs", tuple(x[:-1]), tuple(y[:-1]), "ms"),
        "settled": Series("jobs/s", at, rate),
    }
    if burst:
        with scratch.fresh() as url:
            once = _run(url, burst, 0.0, progress)
        took = max(at for at, _ in once.settlements) - once.due
        figures["burst"] = {
            "jobs": burst,
            "started": len(once.lateness),
            "seconds": round(took, 3),
            "staging_rate": round(burst / took),
            "first_started_after_ms": round(min(once.lateness) * 1000, 3),
        }
    charts = (
        Lines("How late jobs start: the further left and the steeper, the better",
              "milliseconds after the job's time", "% of jobs that have started", ("lateness",)),
        Lines("Jobs run as they become due", "seconds since the first job was due",
              "jobs per second", ("settled",)),
    )  # fmt: skip
    return Result(figures=figures, series=series, charts=charts, notes=NOTES)


NOTES = (
    (
        "lateness: the start of the handler minus the job's time, by this machine's clock; the "
        "database uses its own clock, so with a server elsewhere the difference of the clocks is in it."
    ),
    (
        "staging_rate: jobs that are all due at one moment, divided by the time from then until the "
        "last job is settled: staged, claimed, run and settled by one worker."
    ),
)


class _Run:
    def __init__(self, due: float, enqueueing: float, told: list[Told]) -> None:
        self.due = due
        self.enqueueing = enqueueing
        self.settlements: list[Step] = [step for report in told for step in report.settlements]
        self.lateness = [at - key for report in told for key, at in report.starts]

    def per_second(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Seconds since the first job was due, and the jobs settled in each."""
        counts: dict[int, int] = {}
        for at, count in self.settlements:
            second = max(0, int(at - self.due))
            counts[second] = counts.get(second, 0) + count
        seconds = range(max(counts, default=0) + 1)
        return tuple(second + 0.5 for second in seconds), tuple(
            counts.get(second, 0) for second in seconds
        )


def _run(url: str, jobs: int, seconds: float, progress: Progress) -> _Run:
    steps = max(1, min(jobs, round(seconds * STEPS_PER_SECOND)))
    progress.begin("enqueue delayed jobs", jobs)
    app = tasks.open_app(url)
    # Enqueueing must be over before the first job is due; how long it takes can only be guessed.
    lead = LEAD + jobs / 20_000 + steps * 0.005
    due = time.time() + lead
    began = time.perf_counter()
    each, more = divmod(jobs, steps)
    done = 0
    for step in range(steps):
        at = due + step * seconds / steps
        count = each + (step < more)
        later = tasks.stamp.using(at=datetime.fromtimestamp(at, UTC))
        later.enqueue_many([(at,)] * count)
        done += count
        progress.at(done)
    enqueueing = time.perf_counter() - began
    app.close()
    progress.begin("wait for their time", jobs)
    told: list[Told] = []
    with Crew(Plan(url)) as crew:
        crew.go()
        settled, deadline = 0, due + seconds + PATIENCE
        while settled < jobs and time.time() < deadline:
            time.sleep(LOOK)
            told += (news := crew.tell())
            settled += sum(report.settled for report in news)
            progress.at(settled)
        told += crew.stop()
    return _Run(due, enqueueing, told)
