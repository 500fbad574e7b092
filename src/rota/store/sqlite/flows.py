"""Flows in a file.

It has one writer at a time, so all is decided in the transaction in which a job ends, and nothing
can be left undecided but flows that are to be stopped.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rota.model.flow import (
    WAITING,
    Condition,
    Decided,
    EdgeRecord,
    FlowGraph,
    FlowId,
    FlowOrder,
    FlowRecord,
    FlowState,
    Made,
    Membership,
    NodeRecord,
    NodeState,
)
from rota.model.headers import NodeId
from rota.model.job import LARGEST_ID, JobId
from rota.model.settlement import Settlement
from rota.model.states import Move, State
from rota.store import deciding, flow_making
from rota.store.flow_making import DEADLINE
from rota.store.membership import PLACES, Arrivals, arrivals, given, listed
from rota.store.operation import Begin, Rows, Steps, Then, operation
from rota.store.sqlite.control import MEMORY_DELETE, RUNS_AGAIN, retry_steps
from rota.store.sqlite.counters import QUEUE, buckets, moved
from rota.store.sqlite.deciding import GROUND, SqliteGround
from rota.store.sqlite.flow_site import FACTS_ADD, SITE
from rota.store.sqlite.statements import json_list, sql

KEEP_RESULTS = sql("flows/keep_results")
MEMBERSHIPS = sql("flows/memberships")
FLOWS = sql("flows/flows")
FLOW = sql("flows/flow")
NODES = sql("flows/nodes")
EDGES = sql("flows/edges")
RESULTS = sql("flows/results")
RESULTS_COUNT = sql("flows/results_count")
RESULTS_FORGET = sql("flows/results_forget")
STOP = sql("flows/stop")
STOPS = sql("flows/stops")
STOPPING = sql("flows/stopping")
OPEN_NODES = sql("flows/open_nodes")
NODES_OPEN = sql("flows/nodes_open")
REOPEN = sql("flows/reopen")
ROUNDS = sql("flows/rounds")
FLOW_ROUND = sql("flows/flow_round")
STOP_FORGET = sql("flows/stop_forget")
DEADLINE_AGAIN = sql("flows/deadline_again")
MEMBERS_ENDED = sql("flows/members_ended")
WAIT_AGAIN = sql("flows/wait_again")
LEAVE = sql("flows/leave")


def settled(settlements: Sequence[Settlement]) -> Steps[None]:
    """What follows for flows when these have been written."""
    came = arrivals(settlements)
    if came is None:
        return
    empty: list[NodeId] = []
    for one in settlements:
        if one.graft is not None and one.move is Move.COMPLETE:
            empty += yield from flow_making.graft(SITE, one.graft)
    if (results := given(settlements)) is not None:
        yield KEEP_RESULTS(given=json_list(list(zip(*results, strict=True))))
    yield from arrived(came, empty)


def arrived(came: Arrivals, empty: Sequence[NodeId] = ()) -> Steps[None]:
    """Jobs of nodes have ended, and others have none: say so, and decide what follows."""
    yield from SITE.arrive(came)
    yield from deciding.decide(GROUND, [*came.nodes, *empty])


def came_back(rows: Rows) -> Steps[None]:
    """Jobs of nodes are retried by hand, as rows of id, queue, former state, `keep_until` and node.

    They count for their nodes again where these have not ended.
    """
    nodes = json_list([int(row[4]) for row in rows])
    open_nodes = {node for (node,) in (yield NODES_OPEN(nodes=nodes))}
    counts: dict[NodeId, list[int]] = {}
    for row in rows:
        if int(row[4]) in open_nodes:
            counts.setdefault(NodeId(int(row[4])), [0, 0, 0])[PLACES[State(row[2])]] -= 1
    if counts:
        yield from SITE.arrive(listed(counts))
    if alone := [row[0] for row in rows if int(row[4]) not in open_nodes]:
        yield LEAVE(jobs=json_list(alone))


def _retry(flow: FlowId) -> Steps[list[JobId]]:
    again = yield REOPEN(flow=flow)
    if not again:
        return []
    yield ROUNDS(nodes=json_list([node for node, *_ in again]))
    yield FLOW_ROUND(flow=flow)
    yield STOP_FORGET(flow=flow)
    yield DEADLINE_AGAIN(flow=flow, reason=DEADLINE)
    released = [(node, round_, "released", None, None) for node, round_, runs, _ in again if runs]
    yield FACTS_ADD(facts=json_list(released))
    back: list[JobId] = []
    for node, _, runs, anew in again:
        jobs = [JobId(job) for (job,) in (yield MEMBERS_ENDED(node=node, anew=anew))]
        if not jobs:
            continue
        found = yield from retry_steps(jobs, alone=True)  # Its nodes are open again.
        if runs:
            back += found
        else:
            yield from _wait_again(NodeId(node), found, anew=anew)
    graph = yield NODES(flow=flow, after=0, name=None, size=-1)
    yield from deciding.decide(GROUND, [NodeId(row[0]) for row in graph])
    return back


def _wait_again(node: NodeId, jobs: Sequence[JobId], *, anew: bool) -> Steps[None]:
    """Let jobs of a node wait again; `anew`: with nothing of what they have done before."""
    ids = json_list(jobs)
    waiting = yield WAIT_AGAIN(jobs=ids, waiting=WAITING)
    yield from moved(
        buckets(map(QUEUE, waiting), State.AVAILABLE),
        buckets(map(QUEUE, waiting), State.SCHEDULED),
    )
    if anew:
        yield MEMORY_DELETE(jobs=ids)
        yield RESULTS_FORGET(node=node, jobs=ids)


class SqliteFlows:
    """See `rota.store.flows.Flows`."""

    @staticmethod
    @operation(Begin.DURABLE, then=Then.WORKERS)
    def create(order: FlowOrder) -> Steps[Made]:
        """Store a flow, and end what has no jobs."""
        made = yield from flow_making.create(SITE, order)
        if ended := made.without_jobs():
            yield from deciding.decide(GROUND, ended)
        return made

    @staticmethod
    @operation(Begin.DURABLE, then=Then.WORKERS | Then.WAITERS)
    def decide(nodes: Sequence[NodeId]) -> Steps[Decided]:
        """Look which have ended, and do what follows."""
        return (yield from deciding.decide(GROUND, nodes))

    @staticmethod
    @operation(Begin.DURABLE, then=Then.WORKERS | Then.WAITERS)
    def overlook() -> Steps[bool]:
        """Go on with flows that are to be stopped."""
        stops = yield STOPS()
        for (flow,) in stops:
            yield from _stop(GROUND, FlowId(flow))
        return bool(stops)

    @staticmethod
    @operation(Begin.NOTHING)
    def flows(
        limit: int = 50,
        *,
        before: FlowId | None = None,
        name: str | None = None,
        state: FlowState | None = None,
    ) -> Steps[list[FlowRecord]]:
        """The newest flows first."""
        rows = yield FLOWS(
            size=limit, before=before or LARGEST_ID, name=name, state=state and state.value
        )
        return [_record(row) for row in rows]

    @staticmethod
    @operation(Begin.SNAPSHOT)
    def flow(
        flow: FlowId, *, limit: int = 1000, after: NodeId | None = None
    ) -> Steps[FlowGraph | None]:
        """A flow with its nodes and edges."""
        rows = yield FLOW(flow=flow)
        if not rows:
            return None
        found = yield NODES(flow=flow, after=after or 0, name=None, size=limit + 1)
        nodes = [_node(row) for row in found[:limit]]
        edges = yield EDGES(nodes=json_list([node.id for node in nodes]), size=10 * limit)
        return FlowGraph(
            _record(rows[0]),
            nodes,
            [EdgeRecord(NodeId(n), NodeId(a), Condition(condition)) for n, a, condition in edges],
            len(found) > limit,
        )

    @staticmethod
    @operation(Begin.NOTHING)
    def node(flow: FlowId, name: str) -> Steps[NodeRecord | None]:
        """The node of that name."""
        rows = yield NODES(flow=flow, after=0, name=name, size=1)
        return _node(rows[0]) if rows else None

    @staticmethod
    @operation(Begin.READING)
    def memberships(nodes: Sequence[NodeId]) -> Steps[dict[NodeId, Membership]]:
        """To which flows nodes belong."""
        rows = yield MEMBERSHIPS(nodes=json_list(nodes))
        return {NodeId(node): Membership(FlowId(flow), *names) for node, flow, *names in rows}

    @staticmethod
    @operation(Begin.READING)
    def runs_again(nodes: Sequence[NodeId]) -> Steps[set[NodeId]]:
        """Those whose failed and cancelled jobs a retry of their flow runs again."""
        return {NodeId(node) for (node,) in (yield RUNS_AGAIN(nodes=json_list(nodes)))}

    @staticmethod
    @operation(Begin.NOTHING)
    def members(node: NodeId, limit: int, after: JobId | None = None) -> Steps[list[JobId]]:
        """The next jobs of a node that have not ended."""
        return (yield from GROUND.members(node, after or JobId(0), limit))

    @staticmethod
    @operation(Begin.NOTHING)
    def results(
        node: NodeId, limit: int, after: JobId | None = None
    ) -> Steps[list[tuple[JobId, str]]]:
        """The next results of a node's jobs."""
        rows = yield RESULTS(node=node, after=after or 0, size=limit)
        return [(JobId(job), value) for job, value in rows]

    @staticmethod
    @operation(Begin.NOTHING)
    def count_results(node: NodeId) -> Steps[int]:
        """How many results of a node's jobs there are."""
        [(count,)] = yield RESULTS_COUNT(node=node)
        return int(count)

    @staticmethod
    @operation(Begin.DURABLE)
    def call_off(flow: FlowId, reason: str) -> Steps[bool]:
        """Let a flow be cancelled."""
        return bool((yield STOP(flow=flow, reason=reason)))

    @staticmethod
    @operation(Begin.DURABLE, then=Then.WAITERS)
    def stop(flow: FlowId, reason: str, keep: Mapping[str, float] | None = None) -> Steps[bool]:
        """Cancel a flow."""
        if not (yield STOP(flow=flow, reason=reason)):
            return False
        yield from _stop(SqliteGround(keep), flow)
        return True

    @staticmethod
    @operation(Begin.DURABLE, then=Then.WORKERS)
    def retry(flow: FlowId) -> Steps[list[JobId]]:
        """Retry what has failed or was cancelled."""
        return (yield from _retry(flow))


def _stop(ground: SqliteGround, flow: FlowId) -> Steps[None]:
    """Cancel what has not ended of a flow that is to be stopped."""
    last = 0
    while nodes := [
        NodeId(node) for (node,) in (yield OPEN_NODES(flow=flow, after=last, size=1000))
    ]:
        for node in nodes:
            yield from deciding.empty(ground, node, flow, 0)
        yield from deciding.decide(ground, nodes)
        last = nodes[-1]
    yield STOPPING(flow=flow)
    yield from ground.end_flows([flow])


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _record(row: Sequence[Any]) -> FlowRecord:
    flow, name, state, made, deadline, ended, *others = row
    times = datetime.fromtimestamp(made, UTC), _moment(deadline), _moment(ended)
    return FlowRecord(FlowId(flow), name, FlowState(state), *times, *others)


def _node(row: Sequence[Any]) -> NodeRecord:
    node, name, task, state, *others = row
    *others, released, ended, reason = others
    given: list[Any] = [*others, _moment(released), _moment(ended), reason]
    return NodeRecord(NodeId(node), name, task, NodeState(state), *given)


FLOWS_OF_STORE = SqliteFlows()
"""The operations on flows."""
