"""Jobs that a retry leaves to their flows: what `rota jobs retry` says of them."""

from collections.abc import Collection

from rota.model.flow import Membership
from rota.terminal.advice import addressed

NAMED = 5
"""How many flows one line names."""

STILL_HELD = (
    "jobs of flows' nodes that have ended would be left as they are, if there are any among them: "
    "rota flows retry runs these again"
)
"""What a dry run says: only a look at each job tells which these are."""


def node_of(member: Membership) -> str:
    """The node of a job, and its flow."""
    return f"node {member.node} of flow {member.flow} ({member.flow_name})"


def held(member: Membership) -> str:
    """Why a job is not retried by itself, and what to do."""
    command = addressed(f"rota flows retry {member.flow}")
    return (
        f"belongs to {node_of(member)}, which has ended: `{command}` runs it again with what waits for it; "
        "with --alone it runs by itself, and leaves its flow for good"
    )


def many_held(left: Collection[Membership]) -> str:
    """The same of several jobs."""
    flows = sorted({member.flow for member in left})
    command = addressed(f"rota flows retry {' '.join(map(str, flows[:NAMED]))}")
    more = f" (and {len(flows) - NAMED:,} more flows)" if len(flows) > NAMED else ""
    jobs = (
        "1 job of a flow's node that has ended was"
        if len(left) == 1
        else f"{len(left):,} jobs of flows' nodes that have ended were"
    )
    return (
        f"{jobs} not retried: `{command}`{more} runs such jobs again with what waits for them; with --alone they run "
        "by themselves, and leave their flows for good"
    )
