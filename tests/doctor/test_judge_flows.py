"""Flows that stand still."""

from typing import Any

import pytest

from rota.doctor import flows
from rota.doctor.finding import Finding, Severity
from rota.store.health import NodeFacts, StopFacts, TaskFacts, WorkFacts
from tests.doctor import facts as given


def node(**changes: Any) -> NodeFacts:
    """A node that has been open for two minutes."""
    known: dict[str, Any] = {
        "flow": 12, "flow_name": "import", "node": "parse", "task": "shop.parse", "queue": "mail",
        "seconds": 120.0, "left": 3,
    }  # fmt: skip
    return NodeFacts(**known | changes)


def judged(*nodes: NodeFacts, **changes: Any) -> list[Finding]:
    """What is found where these nodes are open, with a living worker and jobs that wait."""
    work: dict[str, Any] = {
        "schema": 1, "newest": 1, "nodes": nodes, "lanes": (given.lane(oldest=100.0),),
        "sessions": (given.session(),),
    }  # fmt: skip
    work |= changes
    return flows.judge(WorkFacts(**work), work["sessions"])


def test_flows_that_go_on() -> None:
    """A node that takes its time is no finding, and without open nodes there is nothing to say."""
    [finding] = judged(node(seconds=1e6))
    assert (finding.severity, finding.advice) == (Severity.OK, "")
    assert judged() == []


@pytest.mark.parametrize(
    ("changes", "of_node", "words", "advice"),
    [
        (
            {"lanes": (given.lane(paused=True, oldest=9.0),)}, {},
            "queue mail is paused", "rota queues resume mail",
        ),
        ({"sessions": ()}, {}, "no worker serves queue mail", "rota worker MODULE:APP --queue mail"),
        (
            {"sessions": (given.session(queues=("other",)),)}, {},
            "no worker serves queue mail", "rota worker MODULE:APP --queue mail",
        ),
        (
            {"passed_on": (TaskFacts("mail", "shop.parse", 3, 100.0, (99,)),)}, {},
            "no worker knows the task shop.parse", "rota worker MODULE:APP --queue mail",
        ),
        ({}, {"gone": True}, "jobs of it are gone", "rota flows cancel 12"),
        ({}, {"passed_by": True, "left": 0}, "nobody decides", "rota worker MODULE:APP -v"),
        ({"sessions": ()}, {"left": 0}, "nobody decides", "rota worker MODULE:APP -v"),
    ],
)  # fmt: skip
def test_why_a_flow_stands_still(
    changes: dict[str, Any], of_node: dict[str, Any], words: str, advice: str
) -> None:
    """In one line, with the node that has been open longest, and one next step."""
    [finding] = judged(node(**of_node), **changes)
    assert finding.title.startswith("Flow 12 (import) stands still: ")
    assert words in finding.title
    assert "node parse of flow 12 has been open for 2 min" in finding.detail
    assert finding.advice == advice
    decided = of_node.get("gone") or "left" in of_node
    assert finding.severity is (Severity.WARNING if decided else Severity.NOTE)


@pytest.mark.parametrize(
    "changes",
    [
        {"passed_on": (TaskFacts("mail", "shop.parse", 3, 100.0, (7,)),)},
        {"passed_on": (TaskFacts("mail", "shop.other", 3, 100.0, ()),)},
        {"lanes": (given.lane(paused=True, oldest=None),)},
        {"lanes": (given.lane(queue="other", paused=True, oldest=9.0),)},
        {"lanes": ()},
    ],
)
def test_what_does_not_stop_a_flow(changes: dict[str, Any]) -> None:
    """A worker that knows the task, another task, a queue where nothing waits, jobs that all run."""
    assert [finding.severity for finding in judged(node(), **changes)] == [Severity.OK]


def test_for_long() -> None:
    """After ten minutes it is a warning; where somebody has paused the queue, after an hour."""
    [finding] = judged(node(seconds=600.0), sessions=())
    assert finding.severity is Severity.WARNING
    paused = {"lanes": (given.lane(paused=True, oldest=9.0),)}
    [finding] = judged(node(seconds=600.0), **paused)
    assert finding.severity is Severity.NOTE
    [finding] = judged(node(seconds=3600.0), **paused)
    assert finding.severity is Severity.WARNING


def test_one_finding_for_each_cause() -> None:
    """Flows that stand still for one reason are counted, and causes beyond some as well."""
    [finding] = judged(
        *(node(flow=number, seconds=100.0 + number) for number in range(50)), sessions=()
    )
    assert finding.title == "50 flows stand still: no worker serves queue mail"
    assert "of flow 49" in finding.detail
    lanes = tuple(given.lane(queue=f"q{number}", oldest=9.0) for number in range(9))
    nodes = (node(queue=f"q{number}") for number in range(9))
    found = judged(*nodes, sessions=(), lanes=lanes)
    assert len(found) == flows.SHOWN + 1
    assert found[-1].title == "and 5 more causes for which flows stand still"


def test_flows_that_do_not_stop() -> None:
    """Their handlers do not ask."""
    [finding] = judged(stops=(StopFacts(12, "import", 1200.0),))
    assert finding.title == "Flow 12 (import) has been stopping for 20 min"
    assert (finding.severity, finding.advice) == (Severity.WARNING, "rota flows show 12")


def test_in_the_whole() -> None:
    """It is part of what is found of work, unless a part could not be seen."""
    nodes = (node(gone=True),)
    work = WorkFacts(1, 1, nodes=nodes, sessions=(given.session(),))
    from rota.doctor.work import judge

    assert "flows" in {finding.subject for finding in judge(work)}
    for unseen in ("flows", "sessions", "queues"):
        assert "flows" not in {finding.subject for finding in judge(work, {unseen: "no"})}
