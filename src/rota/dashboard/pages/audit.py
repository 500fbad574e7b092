"""What people did on the dashboard, the newest first."""

from typing import Any

from rota.dashboard.access import Access, Right
from rota.dashboard.message import Page
from rota.dashboard.routes import Call
from rota.errors import ConfigError
from rota.model.audit import KEPT, AuditRecord
from rota.model.job import possible
from rota.terminal.documents import deed_document

SHOWN = 50
"""Deeds on one page."""

OF_ARGS = {"subject", "arg"}
"""What jobs were found by that is made of args."""


def audit(call: Call) -> Page:
    """One page of deeds."""
    database = call.app.database
    found = database.run(database.store.audit.records(SHOWN, _before(call)))
    data = {
        "deeds": [shown(record, call.request.access) for record in found],
        "before": str(found[-1].id) if len(found) == SHOWN else None,
    }
    extra = {"kept": KEPT, "first": "before" not in call.request.query}
    return Page("audit.html", "Audit", data, extra)


def shown(record: AuditRecord, access: Access) -> dict[str, Any]:
    """A deed, without args for those who may not see args."""
    hidden = set() if access.may(Right.ARGS) else OF_ARGS
    return deed_document(record) | {
        "id": str(record.id),
        "what": {name: "***" if name in hidden else text for name, text in record.what.items()},
        "job": None if record.job is None else str(record.job),
    }


def _before(call: Call) -> int | None:
    text = call.request.query.get("before", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and possible(int(text))):
        message = f"before: must be the number of an action, not {text!r}"
        raise ConfigError(message)
    return int(text)
