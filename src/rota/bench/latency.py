"""How long after `enqueue` is called does the handler begin, if the worker has nothing to do?"""

import random
import time
from collections.abc import Callable
from typing import Any

from rota.bench import tasks
from rota.bench.process import WorkerProcess
from rota.bench.report import percentiles

SHORTEST_GAP = 0.04
LONGEST_GAP = 0.12
"""Seconds between two jobs, drawn at random so that no polling can fall into step with them."""


def latency(url: str, jobs: int, *, progress: Callable[[int], None]) -> dict[str, Any]:
    """Enqueue `jobs` jobs one at a time for an idle worker in another process.

    The clock starts before the call of `enqueue`, so the commit is in it.
    """
    app, _ = tasks.make(url)
    stamp = app.find_task("bench.stamp")
    worker = WorkerProcess(url, jobs=jobs + 1, keep=True)
    stamp.enqueue(-1)
    called: dict[int, float] = {}
    for n in range(jobs):
        time.sleep(random.uniform(SHORTEST_GAP, LONGEST_GAP))  # noqa: S311 - no secret
        called[n] = time.time()
        stamp.enqueue(n)
        progress(n + 1)
    told = worker.wait()
    app.close()
    return {
        "jobs": jobs,
        "seconds_between_jobs": [SHORTEST_GAP, LONGEST_GAP],
        **percentiles([told.started[n] - called[n] for n in called]),
    }
