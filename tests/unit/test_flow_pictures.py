"""A flow as a tree and as a picture."""

import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

from rota.drawing.flow_picture import drawn, picture
from rota.model.flow import (
    Condition,
    EdgeRecord,
    FlowGraph,
    FlowId,
    FlowRecord,
    FlowState,
    NodeRecord,
    NodeState,
)
from rota.model.flow_groups import groups_of, together, totals
from rota.model.headers import NodeId
from rota.model.job import JobId
from rota.terminal.tree import lines, tree

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def node(number: int, name: str, state: str = "completed", **changes: Any) -> NodeRecord:
    """A node with one job, which has ended as the state says."""
    counts = {"completed": int(state == "completed"), "failed": int(state == "failed")}
    known: dict[str, Any] = {
        "id": NodeId(number), "name": name, "task": "work", "state": NodeState(state), "expects": 1,
        "cancelled": int(state in {"cancelled", "skipped"}), "many": False, "fail_fast": False, "round": 0,
        "first_job": JobId(number + 100), "last_job": JobId(number + 100), "released_at": NOW,
        "ended_at": None, "reason": None,
    }  # fmt: skip
    return NodeRecord(**known | counts | changes)


def graph(names: str, *edges: str, more: bool = False, **nodes: NodeRecord) -> FlowGraph:
    """A flow of nodes with these names; an edge is such as "a b" or "a b failed"."""
    made = [nodes.get(name, node(number, name)) for number, name in enumerate(names.split())]
    ids = {name: one.id for name, one in zip(names.split(), made, strict=True)}
    found = []
    for edge in edges:
        after, waiting, *condition = edge.split()
        found.append(
            EdgeRecord(ids[waiting], ids[after], Condition((condition or ["completed"])[0]))
        )
    record = FlowRecord(
        FlowId(1), "shop", FlowState.RUNNING, NOW, None, None, None, None, 0, len(made)
    )
    return FlowGraph(record, made, found, more)


def shown(found: FlowGraph) -> str:
    """The tree as text, with what each node leads to."""
    return "\n".join(
        f"{line.marks}{line.branch.name}{'/' if line.branch.node is None else ''}"
        + (f" → {' '.join(line.branch.leads)}" if line.branch.leads else "")
        for line in lines(tree(found))
    )


def test_a_tree() -> None:
    """A node is below the last that it waits for; the others name it, except where implied."""
    found = graph("a b c d e", "a b", "a c", "b d", "c d", "a d", "d e")
    assert shown(found) == "a\n├─ b → d\n└─ c\n   ↓ d\n   ↓ e"


def test_a_chain_is_not_indented() -> None:
    """A hundred steps fit into a terminal, and what forks behind them is below the last one."""
    names = [f"s{number}" for number in range(100)]
    chain = [f"{a} {b}" for a, b in pairwise(names)]
    found = shown(graph(" ".join([*names, "x", "y"]), *chain, "s99 x", "s99 y")).splitlines()
    assert found[:3] == ["s0", "↓ s1", "↓ s2"]
    assert found[-3:] == ["↓ s99", "  ├─ x", "  └─ y"]


def test_groups_are_branches() -> None:
    """A group stands where its first node begins; within it nodes are below each other."""
    found = graph(
        "a g/b g/c g/in/d z", "a g/b", "g/b g/c", "a g/in/d", "g/c z", "g/in/d z"
    )  # fmt: skip
    assert shown(found) == (
        "a\n└─ g/\n   ├─ g/b\n   │  ↓ g/c\n   │  ↓ z\n   └─ g/in/\n      └─ g/in/d → z"
    )
    assert groups_of("g/in/d") == ["g", "g/in"]


def test_what_was_grafted_may_come_first() -> None:
    """A node may wait for one that was added later."""
    assert shown(graph("crawl report page", "crawl report", "crawl page", "page report")) == (
        "crawl\n↓ page\n↓ report"
    )


def test_every_node_once() -> None:
    """Whatever waits for what."""
    names = [f"{'g/' if number % 3 else ''}n{number}" for number in range(40)]
    edges = [
        f"{names[a]} {names[b]}" for a in range(40) for b in range(a + 1, 40) if (a * b) % 7 == 3
    ]
    found = graph(" ".join(names), *edges)
    told = [line.branch.name for line in lines(tree(found)) if line.branch.node is not None]
    assert sorted(told) == sorted(names)


@pytest.mark.parametrize(
    ("states", "whole"),
    [
        ("waiting waiting", "waiting"), ("waiting completed", "running"), ("running failed", "running"),
        ("completed failed", "failed"), ("completed cancelled", "cancelled"), ("completed skipped", "completed"),
        ("skipped skipped", "skipped"),
    ],
)  # fmt: skip
def test_a_group_as_a_whole(states: str, whole: str) -> None:
    """It runs from the first to the last of its nodes; then the worst end counts."""
    assert together([NodeState(state) for state in states.split()]) == whole


def test_totals() -> None:
    """Nodes and jobs are added up."""
    whole = totals([node(1, "a"), node(2, "b", "running", expects=9, completed=4, failed=2)])
    assert (whole.nodes, whole.ended, whole.expects, whole.left) == (2, 1, 10, 3)


def test_a_picture() -> None:
    """It is well-formed, has each node once, and says how an arrow is meant."""
    evil = '<b>&"\x00\ud800'
    found = graph("a b c d", "a b", "a c failed", "a d finished", "b d", d=node(3, evil))
    text = picture(found)
    root = ET.fromstring(text.encode())  # noqa: S314 - drawn a line above
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{space}g")) == 4
    classes = [way.get("class") for way in root.findall(f"{space}path")]
    # That `d` comes after `a` is implied.
    assert sorted(one for one in classes if one != "tip" and one) == [
        "way on-completed", "way on-completed", "way on-failed",
    ]  # fmt: skip
    assert "<b>" not in text
    assert "prefers-color-scheme:dark" in text
    assert "href" not in text
    assert 'stroke-dasharray="7 4"' in text
    own = picture(found, lambda one: f"to?a=1&b={one.id}", alone=False)
    assert own.count('href="to?a=1&amp;b=') == 4
    assert "<style" not in own


def test_a_map_says_how_far_it_is() -> None:
    """By its count and by a bar; a failed one says how many of its jobs have failed."""
    many: dict[str, Any] = {"many": True, "expects": 100_000}
    found = graph(
        "a b", a=node(0, "a", "running", completed=50_000, failed=3, **many),
        b=node(1, "b", "failed", completed=99_000, failed=1_000, **many),
    )  # fmt: skip
    text = picture(found)
    assert "running · 50,003 of 100,000, 3 failed" in text
    assert "failed · 1,000 of 100,000" in text
    assert text.count('class="done"') == text.count('class="bad"') == 2


def test_many_nodes() -> None:
    """Groups become one box each, and of the boxes the first are drawn; it says so."""
    names = [f"g{number % 3}/n{number}" for number in range(300)]
    edges = [f"{a} {b}" for a, b in pairwise(names)]
    found = drawn(graph(" ".join(names), *edges))
    assert [box.name for box in found.boxes] == ["g0/", "g1/", "g2/"]
    assert found.boxes[0].said == "completed · 100 of 100 nodes"
    assert found.note == "This flow has many nodes: groups are drawn as one box each."
    assert len(picture(graph(" ".join(names), *edges))) < 10_000
    found = drawn(graph(" ".join(f"n{number}" for number in range(300))))
    assert len(found.boxes) == 200
    assert "only the first 200 boxes are drawn" in found.note
    found = drawn(graph("a b", more=True))
    assert "only the first 2 nodes are drawn" in found.note
