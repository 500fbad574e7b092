"""Flows: jobs that wait for others. A flow has nodes of jobs; edges say what waits for what.

All values here are pure: what is to be stored, and what is read. A node's jobs carry its id in a
header of Rota's own, so membership takes every way that a job takes, through older code as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple, NewType

import msgspec

from rota.model.enqueued import Enqueued
from rota.model.headers import NODE, NodeId, decoded, encoded
from rota.model.job import JobId, Order
from rota.model.memory import FOR_EVER

FlowId = NewType("FlowId", int)
"""Identifies a flow."""

WANTED = "rota.result"
"""The header of jobs whose result others are given."""

NEEDS = "rota.needs"
"""The header that says which parameters get results, and of which nodes: JSON, see `Needs`."""

WAITING = FOR_EVER
"""Seconds for which jobs are scheduled that wait for others."""

Needs = Mapping[str, int | list[int]]
"""By parameter, the node whose result it gets; in a list: the results of all its jobs, as a list."""


NO_NEEDS: Needs = MappingProxyType({})
"""Of jobs that get no results."""


class Condition(StrEnum):
    """When a node begins, after those that it waits for."""

    COMPLETED = "completed"
    """When all of them are completed."""
    FINISHED = "finished"
    """When all of them have ended, whatever way."""
    FAILED = "failed"
    """When all of them have ended, and one has failed."""


class NodeState(StrEnum):
    """How far a node has come."""

    WAITING = "waiting"
    """For other nodes."""
    RUNNING = "running"
    """Its jobs are with the workers, or are available to them."""
    COMPLETED = "completed"
    """All its jobs are."""
    FAILED = "failed"
    """All its jobs have ended, and one was discarded."""
    CANCELLED = "cancelled"
    """All its jobs have ended, none was discarded, and one was cancelled."""
    SKIPPED = "skipped"
    """What it waited for ended otherwise; its jobs were cancelled."""

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to it by itself."""
        return self not in {NodeState.WAITING, NodeState.RUNNING}


class FlowState(StrEnum):
    """How far a flow has come."""

    RUNNING = "running"
    """Some of its nodes have not ended."""
    COMPLETED = "completed"
    """All have ended, and none has failed or was cancelled; some may have been skipped."""
    FAILED = "failed"
    """All have ended, and one has failed."""
    CANCELLED = "cancelled"
    """All have ended, none has failed, and one was cancelled."""

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to it by itself."""
        return self is not FlowState.RUNNING


# What is to be stored -----------------------------------------------------------------------------


class Edge(NamedTuple):
    """A node waits for the one at this place in the order, and for what."""

    after: int
    condition: Condition


class NodeOrder(NamedTuple):
    """A node that is to be stored.

    `needs` name places in the flow's order. `many`: it is a map, which may have any number of jobs.
    """

    name: str
    order: Order
    after: tuple[Edge, ...] = ()
    many: bool = False
    wanted: bool = False
    needs: Needs = NO_NEEDS
    fail_fast: bool = False


class FlowOrder(NamedTuple):
    """A flow that is to be stored. `keep` and `deadline` are in seconds, from its end and from now."""

    name: str
    nodes: Sequence[NodeOrder]
    keep: float
    deadline: float | None = None


class Made(NamedTuple):
    """A flow that was stored."""

    flow: FlowId
    nodes: Sequence[NodeId]
    jobs: Sequence[Enqueued]

    def without_jobs(self) -> list[NodeId]:
        """The nodes of which nothing will ever arrive."""
        return [node for node, jobs in zip(self.nodes, self.jobs, strict=True) if not jobs]


class Graft(NamedTuple):
    """Nodes that a job's run adds to its flow: what waits for the job's node waits for them too."""

    node: NodeId
    nodes: Sequence[NodeOrder]


def headers_of(node: NodeOrder, nodes: Sequence[NodeId], own: NodeId) -> str | None:
    """The headers of a node's jobs."""
    more = {NODE: str(own)}
    if node.wanted:
        more[WANTED] = "1"
    if node.needs:
        needs = {
            name: [nodes[place[0]]] if isinstance(place, list) else nodes[place]
            for name, place in node.needs.items()
        }
        more[NEEDS] = msgspec.json.encode(needs).decode()
    return encoded({**decoded(node.order.spec.headers), **more})


def wanted(headers: str | None) -> bool:
    """Whether others are given the result of a job with these headers."""
    return headers is not None and WANTED in headers and WANTED in decoded(headers)


def needs_of(headers: str | None) -> Needs:
    """Which results a job with these headers gets."""
    if headers is None or NEEDS not in headers:
        return {}
    text = decoded(headers).get(NEEDS)
    return {} if text is None else msgspec.json.decode(text, type=dict[str, int | list[int]])


# What is read -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """A node as the database knows it.

    `expects` is how many jobs it has; of these, `completed`, `failed` and `cancelled` have ended.
    `first_job` and `last_job` bound their ids, `None` where there are none. `reason` says why it
    was skipped or cancelled.
    """

    id: NodeId
    name: str
    task: str
    state: NodeState
    expects: int
    completed: int
    failed: int
    cancelled: int
    many: bool
    fail_fast: bool
    round: int
    first_job: JobId | None
    last_job: JobId | None
    released_at: datetime | None
    ended_at: datetime | None
    reason: str | None

    @property
    def left(self) -> int:
        """How many of its jobs have not ended."""
        return self.expects - self.completed - self.failed - self.cancelled


class EdgeRecord(NamedTuple):
    """The node `node` waits for `after`."""

    node: NodeId
    after: NodeId
    condition: Condition


@dataclass(frozen=True, slots=True)
class FlowRecord:
    """A flow as the database knows it. `stopping` says why its nodes are being cancelled."""

    id: FlowId
    name: str
    state: FlowState
    created_at: datetime
    deadline: datetime | None
    ended_at: datetime | None
    reason: str | None
    stopping: str | None
    round: int
    nodes: int


class Membership(NamedTuple):
    """The flow and the node that a job belongs to."""

    flow: FlowId
    flow_name: str
    node: str


class FlowGraph(NamedTuple):
    """A flow, its edges, and its nodes in the order of addition, at most as many as asked for.

    `more`: the flow has further nodes.
    """

    flow: FlowRecord
    nodes: Sequence[NodeRecord]
    edges: Sequence[EdgeRecord]
    more: bool


class Decided(NamedTuple):
    """What a look has decided: nodes and flows that have ended, and nodes that have been released."""

    ended: Sequence[NodeId] = ()
    released: Sequence[NodeId] = ()
