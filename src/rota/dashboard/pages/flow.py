"""One flow: its nodes as a picture and as a table."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rota.dashboard.message import NotThere, Page
from rota.dashboard.routes import Call
from rota.drawing.flow_picture import READ, drawn, picture
from rota.errors import ConfigError
from rota.model.flow import Condition, FlowGraph, FlowId, NodeRecord
from rota.model.headers import NodeId
from rota.model.job import possible
from rota.model.states import State
from rota.terminal.documents import flow_graph

ROWS = 200
"""Nodes on one page of the table."""


def flow(call: Call) -> Page:
    """One flow, with its first nodes, or with those behind the node `after`."""
    flow, after = flow_id(call.parts["id"]), _after(call)
    found: FlowGraph | None = call.app.database.run(
        call.app.database.store.flows.flow(flow, limit=READ if after is None else ROWS, after=after)
    )
    if found is None:
        message = f"There is no flow {flow}: its retention is over, or it was never committed."
        raise NotThere(message)
    rows = found.nodes[:ROWS]
    data = _document(found._replace(nodes=rows), more=found.more or len(found.nodes) > ROWS)
    ended = sum(node.state.ended for node in found.nodes)
    extra = {
        "ended": ended,
        "known": len(found.nodes),
        "links": {str(node.id): _links(node) for node in rows},
        "waits": _waits(found, rows),
        "picture": None if after is not None else partial(_picture, found),
        "note": drawn(found).note if after is None else "",
        "finished": found.flow.state.ended,
        "first": after is None,
    }
    return Page("flow.html", f"Flow {flow}", data, extra)


def _document(graph: FlowGraph, *, more: bool) -> dict[str, Any]:
    """The flow as plain data, with ids as texts."""
    known = flow_graph(graph)
    known["flow"] |= {"id": str(graph.flow.id)}
    for node in known["nodes"]:
        for name in ("id", "first_job", "last_job"):
            node[name] = None if node[name] is None else str(node[name])
    after = str(graph.nodes[-1].id) if more and graph.nodes else None
    return known | {"more": more, "after": after}


def _picture(graph: FlowGraph, url: Callable[..., str]) -> str:
    """The graph as SVG, whose texts are escaped already."""

    def link(node: NodeRecord) -> str:
        path, query = _links(node)["jobs"]
        return url(path, **query)

    return picture(graph, link, alone=False)


def _links(node: NodeRecord) -> dict[str, tuple[str, dict[str, str]]]:
    """Where the jobs of a node are, all of them and those that were discarded: path and parameters.

    Those of a map are found by their task, from the last one back; jobs of the same task may lie
    between.
    """
    if node.first_job is None or node.last_job is None:
        return {"jobs": ("/jobs", {"task": node.task}), "failed": ("/jobs", {"task": node.task})}
    if not node.many:
        return {"jobs": (f"/jobs/{node.first_job}", {}), "failed": (f"/jobs/{node.first_job}", {})}
    query = {"task": node.task, "before": str(node.last_job + 1)}
    return {
        "jobs": ("/jobs", query),
        "failed": ("/jobs", query | {"state": State.DISCARDED.value}),
    }


def _waits(graph: FlowGraph, rows: Sequence[NodeRecord]) -> dict[str, list[tuple[str, str]]]:
    """For each node those that it waits for, by name, and for what else than their success."""
    names = {node.id: node.name for node in graph.nodes}
    found: dict[str, list[tuple[str, str]]] = {str(node.id): [] for node in rows}
    for edge in graph.edges:
        if str(edge.node) in found:
            name = names.get(edge.after, f"node {edge.after}")
            on = "" if edge.condition is Condition.COMPLETED else f"on {edge.condition}"
            found[str(edge.node)].append((name, on))
    return found


def flow_id(text: str) -> FlowId:
    """The id of a flow.

    Raises:
        NotThere: No flow can have it.
    """
    if not (text.isascii() and text.isdigit() and possible(int(text))):
        message = f"There is no flow {text[:30]}."
        raise NotThere(message)
    return FlowId(int(text))


def _after(call: Call) -> NodeId | None:
    text = call.request.query.get("after", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and possible(int(text))):
        message = f"after: the id of a node is needed, not {text[:30]!r}"
        raise ConfigError(message)
    return NodeId(int(text))
