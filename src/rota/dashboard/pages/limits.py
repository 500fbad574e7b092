"""The limits: what each allows, and what of that is taken."""

from typing import Any

from rota.dashboard.message import Page
from rota.dashboard.routes import Call, fields
from rota.store.standing import LimitFacts

SHOWN = 100
"""Limits on one page."""


def limits(call: Call) -> Page:
    """The limits whose keys come after `after`, by key."""
    asked = fields(call.request.query, "after")
    database = call.app.database
    found = database.run(database.store.limits(after=asked["after"], most=SHOWN))
    data = {
        "limits": [_shown(limit) for limit in found],
        "after": found[-1].key if len(found) == SHOWN else None,
    }
    return Page("limits.html", "Limits", data, {"asked": asked})


def _shown(limit: LimitFacts) -> dict[str, Any]:
    return {
        "key": limit.key,
        "running": limit.running,
        "held": limit.held,
        "rate": limit.rate,
        "seconds": limit.seconds,
        "started": limit.started,
        "full": limit.full,
    }
