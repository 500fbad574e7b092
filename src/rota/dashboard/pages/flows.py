"""Flows by state and name, the newest first; each view is a link."""

from rota.dashboard.message import Page
from rota.dashboard.routes import Call, before, fields
from rota.errors import ConfigError
from rota.model.flow import FlowState
from rota.model.options import check_name
from rota.terminal.documents import flow_summary

SHOWN = 50
"""Flows on one page."""

LOOKED_AT = 10_000
"""Flows among which a page looks for those in a state; see `flows.sql`."""


def flows(call: Call) -> Page:
    """One page of flows."""
    asked = fields(call.request.query, "state", "name")
    states = [state.value for state in FlowState]
    if asked["state"] and asked["state"] not in states:
        message = f"state: {', '.join(states[:-1])} or {states[-1]} is needed, not {asked['state'][:30]!r}"
        raise ConfigError(message)
    found = call.app.flows.list(
        limit=SHOWN,
        before=before(call, "flow"),
        name=check_name(asked["name"], "flow") if asked["name"] else None,
        state=asked["state"] or None,
    )
    data = {
        "flows": [flow_summary(flow) | {"id": str(flow.id)} for flow in found],
        "before": str(found[-1].id) if len(found) == SHOWN else None,
    }
    extra = {
        "asked": asked,
        "states": states,
        "first": "before" not in call.request.query,
        "looked_at": LOOKED_AT,
    }
    return Page("flows.html", "Flows", data, extra)
