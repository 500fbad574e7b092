"""Flows that stand still: nodes whose jobs nobody takes, and what was not decided.

That a node takes its time is no finding. It is one if nothing of it can go on: its queue is paused
or has no worker, no worker knows its task, its jobs are gone, or nobody has decided that it has
ended.
"""

from collections.abc import Sequence
from shlex import quote

from rota.doctor.amounts import count, duration
from rota.doctor.finding import Finding, Severity, few
from rota.store.health import NodeFacts, SessionFacts, WorkFacts
from rota.store.serving import serving

LONG = 600.0
"""Seconds that a flow may stand still before that is a warning, unless its queue is paused."""

PAUSED_LONG = 3600.0
"""The same where its queue is paused."""

SHOWN = 4
"""How many findings are shown."""

START = "rota worker MODULE:APP"


def judge(work: WorkFacts, living: Sequence[SessionFacts]) -> list[Finding]:
    """The flows that stand still, by what stops them; `living` are the workers that are alive."""
    by_cause: dict[tuple[str, str], list[NodeFacts]] = {}
    for node in work.nodes:
        if cause := _cause(node, work, living):
            by_cause.setdefault(cause, []).append(node)
    found = [_finding(cause, what, nodes) for (cause, what), nodes in by_cause.items()]
    found += [
        Finding(
            Severity.WARNING,
            "flows",
            f"Flow {stop.flow} ({stop.name}) has been stopping for {duration(stop.seconds)}",
            "Jobs that run were asked to stop, and some have not: their handlers do not ask, or no worker is alive.",
            f"rota flows show {stop.flow}",
        )
        for stop in work.stops
    ]
    if not found and work.nodes:
        open_ = count(len(work.nodes), "open node")
        return [Finding(Severity.OK, "flows", f"Flows go on, or wait for their workers: {open_}")]
    return few(found, SHOWN, "causes for which flows stand still")


def _cause(
    node: NodeFacts, work: WorkFacts, living: Sequence[SessionFacts]
) -> tuple[str, str] | None:
    """What stops a node: a kind, and a queue, a task or a flow."""
    workers = serving(living, node.queue)
    waiting = [lane for lane in work.lanes if lane.queue == node.queue and lane.oldest is not None]
    cause = None
    if node.gone:
        cause = "gone", str(node.flow)
    elif node.passed_by or (not node.left and not living):
        cause = "undecided", ""
    elif any(lane.paused for lane in waiting):
        cause = "paused", node.queue
    elif waiting and not workers:
        cause = "unserved", node.queue
    elif waiting and _unknown(node, work, workers):
        cause = "unknown", node.task
    return cause


def _unknown(node: NodeFacts, work: WorkFacts, workers: Sequence[SessionFacts]) -> bool:
    """Whether jobs of the node's task wait that none of these workers knows."""
    ids = {session.id for session in workers}
    return any(
        (facts.queue, facts.task) == (node.queue, node.task) and not ids & set(facts.knowing)
        for facts in work.passed_on
    )


def _finding(cause: str, what: str, nodes: Sequence[NodeFacts]) -> Finding:
    oldest = max(nodes, key=lambda node: node.seconds)
    flows = {node.flow for node in nodes}
    who = (
        f"Flow {oldest.flow} ({oldest.flow_name}) stands"
        if len(flows) == 1
        else f"{count(len(flows), 'flow')} stand"
    )
    since = f"node {oldest.node} of flow {oldest.flow} has been open for {duration(oldest.seconds)}"
    long = oldest.seconds >= (PAUSED_LONG if cause == "paused" else LONG)
    severity = Severity.WARNING if long else Severity.NOTE
    match cause:
        case "paused":
            why, step = f"queue {what} is paused", f"rota queues resume {quote(what)}"
        case "unserved":
            why, step = f"no worker serves queue {what}", f"{START} --queue {quote(what)}"
        case "unknown":
            why = f"no worker knows the task {what}"
            step = f"{START} --queue {quote(oldest.queue)}"
        case "gone":
            why, step = "jobs of it are gone", f"rota flows cancel {oldest.flow}"
            severity = Severity.WARNING
            since += (
                "; its jobs are not there any more and did not say how they ended, as workers older than flows do. "
                "Cancel the flow, and retry it if its work is to be done again"
            )
        case _:
            why, step = "nobody decides what follows", f"{START} -v"
            severity = Severity.WARNING
            since += "; all its jobs have ended. Workers decide what follows: is one alive, and what does its log say?"
    return Finding(severity, "flows", f"{who} still: {why}", since, step)
