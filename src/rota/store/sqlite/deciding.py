"""Deciding in a file: the statements of `rota.store.deciding`."""

from collections.abc import Mapping, Sequence

from rota.model.flow import FlowId, NodeState
from rota.model.headers import NodeId
from rota.model.job import JobId
from rota.model.states import State
from rota.store.deciding import Looked, Moved
from rota.store.membership import Arrivals
from rota.store.operation import Steps
from rota.store.sqlite.control import cancel_steps
from rota.store.sqlite.counters import buckets, moved
from rota.store.sqlite.flow_site import FACTS_ADD, SITE
from rota.store.sqlite.stage import STAGE
from rota.store.sqlite.statements import json_list, sql

NODES_LOOK = sql("flows/nodes_look")
RIPE = sql("flows/ripe")
HELD_BACK = sql("flows/waiting")
LATER = sql("flows/later")
FLOWS_ENDED = sql("flows/flows_ended")
STOPS_END = sql("flows/stops_end")
ARRIVALS_SUM = sql("flows/arrivals_sum")
ARRIVALS_FORGET = sql("flows/arrivals_forget")
MEMBERS_LEFT = sql("flows/members_left")


class SqliteGround:
    """See `rota.store.deciding.Ground`. `keep` is as of `Store.cancel`."""

    def __init__(self, keep: Mapping[str, float] | None = None) -> None:
        self._keep = keep or {}

    def end(self, nodes: Sequence[NodeId]) -> Steps[list[Looked]]:
        """End those of which all jobs have ended."""
        looked: list[Looked] = []
        facts: list[Sequence[object]] = []
        for (
            node,
            flow,
            expects,
            round_,
            fast,
            rows,
            completed,
            failed,
            cancelled,
            released,
            was,
            stop,
        ) in (yield NODES_LOOK(nodes=json_list(nodes))):
            arrived, outcome = completed + failed + cancelled, was
            if was is None and arrived >= expects and (expects or stop or released):
                if failed:
                    outcome = NodeState.FAILED
                elif cancelled or (stop is not None and not expects):
                    outcome = NodeState.CANCELLED
                else:
                    outcome = NodeState.COMPLETED
                why = stop if outcome is NodeState.CANCELLED else None
                facts.append((node, round_, "ended", outcome.value, why))
            hurries = outcome is None and fast and failed
            left = arrived < expects and bool(hurries or outcome == NodeState.SKIPPED)
            looked.append(
                Looked(NodeId(node), FlowId(flow), outcome is not None, 0 if left else None, rows)
            )
        if facts:
            yield FACTS_ADD(facts=json_list(facts))
        return looked

    def release(self, nodes: Sequence[NodeId]) -> Steps[list[Moved]]:
        """Release or skip what waits for these."""
        found: list[Moved] = []
        facts: list[Sequence[object]] = []
        for node, flow, round_, expects, queue, first, last, at, delay, unmet, hopes, failed in (
            yield RIPE(nodes=json_list(nodes))
        ):
            why = unmet
            if why is None and hopes and not failed:
                why = "nothing that it waited for has failed"
            found.append(Moved(NodeId(node), FlowId(flow), why is None, expects, queue))
            if why is not None:
                facts.append((node, round_, "ended", NodeState.SKIPPED.value, why))
                continue
            facts.append((node, round_, "released", None, None))
            jobs = [job for (job,) in (yield HELD_BACK(node=node, first=first, last=last))]
            if jobs and (at is not None or delay is not None):
                yield LATER(jobs=json_list(jobs), at=at, delay=delay)
            elif jobs:
                yield STAGE(jobs=json_list(jobs))
                yield from moved(
                    {(queue, State.SCHEDULED.value, None): len(jobs)},
                    buckets([queue] * len(jobs), State.AVAILABLE),
                )
        if facts:
            yield FACTS_ADD(facts=json_list(facts))
        return found

    def squeeze(self, node: NodeId) -> Steps[None]:
        """Add the arrivals at a node up in one row."""
        [(completed, failed, cancelled)] = yield ARRIVALS_SUM(node=node)
        yield ARRIVALS_FORGET(node=node)
        yield from SITE.arrive(Arrivals([node], [completed], [failed], [cancelled]))

    def wake(self, queues: Sequence[str]) -> Steps[None]:
        """Nothing: the connection wakes them after the operation."""
        del queues
        yield from ()

    def end_flows(self, flows: Sequence[FlowId]) -> Steps[None]:
        """End those of which all nodes have ended."""
        yield FLOWS_ENDED(flows=json_list(flows))
        yield STOPS_END(flows=json_list(flows))

    def members(self, node: NodeId, after: JobId, limit: int) -> Steps[list[JobId]]:
        """The next jobs of a node that have not ended."""
        rows = yield MEMBERS_LEFT(node=node, after=after, size=limit)
        return [JobId(row[0]) for row in rows]

    def cancel(self, jobs: Sequence[JobId], flow: FlowId, round_: int) -> Steps[bool]:
        """Cancel these jobs: what was decided holds, since nobody else can write."""
        del flow, round_
        yield from cancel_steps(jobs, self._keep, None)
        return True


GROUND = SqliteGround()
