"""The limits in use: what each allows, and what of that is taken."""

from rota.dashboard.message import Page
from rota.dashboard.routes import Call, fields
from rota.terminal.documents import limit_document

SHOWN = 100
"""Limits on one page."""


def limits(call: Call) -> Page:
    """The limits in use whose keys come after `after`, by key."""
    asked = fields(call.request.query, "after")
    found = call.looks.limits(SHOWN, asked["after"])
    data = {
        "limits": [limit_document(limit) for limit in found],
        "after": found[-1].key if len(found) == SHOWN else None,
    }
    return Page("limits.html", "Limits", data, {"asked": asked})
