"""Does a worker, or the database, grow under a steady load that goes on for long?"""

from rota.measure.bench.figures import growth, percentiles
from rota.measure.bench.hold import dead_rows
from rota.measure.bench.observer import observing
from rota.measure.bench.scratch import Scratch
from rota.measure.bench.steady import Course, Steady, arrivals, series
from rota.measure.reports.report import Figures, Lines, Result
from rota.terminal.progress import Progress


def soak(scratch: Scratch, course: Course, progress: Progress) -> Result:
    """Run the load; compare memory, disk and depth of its first quarter with its last."""
    with scratch.fresh() as url, observing(url, scratch) as observer:
        before = observer.tables()
        ran = Steady(url, course, observer, progress).run()
        after = observer.tables()
    samples = ran.samples
    figures: dict[str, Figures] = {
        "load": arrivals(ran),
        "growth": {
            "workers_memory_mb": growth([sample.memory / 1e6 for sample in samples]),
            "tables_mb": growth([sample.tables.bytes / 1e6 for sample in samples]),
            "depth": growth([sample.depth for sample in samples]),
        },
        "latency": percentiles(delay for sample in samples for delay in sample.delays),
        **dead_rows(before, after, after, ran),
    }
    time = "seconds since the load began"
    sizes = ("size of all tables", "size of the job log")
    charts = (
        Lines("Memory levels off", time, "megabytes", ("workers' memory",)),
        Lines("The tables grow and shrink, and do not only grow", time, "megabytes",
              sizes if scratch.postgres else sizes[:1]),
        Lines("No backlog grows", time, "jobs enqueued and not settled", ("depth",)),
        Lines("Throughput stays where the producer puts it", time, "jobs per second",
              ("offered", "completed")),
        Lines("Jobs start as soon at the end as at the beginning", time,
              "milliseconds from enqueue to start", ("latency p50", "latency p95")),
    )  # fmt: skip
    return Result(
        figures=figures, series=series(samples), charts=charts, notes=NOTES,
        stopped_by=ran.stopped_by,
    )  # fmt: skip


NOTES = (
    (
        "growth: the median of the samples in the first quarter and in the last. Kept jobs are meant "
        "to take space; without --keep none are kept."
    ),
)
