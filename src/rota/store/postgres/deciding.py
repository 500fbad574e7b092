"""Deciding on PostgreSQL: the statements, and what becomes of nodes whose locks others hold.

A caller may cancel or retry jobs of a flow in a transaction that stays open. What it holds a
decider does not wait for, since a decider is a settler or upkeep: such nodes are left, and upkeep
looks at them again.
"""

from collections.abc import Mapping, Sequence

from rota.model.flow import Decided, FlowId
from rota.model.headers import NodeId
from rota.model.job import JobId
from rota.store import deciding
from rota.store.deciding import Looked, Moved
from rota.store.operation import Apart, Begin, Stepped, Steps, surroundings
from rota.store.postgres.control import cancel_steps
from rota.store.postgres.failures import LockTimeout
from rota.store.postgres.statements import sql

END = sql("flows/end")
RELEASE = sql("flows/release")
FLOW_END = sql("flows/flow_end")
SQUEEZE = sql("flows/squeeze_arrivals")
MEMBERS_LEFT = sql("flows/members_left")
ROUND_LOCK = sql("flows/round_lock")
WAKE_ONE = sql("flows/wake")
LOCK_WAIT = sql("tidy/lock_wait")

PATIENCE = "10ms"
"""How long a decider waits for a lock. A caller may hold one for as long as its transaction is
open, and deciders settle, stage and rescue as well.
"""

HELD = 100
"""So many nodes are tried one by one where others hold locks; the rest is looked at later."""


class PostgresGround:
    """See `rota.store.deciding.Ground`. `keep` is as of `Store.cancel`."""

    def __init__(self, keep: Mapping[str, float], *, inside: bool) -> None:
        self._keep = keep
        self._inside = inside
        # In a caller's transaction the caller's own setting counts.
        self._patience = None if inside else PATIENCE

    def end(self, nodes: Sequence[NodeId]) -> Steps[list[Looked]]:
        """End those of which all jobs have ended."""
        return [
            Looked(NodeId(node), FlowId(flow), *others)
            for node, flow, *others in (yield END(nodes=list(nodes), patience=self._patience))
        ]

    def release(self, nodes: Sequence[NodeId]) -> Steps[list[Moved]]:
        """Release or skip what waits for these."""
        return [
            Moved(NodeId(node), FlowId(flow), fact == "released", expects, queue)
            for node, flow, fact, expects, queue in (
                yield RELEASE(nodes=list(nodes), patience=self._patience)
            )
        ]

    def squeeze(self, node: NodeId) -> Steps[None]:
        """Add the arrivals at a node up in one row."""
        yield SQUEEZE(node=node)

    def wake(self, queues: Sequence[str]) -> Steps[None]:
        """Wake workers of these queues."""
        for queue in queues:
            yield WAKE_ONE(wake=queue)

    def end_flows(self, flows: Sequence[FlowId]) -> Steps[None]:
        """End those of which all nodes have ended."""
        yield FLOW_END(flows=list(flows))

    def members(self, node: NodeId, after: JobId, limit: int) -> Steps[list[JobId]]:
        """The next jobs of a node that may not have ended."""
        rows = yield MEMBERS_LEFT(node=node, after=after, size=limit)
        return [JobId(row[0]) for row in rows]

    def cancel(self, jobs: Sequence[JobId], flow: FlowId, round_: int) -> Steps[bool]:
        """Cancel these jobs, in a transaction of their own."""
        steps = self._cancel(jobs, flow, round_)
        if self._inside:
            return (yield from steps)
        [(same,)] = yield Apart(Stepped("cancel", steps, Begin.DURABLE))
        return bool(same)

    def _cancel(self, jobs: Sequence[JobId], flow: FlowId, round_: int) -> Steps[bool]:
        if not self._inside:
            yield LOCK_WAIT()
        if not (yield ROUND_LOCK(flow=flow, round=round_)):
            return False
        yield from cancel_steps(jobs, self._keep)
        return True


def ground_of(keep: Mapping[str, float] | None = None) -> Steps[PostgresGround]:
    """The statements for the connection that runs the operation."""
    return PostgresGround(keep or {}, inside=(yield from surroundings()).inside)


def decide(ground: PostgresGround, nodes: Sequence[NodeId]) -> Steps[tuple[Decided, list[NodeId]]]:
    """Decide; and the nodes left undecided, where other transactions hold what it would lock."""
    try:
        return (yield from deciding.decide(ground, nodes)), []
    except LockTimeout:
        if len(nodes) == 1:
            return Decided(), list(nodes)
    ended: list[NodeId] = []
    released: list[NodeId] = []
    held: list[NodeId] = []
    for number, node in enumerate(nodes):
        if len(held) == HELD:
            held += nodes[number:]
            break
        alone, waiting = yield from decide(ground, [node])
        ended += alone.ended
        released += alone.released
        held += waiting
    return Decided(ended, released), held
