"""A flow as text for people."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rota.doctor.amounts import duration
from rota.model.flow import FlowGraph, FlowRecord, FlowState, NodeRecord, NodeState
from rota.model.flow_groups import Totals, members, totals
from rota.terminal.documents import COUNTED_NODES
from rota.terminal.output import STYLES, Cell, brief, harmless, moment, say, table, table_lines
from rota.terminal.tables import Column
from rota.terminal.tree import Branch, lines, tree

if TYPE_CHECKING:
    from rich.text import Text

LIST = (
    Column("id"),
    Column("state"),
    Column("name"),
    Column("nodes"),
    Column("created", rank=2),
    Column("took", rank=1),
    Column("note", spare=True, prose=True),
)

GRAPH = (
    Column("node"),
    Column("state"),
    Column("jobs"),
    Column("note", spare=True, prose=True),
)

ROOM = 4
"""Lines of a terminal that the nodes of a flow leave to what stands around them."""

NAMED = 3
"""How many of the nodes that wait for a node are named behind its arrow."""


def row(flow: FlowRecord) -> list[Cell]:
    """A flow in a list."""
    note = flow.reason or stopping(flow)
    return [
        flow.id, flow.state, flow.name, nodes(flow), brief(flow.created_at), took(flow), note
    ]  # fmt: skip


def say_details(graph: FlowGraph) -> None:
    """Print what is known of a flow, and its nodes as a tree."""
    flow = graph.flow
    say(f"Flow {flow.id}: {harmless(flow.name)}", bold=True)
    for name, said in (
        ("state", state(graph)),
        ("created", moment(flow.created_at)),
        ("deadline", moment(flow.deadline)),
        ("ended", f"{moment(flow.ended_at)} (it took {took(flow)})" if flow.ended_at else ""),
        ("retried", times(flow.round) if flow.round else ""),
        ("reason", flow.reason or ""),
    ):
        if said:
            say(f"  {name:<9} {harmless(said)}")
    say()
    table(GRAPH, rows(graph), nothing="It has no nodes.")


def screen(graph: FlowGraph, width: int, height: int | None) -> "Text":
    """A flow for a terminal: what is completed is left out first, if there is not room for all of it."""
    from rich.text import Text

    title = Text(f"flow {graph.flow.id} ({harmless(graph.flow.name)}) is ")
    title.append(harmless(state(graph)), STYLES.get(graph.flow.state, ""))
    title.append(f", after {took(graph.flow)}")
    every = rows(graph)
    kept = every
    if height is not None and len(every) > (room := max(1, height - ROOM)):
        kept = [one for one in every if one[1] != NodeState.COMPLETED][:room]
    found = [title, *table_lines(GRAPH, kept, width)]
    if left := len(every) - len(kept):
        found.append(Text(f"and {left:,} more: rota flows show {graph.flow.id}", "dim"))
    for line in found:
        line.truncate(width)
    return Text("\n").join(found)


def rows(graph: FlowGraph) -> list[list[Cell]]:
    """The nodes as a tree, each with its state and its jobs."""
    of_groups = {name: totals(nodes) for name, nodes in members(graph.nodes).items()}
    return [_row(line.marks, line.branch, of_groups) for line in lines(tree(graph))]


def _row(marks: str, branch: Branch, of_groups: dict[str, Totals]) -> list[Cell]:
    node = branch.node
    if node is None:
        whole = of_groups[branch.name]
        ended = f"{whole.ended:,} of {whole.nodes:,} nodes have ended"
        return [f"{marks}{branch.name}/", whole.state, jobs_of(whole), ended]
    return [f"{marks}{node.name}", node.state, jobs(node), note(branch, node)]


def jobs(node: NodeRecord) -> str:
    """Such as "job 4711", or "99,871 completed, 12 failed, 117 left"."""
    if not node.many and node.first_job is not None:
        return f"job {node.first_job}"
    return jobs_of(node)


def jobs_of(counted: NodeRecord | Totals) -> str:
    """How many jobs have ended how, and how many are left; only what there is."""
    if counted.left == counted.expects:
        return _jobs(counted.expects)
    parts = {
        "completed": counted.completed,
        "failed": counted.failed,
        "cancelled": counted.cancelled,
        "left": counted.left,
    }
    return ", ".join(f"{number:,} {name}" for name, number in parts.items() if number)


def _jobs(number: int) -> str:
    return {0: "no jobs", 1: "1 job"}.get(number, f"{number:,} jobs")


def note(branch: Branch, node: NodeRecord) -> str:
    """When a node begins, why it has ended so, and what else waits for it."""
    parts = [f"on {condition}" for condition in branch.conditions]
    if node.reason:
        parts.append(node.reason)
    if branch.leads:
        more = f" and {len(branch.leads) - NAMED} more" if len(branch.leads) > NAMED else ""
        parts.append(f"→ {', '.join(branch.leads[:NAMED])}{more}")
    return "; ".join(parts)


def state(graph: FlowGraph) -> str:
    """Such as "running, 3 of 5 nodes have ended"."""
    flow = graph.flow
    if flow.state.ended:
        return flow.state.value
    ended = sum(node.state.ended for node in graph.nodes)
    of = f"the first {len(graph.nodes):,}" if graph.more else f"{len(graph.nodes):,}"
    said = f"{flow.state}, {ended:,} of {of} nodes have ended"
    return f"{said}; {stopping(flow)}" if flow.stopping else said


def ended(state: FlowState | NodeState) -> str:
    """Such as "is running", "has failed"."""
    return "has failed" if state.value == FlowState.FAILED.value else f"is {state}"


def stopping(flow: FlowRecord) -> str:
    """Why a flow is being cancelled."""
    return f"is being cancelled: {flow.stopping}" if flow.stopping else ""


def nodes(flow: FlowRecord) -> str:
    """How many nodes a flow has."""
    return f">{COUNTED_NODES:,}" if flow.nodes > COUNTED_NODES else f"{flow.nodes:,}"


def times(number: int) -> str:
    """How often."""
    return "once" if number == 1 else f"{number:,} times"


def took(flow: FlowRecord) -> str:
    """How long a flow has taken, up to now where it has not ended."""
    end = flow.ended_at or datetime.now(UTC)
    return duration(max(0.0, (end - flow.created_at).total_seconds()))
