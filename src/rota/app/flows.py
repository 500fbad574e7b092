"""The flows of an app: listing them, and finding one again."""

from collections.abc import Sequence

from rota.app.enqueue import Enqueuer
from rota.app.flow_handle import FlowHandle
from rota.model.flow import FlowId, FlowRecord, FlowState, Membership
from rota.model.headers import NODE, NodeId
from rota.model.job import JobId, JobRecord
from rota.model.states import State
from rota.store.operation import Operation

Records = list[FlowRecord]


class Flows:
    """Looking at flows. Made by `Rota.flows`."""

    def __init__(self, enqueuer: Enqueuer) -> None:
        self._enqueuer = enqueuer

    def get(self, flow: int) -> FlowHandle:
        """A handle on the flow with that id. Nothing is looked up yet."""
        return FlowHandle(self._enqueuer, FlowId(flow))

    def list(
        self,
        *,
        limit: int = 50,
        before: int | None = None,
        name: str | None = None,
        state: FlowState | str | None = None,
    ) -> Records:
        """The newest flows first.

        Args:
            limit: How many at the most.
            before: Those with smaller ids than this one.
            name: Those of this name.
            state: Those in this state, among 10,000 at the most.
        """
        return self._enqueuer.database.run(self._listing(limit, before, name, state))

    async def alist(
        self,
        *,
        limit: int = 50,
        before: int | None = None,
        name: str | None = None,
        state: FlowState | str | None = None,
    ) -> Records:
        """`list` for async code."""
        return await self._enqueuer.database.arun(self._listing(limit, before, name, state))

    def memberships(self, jobs: Sequence[JobRecord]) -> dict[JobId, Membership]:
        """The flow and the node of each of these jobs that belongs to one."""
        nodes = _nodes(jobs)
        if not nodes:
            return {}
        database = self._enqueuer.database
        found = database.run(database.store.flows.memberships(sorted(set(nodes.values()))))
        return {job: found[node] for job, node in nodes.items() if node in found}

    def left_to_retry(self, jobs: Sequence[JobRecord]) -> dict[JobId, Membership]:
        """Which of these jobs `FlowHandle.retry` would run again, with the flow and node of each.

        These have failed or were cancelled, and their nodes have ended. `rota.jobs.retry` leaves
        them as they are.
        """
        ended = [job for job in jobs if job.state in {State.DISCARDED, State.CANCELLED}]
        nodes = _nodes(ended)
        if not nodes:
            return {}
        database = self._enqueuer.database
        again = database.run(database.store.flows.runs_again(sorted(set(nodes.values()))))
        return self.memberships([job for job in ended if nodes.get(job.id) in again])

    def _listing(
        self, limit: int, before: int | None, name: str | None, state: FlowState | str | None
    ) -> Operation[Records]:
        return self._enqueuer.database.store.flows.flows(
            limit,
            before=None if before is None else FlowId(before),
            name=name,
            state=None if state is None else FlowState(state),
        )


def _nodes(jobs: Sequence[JobRecord]) -> dict[JobId, NodeId]:
    """The nodes of those jobs that belong to one."""
    return {job.id: NodeId(int(job.headers[NODE])) for job in jobs if NODE in job.headers}
