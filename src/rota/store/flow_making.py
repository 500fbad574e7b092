"""Storing flows: one procedure for all backends, in one transaction. It stores every job of a flow.

Jobs of nodes that wait for nothing are enqueued like any others; those of other nodes are scheduled
for a time that never comes, from where a release takes them.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, Protocol

from rota.errors import JobExists
from rota.model.enqueued import Enqueued, Placing
from rota.model.flow import WAITING, FlowId, FlowOrder, Graft, Made, NodeOrder, headers_of
from rota.model.headers import NodeId
from rota.model.job import JobId, JobSpec, Order
from rota.model.unique import OnConflict
from rota.store.membership import Arrivals
from rota.store.operation import Steps, surroundings

DEADLINE = "its deadline has passed"
"""Why a flow is cancelled that has one."""


class NodeRow(NamedTuple):
    """A node as it is stored."""

    id: NodeId
    first_job: JobId | None
    last_job: JobId | None
    at: datetime | None
    delay: float | None
    expects: int
    many: bool
    fail_fast: bool
    name: str
    task: str
    queue: str


class EdgeRow(NamedTuple):
    """An edge as it is stored."""

    node: NodeId
    after: NodeId
    condition: str


class Site(Protocol):
    """A backend's statements."""

    def add_flow(self, order: FlowOrder) -> Steps[FlowId]:
        """Store a flow without nodes."""
        ...

    def take(self, count: int) -> Steps[list[NodeId]]:
        """Numbers for so many nodes."""
        ...

    def append(self, order: Order) -> Steps[Enqueued]:
        """Store jobs."""
        ...

    def add_nodes(
        self, flow: FlowId, nodes: Sequence[NodeRow], roots: Sequence[NodeId]
    ) -> Steps[None]:
        """Store nodes, of which the roots are released."""
        ...

    def add_edges(self, edges: Sequence[EdgeRow]) -> Steps[None]:
        """Store edges."""
        ...

    def arrive(self, arrivals: Arrivals) -> Steps[None]:
        """Say that jobs of nodes have ended."""
        ...

    def home(self, node: NodeId) -> Steps[FlowId | None]:
        """The flow of a node."""
        ...

    def followers(self, node: NodeId) -> Steps[list[tuple[NodeId, str]]]:
        """What waits for a node, and for what."""
        ...

    def attempt(self) -> Steps[None]:
        """From here on all can be taken back, in the transaction that there is."""
        ...

    def take_back(self) -> Steps[None]:
        """Take back what was done since the attempt."""
        ...

    def keep(self) -> Steps[None]:
        """Keep what was done since the attempt."""
        ...


def create(site: Site, order: FlowOrder) -> Steps[Made]:
    """Store a flow.

    Raises:
        JobExists: A key is taken, and that is an error; then nothing is stored.
    """
    if not any(map(_refuses, order.nodes)) or not (yield from surroundings()).inside:
        return (yield from _create(site, order))
    # A caller's transaction may go on after the error.
    yield from site.attempt()
    try:
        made = yield from _create(site, order)
    except JobExists:
        yield from site.take_back()
        raise
    yield from site.keep()
    return made


def _refuses(node: NodeOrder) -> bool:
    unique = node.order.spec.unique
    return unique is not None and unique.on_conflict == OnConflict.RAISE


def _create(site: Site, order: FlowOrder) -> Steps[Made]:
    flow = yield from site.add_flow(order)
    ids = yield from site.take(len(order.nodes))
    jobs = yield from _add(site, flow, ids, order.nodes)
    return Made(flow, ids, jobs)


def graft(site: Site, graft: Graft) -> Steps[list[NodeId]]:
    """Add nodes a job's run asked for, in the transaction that ends it, unless its flow is gone.

    Gives those without jobs, of which nothing will ever arrive.

    The job has not arrived at its node before this transaction, so that node has not ended, and
    nothing that waits for it has begun.
    """
    flow = yield from site.home(graft.node)
    if flow is None:
        return []
    ids = yield from site.take(len(graft.nodes))
    jobs = yield from _add(site, flow, ids, graft.nodes)
    followers = yield from site.followers(graft.node)
    yield from site.add_edges(
        [EdgeRow(waiting, new, condition) for waiting, condition in followers for new in ids]
    )
    return Made(flow, ids, jobs).without_jobs()


def _add(
    site: Site, flow: FlowId, ids: Sequence[NodeId], nodes: Sequence[NodeOrder]
) -> Steps[list[Enqueued]]:
    # Without a notification where the transaction is to be prepared: a worker finds the jobs by
    # polling.
    quiet = not (yield from surroundings()).notify
    rows, jobs, missing = [], [], dict[NodeId, int]()
    for own, node in zip(ids, nodes, strict=True):
        spec = replace(node.order.spec, headers=headers_of(node, ids, own))
        delay, at = spec.delay, spec.at
        if quiet:
            spec = replace(spec, wake=False)
        if node.after:
            spec = _waiting(spec)
        stored = yield from site.append(node.order._replace(spec=spec))
        mine = _own(stored)
        if len(mine) < len(stored):
            missing[own] = len(stored) - len(mine)
        rows.append(
            NodeRow(
                own, min(mine, default=None), max(mine, default=None), at, delay, len(stored),
                node.many, node.fail_fast, node.name, spec.task, spec.queue,
            )
        )  # fmt: skip
        jobs.append(mine)
    roots = [own for own, node in zip(ids, nodes, strict=True) if not node.after]
    yield from site.add_nodes(flow, rows, roots)
    edges = [
        EdgeRow(own, ids[edge.after], edge.condition.value)
        for own, node in zip(ids, nodes, strict=True)
        for edge in node.after
    ]
    if edges:
        yield from site.add_edges(edges)
    if missing:
        none = [0] * len(missing)
        yield from site.arrive(Arrivals(list(missing), none, none, list(missing.values())))
    return jobs


def _waiting(spec: JobSpec) -> JobSpec:
    """The spec of jobs that wait for others: they take no time of their own before these have ended."""
    unique = spec.unique
    if unique is not None and unique.cap is not None:
        # A cap would let them begin.
        unique = replace(unique, cap=None)
    return replace(spec, delay=WAITING, at=None, wake=False, unique=unique)


def _own(stored: Enqueued) -> Enqueued:
    """The jobs of the node, each once: new ones, and replaced ones, which are its own from now on.

    Jobs whose keys others have, and those of a key that is given again later, are no jobs of the
    node's.
    """
    if stored.placings is None:
        return stored
    placed: dict[JobId, Placing] = {}
    for job, placing in stored.placed:
        if placing is not Placing.SKIPPED:
            placed.setdefault(job, placing)
    return Enqueued(placed, list(placed.values()))
