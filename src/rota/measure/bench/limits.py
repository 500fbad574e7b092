"""What do limits cost, with many keys, and with a snapshot held?"""

import time
from collections.abc import Sequence
from contextlib import ExitStack

from rota.measure.bench import tasks
from rota.measure.bench.crew import Crew, Plan
from rota.measure.bench.drain import run_dry
from rota.measure.bench.figures import ratio
from rota.measure.bench.holder import held as holding
from rota.measure.bench.scratch import Scratch
from rota.measure.reports.report import Bars, Figures, Result
from rota.model.limit import Limit
from rota.terminal.progress import Progress

CHUNK = 20_000
"""Jobs in one `enqueue_many`."""


def limits(
    scratch: Scratch,
    *,
    jobs: int,
    keys: int,
    running: int,
    workers: int,
    held: Sequence[bool],
    progress: Progress,
) -> Result:
    """Drain the same jobs without a limit and with one, each on a database of its own."""
    runs: dict[str, Figures] = {}
    rates: dict[str, float] = {}
    limit = Limit("bench:{key}", running=running)
    for hold in held:
        words = ", held" if hold else ""
        for name, used in ((f"unlimited{words}", None), (f"limited{words}", limit)):
            with ExitStack() as stack:
                url = stack.enter_context(scratch.fresh())
                if hold:
                    stack.enter_context(holding(url))
                rates[name], enqueued = _run(url, name, used, (jobs, keys, workers), progress)
            base = rates[f"unlimited{words}"]
            runs[name] = {
                "rate": round(rates[name]),
                "enqueue_rate": round(enqueued),
                "ratio_to_unlimited": ratio(rates[name], base),
            }
    figures: Figures = {
        "jobs": jobs,
        "keys": keys,
        "running": running,
        "workers": workers,
        "runs": runs,
    }
    chart = Bars("Throughput with a limit and without", "jobs per second", {"rate": rates})
    return Result(figures=figures, series={}, charts=(chart,), notes=NOTES)


NOTES = (
    (
        "rate: jobs / seconds from the first worker's session to the last settlement's commit. The "
        "unlimited jobs have the same task and the same args."
    ),
)


def _run(
    url: str, name: str, limit: Limit | None, size: tuple[int, int, int], progress: Progress
) -> tuple[float, float]:
    """Jobs settled per second, and jobs enqueued per second."""
    jobs, keys, workers = size
    app = tasks.open_app(url)
    task = tasks.keyed.using(limit=limit)
    progress.begin(f"enqueue: {name}", jobs)
    began = time.perf_counter()
    for start in range(0, jobs, CHUNK):
        end = min(start + CHUNK, jobs)
        task.enqueue_many((number % keys,) for number in range(start, end))
        progress.at(end)
    enqueued = jobs / (time.perf_counter() - began)
    app.close()
    with Crew(Plan(url), workers) as crew:
        told = run_dry(crew, jobs, f"drain: {name}", progress)
        told += crew.stop()
    first = min(report.began for report in told)
    last = max(at for report in told for at, _ in report.settlements)
    return jobs / (last - first), enqueued
