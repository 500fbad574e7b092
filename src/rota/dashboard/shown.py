"""Jobs and queues as plain data: what templates show and JSON has.

Ids are texts: JavaScript's numbers are too short.
"""

from collections.abc import Collection
from typing import Any

import msgspec

from rota.app.app import Rota
from rota.dashboard.access import Access, Right
from rota.model.flow import NEEDS, WANTED
from rota.model.headers import NODE
from rota.model.job import JobRecord
from rota.model.redaction import redacted_args, shown_args
from rota.model.states import State
from rota.terminal import documents
from rota.terminal.notes import note
from rota.top.queues import QueueRow

OF_FLOWS = {NODE, WANTED, NEEDS}
"""Headers by which a job belongs to a flow, which a page says in its own words."""

LONGEST_NOTE = 120
"""Characters of an error in a table."""


def in_list(job: JobRecord, access: Access) -> dict[str, Any]:
    """A job in a table."""
    key = job.unique_key if access.may(Right.ARGS) else None
    return documents.summary(job) | {
        "id": str(job.id),
        "note": note(job, LONGEST_NOTE),
        "unique_key": key,
    }


def in_full(job: JobRecord, app: Rota, access: Access) -> dict[str, Any]:
    """Everything about a job, but for what the request may not see."""
    known = documents.details(job) | {"id": str(job.id), "note": note(job, LONGEST_NOTE)}
    known["log"] = [
        {
            "at": line.at,
            "level": line.level,
            "message": line.message,
            "attempt": line.attempt,
            "number": line.number,
        }
        for line in job.log
    ]
    known["headers"] = {
        name: text for name, text in known["headers"].items() if name not in OF_FLOWS
    }
    if access.may(Right.ARGS):
        return known | {"args": _raw(redacted_args(shown_args(job), secrets(app, job.task)))}
    return known | {"args": None, "result": None, "headers": {}, "unique_key": None}


def secrets(app: Rota, task: str) -> Collection[str]:
    """The args that a task of this app declares as hidden; none of a task that it does not know."""
    known = app.tasks.get(task)
    return () if known is None else known.redact


def of_queue(row: QueueRow) -> dict[str, Any]:
    """A queue in a table."""
    return {
        "name": row.name,
        "paused": row.paused,
        "jobs": {state.value: row.counts.get(state, 0) for state in State},
        "in_per_second": row.rates.appended if row.rates else None,
        "out_per_second": row.rates.claimed if row.rates else None,
        "oldest_seconds": row.oldest,
        "served": row.served,
        "waits_in_vain": row.waits_in_vain,
        "course": list(row.course),
    }


def _raw(text: str) -> msgspec.Raw:
    return msgspec.Raw(text.encode())
