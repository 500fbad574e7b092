"""Jobs by state, queue, task and key; each view is a link."""

import re
from dataclasses import replace

from rota.app.app import Rota
from rota.app.job_filter import job_filter
from rota.dashboard import shown
from rota.dashboard.access import Right
from rota.dashboard.listing import BOUND, listing
from rota.dashboard.message import Page, Refused
from rota.dashboard.routes import Call, fields
from rota.errors import ConfigError
from rota.model.job import Arg, JobId, possible
from rota.model.states import State

NAMES = 200
"""Names of queues that the form offers."""

ARG = re.compile(r"(?P<path>[\w-]+(?:\.[\w-]+)*)=(?P<value>[^\0]*)", re.DOTALL)
"""An arg and its value in the form: names inside of it have dots between them."""


def jobs(call: Call) -> Page:
    """One page of jobs, the newest first."""
    asked = fields(call.request.query, "state", "queue", "task", "subject", "arg")
    if (asked["subject"] or asked["arg"]) and not call.request.access.may(Right.ARGS):
        message = "To find jobs by their args, or by keys, which are made of args, needs the right “args”."
        raise Refused(message)
    known = {name: text for name, text in asked.items() if text and name != "arg"}
    wanted = replace(job_filter(known), arg=_arg(call.app, asked["arg"]))  # type: ignore[arg-type]
    found = listing(call.app.database, wanted, _before(call))
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
    }
    return Page("jobs.html", "Jobs", data, extra)


def _arg(app: Rota, text: str) -> Arg | None:
    """Which arg has which value, such as `order.id=42`.

    Raises:
        ConfigError: It cannot be read.
        Refused: A task hides that arg.
    """
    if not text:
        return None
    found = ARG.fullmatch(text)
    if found is None:
        message = f"arg: name=value is needed, such as order_id=42 or user.name=ada, not {text!r}"
        raise ConfigError(message)
    path = tuple(found["path"].split("."))
    if any(path[0] in task.redact for task in app.tasks.values()):
        message = f"The arg {path[0]} is hidden, so no job is found by it."
        raise Refused(message)
    return Arg(path, found["value"].strip())


def _before(call: Call) -> JobId | None:
    """Below which id the page begins.

    Raises:
        ConfigError: It is no id.
    """
    text = call.request.query.get("before", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and possible(int(text))):
        message = f"before: the id of a job is needed, not {text!r}"
        raise ConfigError(message)
    return JobId(int(text))


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
