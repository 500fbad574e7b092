"""The first page: how much there is, how fast it goes, and what is wrong."""

from typing import Any

from rota.dashboard import shown
from rota.dashboard.message import Page
from rota.dashboard.pages import history
from rota.dashboard.routes import Call
from rota.doctor.amounts import count
from rota.doctor.finding import Severity
from rota.doctor.work import alive
from rota.model.states import State
from rota.top.horizon import notice
from rota.top.queues import arranged, sums

SHOWN = 12
"""Queues on this page: those with the most work."""

OLD = 5.0
"""Seconds after which the page says how old its figures are."""

NAMED = 3
"""Queues that are named in what needs a person; others are counted."""


def overview(call: Call) -> Page:
    """Sums, the busiest queues, and what needs a person."""
    seen = call.looks.now()
    total = sums(seen.rows)
    living = [worker for worker in seen.snapshot.workers if alive(worker)]
    # A stable sort: by name, then the fast, then those with jobs that wait.
    rows = arranged(arranged(seen.rows, "out/s", ""), "available", "")
    data: dict[str, Any] = {
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
        "notices": _notices(call),
    }
    # Asked for by the page as a whole alone, not by the part that changes every second.
    extra = {"old": OLD, "history": lambda: history.if_known(call)}
    return Page("overview.html", "Overview", data, extra)


def _notices(call: Call) -> list[dict[str, str]]:
    """What a person should know, the worst first; each with the page that says more."""
    seen = call.looks.now()
    found = []
    vain = [row.name for row in seen.rows if row.waits_in_vain]
    for name in vain[:NAMED]:
        text = f"No worker takes jobs from queue {name}"
        found.append({"severity": "critical", "text": text, "queue": name})
    if len(vain) > NAMED:
        text = f"Nor from {count(len(vain) - NAMED, 'other queue')}"
        found.append({"severity": "critical", "text": text, "queue": ""})
    silent = [worker for worker in seen.snapshot.workers if not alive(worker)]
    if silent:
        text = f"{count(len(silent), 'worker')} silent for too long"
        found.append({"severity": "warning", "text": text, "queue": ""})
    for row in seen.rows:
        if row.paused and row.counts.get(State.AVAILABLE):
            text = f"Queue {row.name} is paused, and jobs wait in it"
            found.append({"severity": "note", "text": text, "queue": row.name})
    horizon = notice(seen.snapshot.horizon)
    if horizon.severity >= Severity.WARNING:
        severity = horizon.severity.name.lower()
        found.append({"severity": severity, "text": horizon.text, "queue": ""})
    return found[:SHOWN]
