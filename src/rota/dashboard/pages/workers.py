"""The workers, and what runs in each of them."""

from typing import Any

from rota.dashboard.message import Page
from rota.dashboard.routes import Call
from rota.model.worker_record import WorkerRecord

JOBS = 20
"""Jobs that are shown of a worker."""


def workers(call: Call) -> Page:
    """The workers that have not stopped."""
    found = [_shown(worker) for worker in call.app.admin.workers(jobs=JOBS)]
    return Page("workers.html", "Workers", {"workers": found})


def _shown(worker: WorkerRecord) -> dict[str, Any]:
    return {
        "session": str(worker.id),
        "host": worker.host,
        "pid": worker.pid,
        "alive": worker.alive,
        "queues": list(worker.queues),
        "since": worker.since,
        "silent_seconds": worker.silent,
        "held": worker.held,
        "jobs": [
            {
                "id": str(job.id),
                "task": job.task,
                "queue": job.queue,
                "attempt": job.attempt,
                "since": job.since,
            }
            for job in worker.jobs
        ],
    }
