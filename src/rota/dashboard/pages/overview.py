"""The first page: how much there is, how fast it goes, and what is wrong."""

from typing import Any

from rota.dashboard import shown
from rota.dashboard.looks import Looks, Seen
from rota.dashboard.message import Page
from rota.dashboard.pages import history
from rota.dashboard.routes import Call
from rota.doctor.amounts import count
from rota.doctor.finding import Severity
from rota.model.states import State
from rota.store.serving import alive
from rota.top.horizon import notice as horizon
from rota.top.queues import arranged, sums

SHOWN = 12
"""Queues on this page: those with the most work."""

OLD = 5.0
"""Seconds after which the page says how old its figures are."""

NAMED = 3
"""Queues that are named in what needs a person; others are counted."""


def overview(call: Call) -> Page:
    """Sums, the busiest queues, and what needs a person."""
    # Asked for by the page as a whole alone, not by the part that changes every second.
    extra = {"old": OLD, "history": lambda: history.if_known(call)}
    return Page("overview.html", "Overview", figures(call.looks), extra)


def figures(looks: Looks) -> dict[str, Any]:
    """What the page says of a database.

    Raises:
        StoreUnavailable: The database cannot be reached.
    """
    seen = looks.now()
    total = sums(seen.rows)
    living = [worker for worker in seen.snapshot.workers if alive(worker)]
    # A stable sort: by name, then the fast, then those with jobs that wait.
    rows = arranged(arranged(seen.rows, "out/s", ""), "available", "")
    return {
        "database": seen.snapshot.product,
        "at": seen.snapshot.at,
        "jobs": {state.value: total.counts[state] for state in State},
        "in_per_second": total.rates.appended if total.rates else None,
        "out_per_second": total.rates.claimed if total.rates else None,
        "oldest_seconds": max((row.oldest for row in seen.rows if row.oldest), default=None),
        "workers": len(living),
        "held": sum(worker.leased for worker in living),
        "queues": [shown.of_queue(row) for row in rows[:SHOWN]],
        "more_queues": max(len(rows) - SHOWN, 0),
        "notices": _notices(seen),
    }


def _notices(seen: Seen) -> list[dict[str, str]]:
    """What a person should know, the worst first; each with the page that says more."""
    found = []

    def notice(severity: str, text: str, page: str, queue: str = "") -> None:
        found.append({"severity": severity, "text": text, "page": page, "queue": queue})

    vain = [row.name for row in seen.rows if row.waits_in_vain]
    for name in vain[:NAMED]:
        notice("critical", f"No worker takes jobs from queue {name}", "/queue", name)
    if len(vain) > NAMED:
        others = count(len(vain) - NAMED, "other queue")
        notice("critical", f"No worker takes jobs from {others}", "/queues")
    silent = [worker for worker in seen.snapshot.workers if not alive(worker)]
    if silent:
        notice("warning", f"{count(len(silent), 'worker')} silent for too long", "/workers")
    for row in seen.rows:
        if row.paused and row.counts.get(State.AVAILABLE):
            notice("note", f"Queue {row.name} is paused, and jobs wait in it", "/queue", row.name)
    transactions = horizon(seen.snapshot.horizon)
    if transactions.severity >= Severity.WARNING:
        notice(transactions.severity.name.lower(), transactions.text, "/doctor")
    return found[:SHOWN]
