"""How many handlers a second run on a cluster, beside the bare engine's own tasks for the same calls?"""

import time
from collections.abc import Iterable

from rota.measure.bench import tasks
from rota.measure.bench.clusters import NODES, Cluster, cluster
from rota.measure.bench.crew import Crew, Plan
from rota.measure.bench.drain import run_dry, steps_of_workers
from rota.measure.bench.figures import ratio
from rota.measure.bench.scratch import Scratch
from rota.measure.reports.report import Bars, Figures, Result
from rota.terminal.progress import Progress
from rota.worker.executors.cluster import MOST, SPAN

LONGEST = 5.0
"""Seconds that a run's handlers alone take at the most; if need be, there are fewer jobs."""

ALONE = 2000
"""So many calls are made by a task each at the most: that takes long, and more have the same rate."""

WARM_UP = 20
"""Calls for which the engine starts its processes before it is measured."""

NOTE = (
    "All run on a cluster of two processes on this machine, which they share with the worker, the engine's own processes "
    "and the database, in turns. The bare engine's rates are those of calls that are submitted together, until the last "
    "result is there: one task for each call, of which there are up to 2,000, and one for as many calls as a bundle of Rota's has; nothing is stored. "
    "Rota's is that of jobs that are there already: from the first settlement to the last one's commit."
)


def spread(
    scratch: Scratch,
    engines: Iterable[str],
    *,
    jobs: int,
    takes: Iterable[float],
    turns: int,
    progress: Progress,
) -> Result:
    """Make calls of so many milliseconds by bare tasks and Rota's jobs on one cluster, in turns."""
    runs: dict[str, Figures] = {}
    bars: dict[str, dict[str, float]] = {"bare engine": {}, "bare, in bundles": {}, "Rota": {}}
    every = [one / 1000 for one in takes]
    for engine in engines:
        with cluster(engine) as there:
            there.bare([[0.0]] * WARM_UP)
            for seconds in every:
                name = f"{engine}, {1000 * seconds:g} ms"
                count = min(jobs, int(LONGEST * NODES / seconds)) if seconds else jobs
                size = min(MOST, max(1, int(SPAN / seconds))) if seconds else MOST
                for turn in range(1, turns + 1):
                    bare = _bare(there, seconds, min(count, ALONE), 1, progress)
                    bundled = _bare(there, seconds, count, size, progress)
                    rate = _rota(scratch, there, seconds, count, progress)
                    runs[f"{name}, turn {turn}"] = {
                        "jobs": count,
                        "bare_rate": bare,
                        "bundled_rate": bundled,
                        "rate": rate,
                        "ratio_to_bare": ratio(rate, bare),
                        "ratio_to_bundled": ratio(rate, bundled),
                    }
                    for kind, found in zip(bars, (bare, bundled, rate), strict=True):
                        bars[kind][name] = max(bars[kind].get(name, 0.0), found)
    chart = Bars("Calls on a cluster: the best turns", "calls per second", bars)
    return Result(figures={"runs": runs}, charts=(chart,), notes=(NOTE,))


def _bare(there: Cluster, seconds: float, jobs: int, size: int, progress: Progress) -> int:
    """The engine's own rate, with so many calls in a task."""
    progress.begin(f"bare {there.engine}, {size} in a task", jobs)
    bundles = [[seconds] * min(size, jobs - first) for first in range(0, jobs, size)]
    began = time.perf_counter()
    there.bare(bundles)
    elapsed = time.perf_counter() - began
    progress.at(jobs)
    return round(jobs / elapsed)


def _rota(scratch: Scratch, there: Cluster, seconds: float, jobs: int, progress: Progress) -> int:
    """The rate of Rota's jobs."""
    with scratch.fresh() as url:
        app = tasks.open_app(url)
        task = {"dask": tasks.take_on_dask, "ray": tasks.take_on_ray}[there.engine]
        task.enqueue_many((seconds,) for _ in range(jobs))
        app.close()
        with Crew(Plan(url, clusters=((there.engine, there.address),))) as crew:
            told = run_dry(crew, jobs, f"Rota on {there.engine}", progress)
            told += crew.stop()
    steps = sorted(step for _, every in steps_of_workers(told) for step in every)
    began, first = steps[0]
    return round((jobs - first) / max(steps[-1][0] - began, 1e-6))
