"""The workers, and what runs in each of them."""

from datetime import UTC, datetime
from typing import Any

from rota.app.admin import worker_records
from rota.dashboard.message import Page
from rota.dashboard.routes import Call, fields
from rota.model.job import SessionId
from rota.model.worker_record import WorkerRecord

JOBS = 20
"""Jobs that are shown of a worker."""


SHOWN = 50
"""Workers on one page."""


def workers(call: Call) -> Page:
    """The workers that have not stopped, in order of arrival, from the one that follows `after`."""
    asked = fields(call.request.query, "after")
    database = call.app.database
    sessions = database.run(database.store.workers())
    after = int(asked["after"]) if asked["after"].isdecimal() else 0
    rest = [session for session in sessions if session.id > after]
    page, more = rest[:SHOWN], max(len(rest) - SHOWN, 0)
    held = database.run(database.store.held(JOBS, [SessionId(session.id) for session in page]))
    data = {
        "workers": [_shown(worker) for worker in worker_records(page, held, datetime.now(UTC))],
        "all": len(sessions),
        "after": str(page[-1].id) if more else None,
    }
    return Page("workers.html", "Workers", data, {"more": more})


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
