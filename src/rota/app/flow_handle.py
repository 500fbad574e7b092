"""A handle on a flow: look at it, wait for it, cancel it."""

import time
from collections.abc import Generator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from rota.app.handle import JobHandle
from rota.errors import ConfigError, FlowNotFound, JobNotFinished
from rota.model.enqueued import Placing
from rota.model.flow import FlowGraph, FlowId, FlowRecord, FlowState, NodeRecord
from rota.store.execute import adrive, drive
from rota.store.operation import Operation

if TYPE_CHECKING:
    from rota.app.enqueue import Enqueuer
    from rota.model.job import JobId
    from rota.store.flows import Flows

T = TypeVar("T")

Steps = Generator[Operation[Any], Any, T]
"""Operations that are to be run, each of which is given its answer."""

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
"""Seconds between two looks of one that waits: each pause is longer than the one before by half."""

STOPPED_BY_HAND = "it was cancelled by hand"
"""Why the nodes of such a flow are cancelled."""


class FlowHandle:
    """Looks at one flow, waits for it, cancels it. Made by `Rota.flow`, or by `Rota.flows.get`."""

    __slots__ = ("_enqueuer", "id")

    def __init__(self, enqueuer: "Enqueuer", flow: FlowId) -> None:
        self._enqueuer = enqueuer
        self.id = flow

    def __repr__(self) -> str:
        return f"<FlowHandle {self.id}>"

    @property
    def shard(self) -> str | None:
        """The name of its database, where several are one app."""
        return self._enqueuer.shard

    # Looking -----------------------------------------------------------------------------------

    def record(self) -> FlowRecord:
        """What is known of the flow.

        Raises:
            FlowNotFound: There is no such flow: its transaction has not committed yet, or its
                retention is over.
        """
        return self._run(self._looking()).flow

    async def arecord(self) -> FlowRecord:
        """`record` for async code."""
        return (await self._arun(self._looking())).flow

    @property
    def state(self) -> FlowState:
        """The state that the flow is in.

        Raises:
            FlowNotFound: There is no such flow.
        """
        return self.record().state

    async def astate(self) -> FlowState:
        """`state` for async code."""
        return (await self.arecord()).state

    def graph(self, *, limit: int = 1000) -> FlowGraph:
        """The flow with its first nodes, as many as are asked for, and what they wait for.

        Raises:
            FlowNotFound: There is no such flow.
        """
        return self._run(self._looking(limit))

    async def agraph(self, *, limit: int = 1000) -> FlowGraph:
        """`graph` for async code."""
        return await self._arun(self._looking(limit))

    def nodes(self) -> list[NodeRecord]:
        """All nodes, in the order in which they were added.

        Raises:
            FlowNotFound: There is no such flow.
        """
        return self._run(self._all_nodes())

    async def anodes(self) -> list[NodeRecord]:
        """`nodes` for async code."""
        return await self._arun(self._all_nodes())

    def job(self, node: str) -> JobHandle[Any]:
        """A handle on the job of a node, by the node's name.

        Raises:
            ConfigError: There is no such node, or it is a map.
        """
        return self._job(node, self._run(self._node(node)))

    async def ajob(self, node: str) -> JobHandle[Any]:
        """`job` for async code."""
        return self._job(node, await self._arun(self._node(node)))

    def wait(self, timeout: float | None = None) -> FlowRecord:
        """Wait until all nodes have ended, well or not; the record then.

        Args:
            timeout: Seconds to wait; `None` waits forever, 0 only looks.

        Raises:
            JobNotFinished: The time is up.
            FlowNotFound: There is no such flow.
        """
        pause, end = FIRST_PAUSE, None if timeout is None else time.monotonic() + timeout
        while not (record := self.record()).state.ended:
            time.sleep(self._pause(pause, end))
            pause = min(1.5 * pause, LONGEST_PAUSE)
        return record

    async def await_ended(self, timeout: float | None = None) -> FlowRecord:  # noqa: ASYNC109 - as `wait`
        """`wait` for async code, which cannot be called `await`."""
        import asyncio  # here: see `rota.store.execute.in_thread`

        pause, end = FIRST_PAUSE, None if timeout is None else time.monotonic() + timeout
        while not (record := await self.arecord()).state.ended:
            await asyncio.sleep(self._pause(pause, end))
            pause = min(1.5 * pause, LONGEST_PAUSE)
        return record

    # Acting ------------------------------------------------------------------------------------

    def cancel(self) -> bool:
        """Cancel the flow; false where it has ended.

        No node begins any more, jobs that wait are cancelled, and running ones are asked to stop.
        """
        database = self._enqueuer.database
        return database.run(self._cancelling(), database.joining(None))

    async def acancel(self) -> bool:
        """`cancel` for async code."""
        database = self._enqueuer.database
        return await database.arun(self._cancelling(), await database.ajoining(None))

    def retry(self) -> int:
        """Retry what failed or was cancelled; begin anew whatever waits for it, even if it has run.

        Returns how many jobs are available now; other completed ones stay as they are.
        """
        return self._run(self._retrying())

    async def aretry(self) -> int:
        """`retry` for async code."""
        return await self._arun(self._retrying())

    # -------------------------------------------------------------------------------------------

    @property
    def _flows(self) -> "Flows":
        return self._enqueuer.database.store.flows

    def _run(self, steps: Steps[T]) -> T:
        database = self._enqueuer.database
        return drive(steps, partial(database.run, conn=database.joining(None)))

    async def _arun(self, steps: Steps[T]) -> T:
        database = self._enqueuer.database
        return await adrive(steps, partial(database.arun, conn=await database.ajoining(None)))

    def _cancelling(self) -> Operation[bool]:
        return self._flows.stop(self.id, STOPPED_BY_HAND, self._enqueuer.queues.cancelled())

    def _retrying(self) -> Steps[int]:
        jobs: list[JobId] = yield self._flows.retry(self.id)
        # What waits for nodes that had not to run again.
        nodes = yield from self._all_nodes()
        yield self._flows.decide([node.id for node in nodes])
        return len(jobs)

    def _looking(self, limit: int = 0) -> Steps[FlowGraph]:
        found: FlowGraph | None = yield self._flows.flow(self.id, limit=limit)
        if found is None:
            message = f"there is no flow {self.id}: it has not been committed yet, or its retention is over"
            raise FlowNotFound(message)
        return found

    def _all_nodes(self) -> Steps[list[NodeRecord]]:
        graph = yield from self._looking(1000)
        nodes = [*graph.nodes]
        while graph.more:
            graph = yield self._flows.flow(self.id, after=nodes[-1].id)
            nodes += graph.nodes
        return nodes

    def _node(self, name: str) -> Steps[NodeRecord | None]:
        found: NodeRecord | None = yield self._flows.node(self.id, name)
        return found

    def _job(self, name: str, node: NodeRecord | None) -> JobHandle[Any]:
        if node is None:
            message = f"flow {self.id} has no node {name!r}; .nodes() has all of them"
            raise ConfigError(message)
        if node.many or node.first_job is None:
            message = f"node {name!r} has {node.expects} jobs, and .job() is for nodes with one of their own"
            raise ConfigError(message)
        return self._enqueuer.handle(node.first_job, self._enqueuer.tasks.codec, Placing.CREATED)

    def _pause(self, pause: float, end: float | None) -> float:
        if end is None:
            return pause
        left = end - time.monotonic()
        if left <= 0:
            message = f"flow {self.id} has not ended in time"
            raise JobNotFinished(message)
        return min(pause, left)
