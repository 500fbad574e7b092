"""How long after `enqueue` is called does the handler begin: worker idle, and under load?"""

import random
import time
from dataclasses import dataclass
from itertools import chain

from rota.measure.bench import tasks
from rota.measure.bench.crew import Crew, Plan
from rota.measure.bench.drain import LOOK
from rota.measure.bench.figures import distribution, percentiles, ratio
from rota.measure.bench.observer import observing
from rota.measure.bench.producer import Load, Producers
from rota.measure.bench.scratch import Scratch
from rota.measure.bench.steady import Course, Steady
from rota.measure.reports.report import Figures, Lines, Result, Series
from rota.terminal.progress import Progress

SHORTEST_GAP = 0.04
LONGEST_GAP = 0.12
"""Seconds between two jobs, at random so that no polling can fall into step with them."""

PATIENCE = 10.0
"""Seconds to wait for jobs that have not started."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The part under load.

    Attributes:
        seconds: How long; 0 leaves it out.
        rate: Jobs per second; `None` for half of what was measured right before.
        batch: Jobs per call of the producer.
        flood: Jobs for finding out the rate.
    """

    seconds: float
    rate: float | None
    batch: int
    flood: int


def latency(scratch: Scratch, jobs: int, loaded: Loaded, progress: Progress) -> Result:
    """Enqueue `jobs` jobs one at a time for an idle worker; then a steady load of many."""
    delays = {}
    figures: dict[str, Figures] = {}
    with scratch.fresh() as url:
        delays["idle"], delays["idle, after the call"] = _idle(url, jobs, progress)
    figures["idle"] = {
        "jobs": len(delays["idle"]),
        "shortest_gap_s": SHORTEST_GAP,
        "longest_gap_s": LONGEST_GAP,
        **percentiles(delays["idle"]),
    }
    figures["idle_after_call"] = {**percentiles(delays["idle, after the call"])}
    stopped_by = None
    if loaded.seconds:
        rate = loaded.rate
        if rate is None:
            with scratch.fresh() as url:
                whole = _flood(url, loaded, progress)
            rate = whole / 2
            figures["flood"] = {"jobs": loaded.flood, "rate": round(whole)}
        with scratch.fresh() as url, observing(url, scratch) as observer:
            course = Course(loaded.seconds, rate, loaded.batch)
            ran = Steady(url, course, observer, progress).run()
        stopped_by = ran.stopped_by
        found = [delay for sample in ran.samples for delay in sample.delays]
        due, sent = (
            sum(sample.due for sample in ran.samples), sum(sample.enqueued for sample in ran.samples)
        )  # fmt: skip
        figures["loaded"] = {
            "jobs": len(found),
            "batch": loaded.batch,
            "offered_rate": round(rate, 1),
            "enqueued_to_offered": ratio(sent, due),
            **percentiles(found),
        }
        if found:
            delays["under load"] = found
    series = {}
    for name, values in delays.items():
        x, y = distribution(values)
        # The slowest job would squeeze all others to the left.
        series[name] = Series("% of jobs", tuple(x[:-1]), tuple(y[:-1]), "ms")
    charts = (
        Lines("How soon jobs start: the further left and the steeper, the better",
              "milliseconds from the call of enqueue, or its return, to the start of the handler",
              "% of jobs that have started", tuple(series)),
    )  # fmt: skip
    return Result(figures=figures, series=series, charts=charts, notes=NOTES, stopped_by=stopped_by)


NOTES = (
    (
        "The clock starts before the call of enqueue, so the commit is in it, and stops in the "
        "handler; one machine, one clock. After the call: from its return, so that the time which the "
        "disk takes for a commit is not in it; below 0 where the handler began before the return."
    ),
    (
        "Under load: one producer in a process of its own, evenly spaced calls of `batch` jobs each; "
        "the jobs of a call share its moment. Without --rate the load is half of the rate at which "
        "the same producer, unpaced, and the same worker got a number of jobs enqueued and settled "
        "right before. The first two seconds are left out."
    ),
)


def _idle(url: str, jobs: int, progress: Progress) -> tuple[list[float], list[float]]:
    """Seconds to the start of each handler: from the call of `enqueue`, and from its return."""
    progress.begin("worker idle", jobs)
    app = tasks.open_app(url)
    returned: dict[float, float] = {}
    starts: dict[float, float] = {}
    with Crew(Plan(url)) as crew:
        crew.go()
        tasks.stamp.enqueue(0.0)  # opens the connection
        for n in range(jobs):
            time.sleep(random.uniform(SHORTEST_GAP, LONGEST_GAP))  # noqa: S311 - no secret
            called = time.time()
            tasks.stamp.enqueue(called)
            returned[called] = time.time()
            progress.at(n + 1)
        deadline = time.time() + PATIENCE
        while len(starts) < jobs and time.time() < deadline:
            time.sleep(LOOK)
            for called, at in chain.from_iterable(report.starts for report in crew.tell()):
                if called:
                    starts.setdefault(called, at)
        crew.stop()
    app.close()
    from_call = [at - called for called, at in starts.items()]
    return from_call, [at - returned[called] for called, at in starts.items()]


def _flood(url: str, loaded: Loaded, progress: Progress) -> float:
    """Jobs per second that one producer, unpaced, enqueues and one worker runs."""
    # Rounded up to whole batches, as the producer does.
    jobs = -(-loaded.flood // loaded.batch) * loaded.batch
    progress.begin("find out the rate", jobs)
    with Crew(Plan(url)) as crew, Producers(Load(url, None, loaded.batch, jobs)) as producers:
        crew.go()
        producers.go()
        settled, ended = 0, 0.0
        while settled < jobs:
            time.sleep(LOOK)
            for report in crew.tell():
                settled += report.settled
                ended = max([ended, *(at for at, _ in report.settlements)])
            progress.at(settled)
        [sent] = producers.stop()
        crew.stop()
    return jobs / (ended - sent.began)
