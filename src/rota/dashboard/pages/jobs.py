"""Jobs by state, queue, task and key; each view is a link."""

from rota.dashboard import shown
from rota.dashboard.listing import BOUND, listing
from rota.dashboard.message import Page
from rota.dashboard.pages.many import matched, offered
from rota.dashboard.routes import Call, before, fields
from rota.model.job import JobId
from rota.model.states import State

NAMES = 200
"""Names of queues that the form offers."""


def jobs(call: Call) -> Page:
    """One page of jobs, the newest first."""
    asked = fields(call.request.query, "state", "queue", "task", "subject", "arg")
    wanted = matched(call, asked).wanted
    below = before(call, "job")
    found = listing(call.app.database, wanted, None if below is None else JobId(below))
    data = {
        "jobs": [shown.in_list(job, call.request.access) for job in found.jobs],
        "before": None if found.further is None else str(found.further),
    }
    seen = call.looks.now()
    extra = {
        "asked": asked,
        "states": [state.value for state in State],
        "names": [row.name for row in seen.rows[:NAMES]],
        "total": _total(call, asked),
        "bound": BOUND,
        "full": found.full,
        "first": "before" not in call.request.query,
        "acts": offered(call.request.access, wanted.state),
        "found_by": {name: text for name, text in asked.items() if text},
    }
    return Page("jobs.html", "Jobs", data, extra)


def _total(call: Call, asked: dict[str, str]) -> int | None:
    """How many such jobs the counters know; `None` where they do not tell."""
    if asked["task"] or asked["subject"] or asked["arg"]:
        return None
    return sum(
        jobs
        for row in call.looks.now().rows
        if asked["queue"] in {"", row.name}
        for state, jobs in row.counts.items()
        if asked["state"] in {"", state.value}
    )
