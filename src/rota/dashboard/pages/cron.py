"""The cron entries and their next due times."""

from rota.dashboard.access import Right
from rota.dashboard.message import Page
from rota.dashboard.routes import Call
from rota.terminal.documents import entry_details

NEXT = 3
"""Due times that are shown of each entry."""


def cron(call: Call) -> Page:
    """All entries, by name."""
    entries = [entry_details(record, NEXT) for record in call.app.cron.entries()]
    if not call.request.access.may(Right.ARGS):
        entries = [entry | {"args": None, "options": None} for entry in entries]
    return Page("cron.html", "Cron", {"entries": entries})
