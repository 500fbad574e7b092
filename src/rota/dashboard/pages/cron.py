"""The cron entries and their next due times."""

from rota.dashboard.access import Right
from rota.dashboard.message import Page
from rota.dashboard.routes import Call, fields
from rota.terminal.documents import entry_details

NEXT = 3
"""Due times that are shown of each entry."""


SHOWN = 100
"""Entries on one page."""


def cron(call: Call) -> Page:
    """The entries whose names come after `after`, by name."""
    asked = fields(call.request.query, "after")
    found = [record for record in call.app.cron.entries() if record.entry.name > asked["after"]]
    more = max(len(found) - SHOWN, 0)
    entries = [entry_details(record, NEXT) for record in found[:SHOWN]]
    after = found[SHOWN - 1].entry.name if more else None
    if not call.request.access.may(Right.ARGS):
        entries = [entry | {"args": None, "options": None} for entry in entries]
    return Page("cron.html", "Cron", {"entries": entries, "after": after}, {"more": more})
