"""How fast does one worker process empty a queue of jobs that do nothing?"""

from collections.abc import Callable
from typing import Any

from rota.bench import tasks
from rota.bench.process import WorkerProcess


def drain(
    url: str, jobs: int, *, keep: bool, concurrency: int, progress: Callable[[int], None]
) -> dict[str, Any]:
    """Enqueue `jobs` jobs, then start a worker and time it until the last one is settled.

    The clock runs from the worker's first claim to the last settlement's commit; the start of the
    interpreter is not in it.
    """
    app, noop = tasks.make(url, keep=keep)
    chunk = 100_000
    for start in range(0, jobs, chunk):
        noop.enqueue_many((n,) for n in range(start, min(start + chunk, jobs)))
    app.close()
    worker = WorkerProcess(url, jobs=jobs, keep=keep, concurrency=concurrency)
    while (settled := worker.progress()) is not None:
        progress(settled)
    told = worker.wait()
    progress(told.written)
    seconds = told.ended - told.began
    return {
        "jobs": told.written,
        "seconds": round(seconds, 3),
        "rate": round(told.written / seconds),
        "completed_jobs_kept": keep,
        "concurrency": concurrency,
        "idle_memory_mb": round(told.idle_memory / 1e6, 1),
        "memory_growth_mb": round((told.peak_memory - told.idle_memory) / 1e6, 1),
    }
