"""`rota flows watch`: one flow until it has ended."""

import contextlib
import time
from collections.abc import Callable, Iterator

import click
import msgspec

from rota.cli.options import ID, url_option
from rota.cli.watching import watching
from rota.model.flow import FlowGraph, FlowState, NodeRecord, NodeState
from rota.terminal.exits import FAILED, Failure
from rota.terminal.output import json_option, say

Show = Callable[[FlowGraph], None]

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0
"""Seconds between two looks: each pause is longer than the one before by half."""

WATCHED = 1000
"""Nodes that are watched: the first."""

TENTHS = 10
"""A line in a pipe or log for each tenth of a map's jobs."""


@click.command()
@click.argument("flow", metavar="ID", type=ID)
@url_option
@json_option
def watch(*, flow: int, url: str | None, as_json: bool) -> None:
    """Watch a flow until it has ended: the states of its nodes, and how many of their jobs are left.

    Ctrl-C ends the watching; the flow goes on.

    \b
    Examples:
      rota flows watch 12
      rota flows watch 12 --json       one JSON object in each line, for each change

    \b
    Exit status:
      0    the flow was completed
      1    the flow has failed or was cancelled, or does not exist
      130  stopped by Ctrl-C
    """
    from rota.cli import flow_text

    ways = watching("flow", url, as_json=as_json, programs=_json, terminal=_live, lines=_lines)
    with ways as (rota, show):
        handle, pause = rota.flows.get(flow), FIRST_PAUSE
        while True:
            graph = handle.graph(limit=WATCHED)
            show(graph)
            if graph.flow.state.ended:
                break
            time.sleep(pause)
            pause = min(1.5 * pause, LONGEST_PAUSE)
    record = graph.flow
    if record.state is not FlowState.COMPLETED:
        why = f": {record.reason}" if record.reason else ""
        raise Failure(f"flow {flow} {flow_text.ended(record.state)}{why}", FAILED)


# Three ways to show it ---------------------------------------------------------------------------


@contextlib.contextmanager
def _json() -> Iterator[Show]:
    from rota.terminal import documents

    known: dict[int, NodeRecord] = {}
    before: list[FlowState] = []

    def show(graph: FlowGraph) -> None:
        changed = [node for node in graph.nodes if known.get(node.id) != node]
        known.update((node.id, node) for node in changed)
        if changed or before[-1:] != [graph.flow.state]:
            before.append(graph.flow.state)
            told = {
                "flow": documents.flow_summary(graph.flow),
                "nodes": [documents.node_document(node) for node in changed],
            }
            click.echo(msgspec.json.encode(told).decode())

    yield show


@contextlib.contextmanager
def _lines() -> Iterator[Show]:
    from rota.cli import flow_text
    from rota.terminal.output import harmless

    known: dict[int, tuple[NodeState, int]] = {}

    def show(graph: FlowGraph) -> None:
        if not known:
            say(f"flow {graph.flow.id} ({harmless(graph.flow.name)}) is {flow_text.state(graph)}")
        for node in graph.nodes:
            now = node.state, _tenths(node)
            before = known.get(node.id)
            known[node.id] = now
            if before == now or (before is None and node.state is NodeState.WAITING):
                continue
            why = f": {harmless(node.reason)}" if node.reason else ""
            say(
                f"node {harmless(node.name)} {flow_text.ended(node.state)}, {flow_text.jobs(node)}{why}"
            )
        if graph.flow.state.ended:
            took = flow_text.took(graph.flow)
            say(f"flow {graph.flow.id} {flow_text.ended(graph.flow.state)}, after {took}")

    yield show


def _tenths(node: NodeRecord) -> int:
    return TENTHS * (node.expects - node.left) // node.expects if node.many and node.expects else 0


@contextlib.contextmanager
def _live() -> Iterator[Show]:
    """The tree, drawn anew at its place on the terminal."""
    from rich.console import Console
    from rich.live import Live

    from rota.cli import flow_text

    console = Console(highlight=False)
    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
        last: list[FlowGraph] = []

        def show(graph: FlowGraph) -> None:
            last[:] = [graph]
            live.update(flow_text.screen(graph, console.width, console.height), refresh=True)

        yield show
        if last:
            live.update(flow_text.screen(last[0], console.width, None), refresh=True)
