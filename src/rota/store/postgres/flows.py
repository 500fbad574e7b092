"""Flows on PostgreSQL: what they are made of, and what follows when their nodes end.

Nothing is updated on the way of a flow that nobody touches by hand: arrivals and facts are
appended, and what is decided twice meets a key. What was committed and not looked at is found by
the ids of transactions, from the snapshot of the newest mark on, as with signals.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from rota.model.enqueued import Enqueued
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
from rota.model.job import LARGEST_ID, JobId, Order
from rota.store import deciding, flow_making
from rota.store.flow_making import DEADLINE, EdgeRow, NodeRow
from rota.store.membership import Arrivals
from rota.store.operation import Begin, Steps, operation
from rota.store.postgres.control import (
    MEMORY_BACK,
    MEMORY_DELETE,
    NOTE_BACK,
    RUNS_AGAIN,
    WAKE,
    retry_steps,
)
from rota.store.postgres.deciding import PostgresGround, decide, ground_of
from rota.store.postgres.enqueue import append
from rota.store.postgres.enqueue_keyed_many import ATTEMPT_BEGIN, ATTEMPT_KEEP, ATTEMPT_UNDO
from rota.store.postgres.failures import LockTimeout
from rota.store.postgres.settle_write import ARRIVE, came_back
from rota.store.postgres.statements import sql

FLOW_ADD = sql("flows/flow_add")
NODES_TAKE = sql("flows/nodes_take")
NODES_ADD = sql("flows/nodes_add")
EDGES_ADD = sql("flows/edges_add")
HOME = sql("flows/home")
FOLLOWERS = sql("flows/followers")
FRESH = sql("flows/fresh")
MARK = sql("flows/mark")
MEMBERSHIPS = sql("flows/memberships")
MEMBERS_LEFT = sql("flows/members_left")
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
STOPPED = sql("flows/stopped")
OPEN_NODES = sql("flows/open_nodes")
FLOW_LOCK = sql("flows/flow_lock")
REOPEN = sql("flows/reopen")
MEMBERS_ENDED = sql("flows/members_ended")
WAIT_AGAIN = sql("flows/wait_again")
DEADLINE_AGAIN = sql("flows/deadline_again")
LOOK_AGAIN = sql("flows/look_again")
LOOK_LATER = sql("flows/look_later")


class PostgresSite:
    """See `rota.store.flow_making.Site`."""

    def add_flow(self, order: FlowOrder) -> Steps[FlowId]:
        """Store a flow without nodes."""
        [(flow,)] = yield FLOW_ADD(
            name=order.name, keep=order.keep, deadline=order.deadline, reason=DEADLINE
        )
        return FlowId(flow)

    def take(self, count: int) -> Steps[list[NodeId]]:
        """Numbers for so many nodes."""
        [(ids,)] = yield NODES_TAKE(nodes=count)
        return [NodeId(node) for node in ids]

    def append(self, order: Order) -> Steps[Enqueued]:
        """Store jobs."""
        return append(order)

    def add_nodes(
        self, flow: FlowId, nodes: Sequence[NodeRow], roots: Sequence[NodeId]
    ) -> Steps[None]:
        """Store nodes, of which the roots are released."""
        yield NODES_ADD(
            flow=flow,
            nodes=[node.id for node in nodes],
            firsts=[node.first_job for node in nodes],
            lasts=[node.last_job for node in nodes],
            ats=[node.at for node in nodes],
            delays=[node.delay for node in nodes],
            expects=[node.expects for node in nodes],
            many=[node.many for node in nodes],
            fail_fast=[node.fail_fast for node in nodes],
            names=[node.name for node in nodes],
            tasks=[node.task for node in nodes],
            queues=[node.queue for node in nodes],
            roots=list(roots),
        )

    def add_edges(self, edges: Sequence[EdgeRow]) -> Steps[None]:
        """Store edges."""
        yield EDGES_ADD(
            nodes=[edge.node for edge in edges],
            afters=[edge.after for edge in edges],
            conditions=[edge.condition for edge in edges],
        )

    def arrive(self, arrivals: Arrivals) -> Steps[None]:
        """Say that jobs of nodes have ended."""
        yield ARRIVE(**arrivals._asdict())

    def home(self, node: NodeId) -> Steps[FlowId | None]:
        """The flow of a node."""
        rows = yield HOME(node=node)
        return FlowId(rows[0][0]) if rows else None

    def followers(self, node: NodeId) -> Steps[list[tuple[NodeId, str]]]:
        """What waits for a node, and for what."""
        return [(NodeId(waiting), condition) for waiting, condition in (yield FOLLOWERS(node=node))]

    def attempt(self) -> Steps[None]:
        """From here on all can be taken back."""
        yield ATTEMPT_BEGIN()

    def take_back(self) -> Steps[None]:
        """Take back what was done since the attempt."""
        yield ATTEMPT_UNDO()

    def keep(self) -> Steps[None]:
        """Keep what was done since the attempt."""
        yield ATTEMPT_KEEP()


SITE = PostgresSite()


class PostgresFlows:
    """See `rota.store.flows.Flows`."""

    @staticmethod
    @operation(Begin.DURABLE)
    def create(order: FlowOrder) -> Steps[Made]:
        """Store a flow."""
        return (yield from flow_making.create(SITE, order))

    @staticmethod
    @operation(Begin.NOTHING)
    def decide(nodes: Sequence[NodeId]) -> Steps[Decided]:
        """Look which have ended, and do what follows."""
        decided, _ = yield from decide((yield from ground_of()), nodes)
        # Upkeep looks at those that are held: no mark has seen their arrivals.
        return decided

    @staticmethod
    @operation(Begin.NOTHING)
    def overlook() -> Steps[bool]:
        """Decide what was left undecided, and go on with flows that are to be stopped."""
        ground = yield from ground_of()
        [(snapshot, fresh)] = yield FRESH()
        if fresh:
            _, held = yield from decide(ground, [NodeId(node) for node in fresh])
            if held:
                yield LOOK_LATER(nodes=held)
            # Only now: a mark says that everything was decided.
            yield MARK(snapshot=snapshot)
        stops = yield STOPS()
        for (flow,) in stops:
            with suppress(LockTimeout):
                yield from _stop(ground, FlowId(flow))
        return bool(fresh or stops)

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
        return [_record(*row) for row in rows]

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
        nodes = [_node(*row) for row in found[:limit]]
        edges = yield EDGES(nodes=[node.id for node in nodes], size=10 * limit)
        return FlowGraph(
            _record(*rows[0]),
            nodes,
            [EdgeRecord(NodeId(n), NodeId(a), Condition(condition)) for n, a, condition in edges],
            len(found) > limit,
        )

    @staticmethod
    @operation(Begin.READING)
    def node(flow: FlowId, name: str) -> Steps[NodeRecord | None]:
        """The node of that name."""
        rows = yield NODES(flow=flow, after=0, name=name, size=1)
        return _node(*rows[0]) if rows else None

    @staticmethod
    @operation(Begin.READING)
    def memberships(nodes: Sequence[NodeId]) -> Steps[dict[NodeId, Membership]]:
        """To which flows nodes belong."""
        rows = yield MEMBERSHIPS(nodes=list(nodes))
        return {NodeId(node): Membership(FlowId(flow), *names) for node, flow, *names in rows}

    @staticmethod
    @operation(Begin.READING)
    def runs_again(nodes: Sequence[NodeId]) -> Steps[set[NodeId]]:
        """Those whose failed and cancelled jobs a retry of their flow runs again."""
        return {NodeId(node) for (node,) in (yield RUNS_AGAIN(nodes=list(nodes)))}

    @staticmethod
    @operation(Begin.READING)
    def members(node: NodeId, limit: int, after: JobId | None = None) -> Steps[list[JobId]]:
        """The next jobs of a node that may not have ended."""
        rows = yield MEMBERS_LEFT(node=node, after=after or 0, size=limit)
        return [JobId(row[0]) for row in rows]

    @staticmethod
    @operation(Begin.READING)
    def results(
        node: NodeId, limit: int, after: JobId | None = None
    ) -> Steps[list[tuple[JobId, str]]]:
        """The next results of a node's jobs."""
        rows = yield RESULTS(node=node, after=after or 0, size=limit)
        return [(JobId(job), value) for job, value in rows]

    @staticmethod
    @operation(Begin.READING)
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
    @operation(Begin.NOTHING)
    def stop(flow: FlowId, reason: str, keep: Mapping[str, float] | None = None) -> Steps[bool]:
        """Cancel a flow."""
        if not (yield STOP(flow=flow, reason=reason)):
            return False
        with suppress(LockTimeout):  # Upkeep goes on with it.
            yield from _stop((yield from ground_of(keep)), flow)
        return True

    @staticmethod
    @operation(Begin.DURABLE)
    def retry(flow: FlowId) -> Steps[list[JobId]]:
        """Retry what has failed or was cancelled."""
        return (yield from _retry(flow))


def _retry(flow: FlowId) -> Steps[list[JobId]]:
    if not (yield FLOW_LOCK(flow=flow)):
        return []
    back: list[JobId] = []
    again = yield REOPEN(flow=flow)
    if again:
        yield DEADLINE_AGAIN(flow=flow, reason=DEADLINE)
    for node, runs, anew in again:
        last = JobId(0)
        while rows := (yield MEMBERS_ENDED(node=node, anew=anew, after=last, size=deciding.PAGE)):
            jobs = [JobId(job) for (job,) in rows]
            last = jobs[-1]
            if runs:
                back += yield from retry_steps(jobs, alone=True)  # Its nodes are open again.
            else:
                yield from _wait_again(node, jobs, anew=anew)
    # What was dropped by deciders because of this is found by the ids of these rows' transaction.
    yield LOOK_AGAIN(flow=flow)
    yield WAKE()
    return back


def _wait_again(node: NodeId, jobs: Sequence[JobId], *, anew: bool) -> Steps[None]:
    """Let jobs of a node wait again; `anew`: with nothing of what they have done before."""
    rows = yield WAIT_AGAIN(jobs=list(jobs), waiting=WAITING)
    yield from came_back((state, member) for _, member, state in rows)
    waiting = [job for job, *_ in rows]
    yield NOTE_BACK(jobs=waiting)
    if anew:
        yield MEMORY_DELETE(jobs=waiting)
        yield RESULTS_FORGET(node=node, jobs=waiting)
    else:
        yield MEMORY_BACK(jobs=waiting)


def _stop(ground: PostgresGround, flow: FlowId) -> Steps[None]:
    """Cancel what has not ended of a flow that is to be stopped."""
    last = 0
    while nodes := [
        (NodeId(node), round_)
        for node, round_ in (yield OPEN_NODES(flow=flow, after=last, size=1000))
    ]:
        for node, round_ in nodes:
            yield from deciding.empty(ground, node, flow, round_)
        yield from deciding.decide(ground, [node for node, _ in nodes])
        last = nodes[-1][0]
    yield from ground.end_flows([flow])
    yield STOPPING(flow=flow)
    yield STOPPED(flow=flow)


def _record(flow: int, name: str, state: str, *others: object) -> FlowRecord:
    return FlowRecord(FlowId(flow), name, FlowState(state), *others)  # type: ignore[arg-type]


def _node(node: int, name: str, task: str, state: str, *others: object) -> NodeRecord:
    return NodeRecord(NodeId(node), name, task, NodeState(state), *others)  # type: ignore[arg-type]


FLOWS_OF_STORE = PostgresFlows()
"""The operations on flows."""
