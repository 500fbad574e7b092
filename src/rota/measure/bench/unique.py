"""How fast does `enqueue_many` store unique jobs where half of the keys are taken?"""

import time

from rota.measure.bench import tasks
from rota.measure.bench.enqueue import many
from rota.measure.bench.figures import ratio
from rota.measure.bench.scratch import Scratch
from rota.measure.reports.report import Bars, Figures, Result
from rota.model.unique import Unique
from rota.terminal.progress import Progress

KINDS = ("skip", "replace")


def unique(scratch: Scratch, *, jobs: int, progress: Progress) -> Result:
    """One `enqueue_many` for each kind of conflict, next to one for jobs without keys.

    Args:
        scratch: Where to make the databases.
        jobs: How many jobs a call has; half of the keys have a job that waits.
        progress: Shows how far it is.
    """
    figures: dict[str, Figures] = {}
    rates: dict[str, float] = {}
    with scratch.fresh() as url:
        rates["no keys"] = many(url, jobs, progress)["rate"]
        figures["no_keys"] = {"jobs": jobs, "rate": rates["no keys"]}
    for kind in KINDS:
        with scratch.fresh() as url:
            found = _conflicting(url, jobs, kind, progress)
        rates[kind] = float(found["rate"])
        figures[kind] = {**found, "ratio_to_no_keys": ratio(rates[kind], rates["no keys"])}
    chart = Bars("enqueue_many, half of the keys taken", "jobs per second", {"": rates})
    return Result(figures=figures, charts=(chart,), notes=NOTES)


NOTES = (
    (
        "Every second key has a job that waits, enqueued before and not timed. rate counts all jobs "
        "of the call, the skipped ones too. ratio_to_no_keys is the ratio to the rate of jobs without "
        "keys, in a database of their own in the same run."
    ),
)


def _conflicting(url: str, jobs: int, kind: str, progress: Progress) -> dict[str, int | float]:
    progress.begin(kind, jobs)
    app = tasks.open_app(url)
    task = tasks.noop.using(unique=Unique(by=("n",), on_conflict=kind))
    many = [(n,) for n in range(jobs)]
    # The first calls open connections and prepare statements, for created and for met jobs.
    for _ in range(2):
        task.enqueue_many([(-n,) for n in range(1, 1001)])
    task.enqueue_many(many[::2])
    progress.at(jobs / 2)
    began = time.perf_counter()
    enqueued = task.enqueue_many(many)
    seconds = time.perf_counter() - began
    progress.at(jobs)
    app.close()
    return {
        "jobs": jobs,
        "created": len(enqueued.created),
        "replaced": len(enqueued.replaced),
        "skipped": len(enqueued.skipped),
        "seconds": round(seconds, 3),
        "rate": round(jobs / seconds),
    }
