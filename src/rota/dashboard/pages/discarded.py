"""Discarded jobs, those together that failed in the same way."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rota.app.job_filter import job_filter
from rota.dashboard.listing import newest
from rota.dashboard.message import Page
from rota.dashboard.pages.many import offered
from rota.dashboard.routes import Call, fields
from rota.model.cause import cause, exception, frame
from rota.model.job import JobRecord
from rota.model.states import State

BOUND = 1_000
"""Jobs that are grouped: the newest."""

LOOKED_AT = 10_000
"""Jobs among which they are found."""


def discarded(call: Call) -> Page:
    """Groups by task, exception and frame, the largest first."""
    asked = fields(call.request.query, "queue")
    wanted = {"state": State.DISCARDED, "queue": asked["queue"] or None}
    page = replace(job_filter(wanted), limit=BOUND)  # type: ignore[arg-type]  # what a listing takes
    jobs, _ = newest(call.app.database, page, LOOKED_AT)
    total = sum(
        row.counts.get(State.DISCARDED, 0)
        for row in call.looks.now().rows
        if asked["queue"] in {"", row.name}
    )
    data = {"groups": groups(jobs), "jobs": len(jobs), "total": total}
    extra = {"asked": asked, "bound": BOUND, "acts": offered(call.request.access, State.DISCARDED)}
    return Page("discarded.html", "Discarded", data, extra)


def groups(jobs: Iterable[JobRecord]) -> list[dict[str, Any]]:
    """The groups of these jobs, which come the newest first."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for job in jobs:
        last = job.errors[-1] if job.errors else None
        key = job.task, cause(job)
        group = found.get(key)
        if group is None:
            group = found[key] = {
                "task": job.task, "exception": "" if last is None else exception(last),
                "frame": "" if last is None else frame(last.traceback), "cause": key[1], "jobs": 0,
                "message": "" if last is None else last.message[:300], "newest": str(job.id),
                "last": job.finished_at, "first": job.finished_at, "queues": [],
            }  # fmt: skip
        group["jobs"] += 1
        group["first"] = job.finished_at
        if job.queue not in group["queues"]:
            group["queues"].append(job.queue)
    return sorted(found.values(), key=lambda group: -group["jobs"])
