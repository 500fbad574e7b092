"""The executor of handlers on a cluster: jobs go there in bundles, and each is settled on its own.

What an engine takes for a task, a millisecond or so, is more than many a handler needs. So jobs
that were short so far travel together, as many as fill `SPAN` seconds; a job of which nothing is
known, or that is long, travels alone. A bundle that takes longer than was thought gives back what
has not begun (see `node`).

A node may be gone for good, or only for us. What is not answered is a failed attempt, unless it was
told to stop; a handler's transaction that may still be under way is fenced (see
`remote_transaction`).
"""

import asyncio
import gc
import itertools
import logging
import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable
from typing import Any

import msgspec

from rota.app.task import Task
from rota.dispatch import Events
from rota.errors import ConfigError
from rota.events import ClusterChanged
from rota.model.notes import Notes, RunNotes
from rota.model.settlement import NodeLost
from rota.worker.call import Call, Stop
from rota.worker.ending import too_long
from rota.worker.executors.bundle import Bundle, Ran, Report
from rota.worker.executors.engine import Engine, Slot
from rota.worker.executors.node import PACE
from rota.worker.executors.remote import Answer, Order
from rota.worker.executors.remote_calls import RemoteCalls
from rota.worker.executors.seam import TimeLimit

logger = logging.getLogger("rota")

SPAN = 0.1
"""Seconds a bundle shall take: with half, round trips made 10 ms calls a fifth slower on Dask."""

MOST = 500
"""The most jobs in a bundle. With a hundred, handlers that do nothing ran at half the rate."""

BYTES = 1_000_000
"""So large are their args together, unless a single one is larger."""

WEIGHT = 0.2
"""How much the newest run counts in what a task's runs are thought to take."""

PATIENCE = 5.0
"""Seconds jobs wait for resources that no node has; then they wait where other workers see them."""


class Sent:
    """A call on its way."""

    __slots__ = ("answer", "call", "job", "kind", "limit", "order", "place", "task", "told")

    def __init__(self, call: Call, order: Order, limit: TimeLimit, notes: Notes) -> None:
        self.call = call
        # The call goes on to another job once this one is answered.
        self.job, self.task = call.job, call.task
        self.order = order
        self.limit = limit
        self.kind = repr(call.task.engine)
        """What it needs: only jobs that need the same travel together."""
        self.told = RunNotes(call.job, notes)
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.place: tuple[Load, int] | None = None
        """Where it is, once it has left."""


class Load:
    """A bundle that is in a slot of the cluster."""

    __slots__ = ("begun", "key", "sent", "slot")

    def __init__(self, slot: Slot, sent: list[Sent]) -> None:
        self.key = uuid.uuid4().hex
        self.slot = slot
        self.sent = sent
        self.begun = False
        for number, one in enumerate(sent):
            one.place = self, number

    def bundle(self) -> bytes:
        """As it travels."""
        watched = any(one.limit.seconds is not None for one in self.sent)
        orders = [one.order for one in self.sent]
        return msgspec.json.encode(Bundle(self.key, orders, self.slot.node, watched))


class Cluster:
    """Runs handlers by an engine.

    Args:
        engine: Which one.
        tasks: Those whose executor this is.
        remote: Makes the orders, and takes the answers.
        notes: Takes what handlers tell.
        events: Told of what becomes of the cluster.
        changed: Called when `capacity` or `lacking` is another one.
    """

    def __init__(
        self,
        engine: Engine[Any],
        tasks: Collection[Task[..., Any, Any]],
        remote: RemoteCalls,
        *,
        notes: Notes,
        events: Events,
        changed: Callable[[], None],
    ) -> None:
        self.capacity = 0
        self.lacking: frozenset[str] = frozenset()
        self._engine = engine
        self._tasks = tasks
        self._remote = remote
        self._notes = notes
        self._events = events
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[str, deque[Sent]] = defaultdict(deque)
        self._sent: dict[Call, Sent] = {}
        self._loads: dict[str, Load] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._due = False
        self._takes: dict[str, float] = {}
        self._size = 1.0
        self._told: tuple[int, frozenset[str]] = (-1, frozenset())
        self._poor: asyncio.TimerHandle | None = None

    async def prepare(self) -> None:
        """Find the cluster.

        Raises:
            ConfigError: It cannot be reached, or a handler needs what no node gives it.
        """
        for task in self._tasks:
            if task.needs:
                message = (
                    f"task {task.name!r}: parameter `{task.needs[0]}` is a resource, and the nodes of a cluster "
                    "have no lifespans; open what the handler needs in its own module"
                )
                raise ConfigError(message)
        await self._engine.connect(self._hear, self._look)
        # The objects of the engine's library stay. Looking through them at each collection cost a
        # tenth of the rate.
        gc.freeze()
        self._tell(self._lacks())

    async def submit(self, call: Call, limit: TimeLimit) -> str | None:
        """Run the job of a call on a node; the JSON text of its result.

        Raises:
            Snooze: The handler said so; likewise Again, Retry and Discard.
            RemoteError: The handler raised an exception, or the node was lost.
            TimeoutError: Its time is up, whatever the node does.
            CancelledError: It was told to stop, and obeys.
        """
        sent = Sent(call, self._remote.order(call), limit, self._notes)
        self._sent[call] = sent
        self._waiting[sent.kind].append(sent)
        if sent.task.name in self.lacking:
            self._leave_to_others(sent)
        self._send_soon()
        try:
            answer = await sent.answer
        except BaseException:
            if sent.place is not None:
                self._remote.lose(call)
            raise
        finally:
            del self._sent[call]
        return self._remote.value(call, answer)

    def cancel(self, call: Call, reason: Stop) -> None:
        """Tell the handler on its node, which goes on in its thread there.

        What has not left does not begin, and what has ended is not thrown away.
        """
        sent = self._sent.get(call)
        if sent is None or sent.place is None:
            call.runner.cancel()
            return
        if sent.answer.done():
            return
        load, number = sent.place
        self._engine.stop(load.slot, load.key, number)
        if reason is Stop.TIMEOUT:
            sent.answer.set_exception(too_long(sent.job))
        elif reason is not Stop.CANCEL:
            call.runner.cancel()

    def close(self, *, hurry: bool = False) -> None:
        """Leave the cluster; blocks, on another thread than the loop's."""
        del hurry
        asyncio.run_coroutine_threadsafe(self._leave(), self._loop).result()

    async def _leave(self) -> None:
        for task in self._running:
            task.cancel()
        self._stop_counting()
        await self._engine.close()

    # Sending ---------------------------------------------------------------------------------

    def _send_soon(self) -> None:
        """Once all who are at it have submitted."""
        if not self._due:
            self._due = True
            self._loop.call_soon(self._send)

    def _send(self) -> None:
        self._due = False
        waiting = deque(self._waiting.values())
        while waiting:
            # All kinds have their turns.
            kind = waiting.popleft()
            while kind and kind[0].answer.done():
                kind.popleft()
            if kind and (slot := self._engine.take(kind[0].task.engine)) is not None:
                self._begin(Load(slot, self._gathered(kind)))
                waiting.append(kind)

    def _begin(self, load: Load) -> None:
        self._loads[load.key] = load
        running = self._loop.create_task(self._run(load))
        self._running.add(running)
        running.add_done_callback(self._running.discard)

    def _gathered(self, waiting: deque[Sent]) -> list[Sent]:
        """As many of those that wait as one bundle shall have; all slots have their share."""
        most = min(MOST, -(-len(waiting) // max(1, self._engine.slots)))
        gathered: list[Sent] = []
        seconds, size = 0.0, 0
        while waiting and len(gathered) < most:
            first = waiting[0]
            takes, bulk = self._takes.get(first.task.name, SPAN), len(first.job.args)
            if gathered and (seconds + takes > SPAN or size + bulk > BYTES):
                break
            waiting.popleft()
            if not first.answer.done():
                gathered.append(first)
                seconds, size = seconds + takes, size + bulk
        return gathered

    async def _run(self, load: Load) -> None:
        lost: Exception | None = None
        try:
            self._hear(await self._engine.run(load.slot, load.bundle()))
        except NodeLost as error:
            lost = error
        except Exception as error:
            logger.exception("a bundle of jobs failed on the %s cluster", self._engine.name)
            lost = NodeLost(f"the {self._engine.name} cluster failed: {error}")
        finally:
            del self._loads[load.key]
            self._engine.give(load.slot)
            self._send_soon()
        for number, sent in enumerate(load.sent):
            if sent.place == (load, number) and not sent.answer.done():
                none = "the node ended without reporting on this job"
                sent.answer.set_exception(lost or NodeLost(none))
                # It may be to blame: for a while none of its task shares a bundle.
                self._takes[sent.task.name] = SPAN

    # Hearing ---------------------------------------------------------------------------------

    def _hear(self, given: bytes) -> None:
        report = msgspec.json.decode(given, type=Report)
        load = self._loads.get(report.key)
        if load is None:
            return
        if not load.begun:
            load.begun = True
            for number, sent in enumerate(load.sent):
                # Jobs behind the first one begin within the pace, or are withdrawn. The runner of a job
                # that was given up may have another job by now, whose time this is not.
                if not sent.answer.done():
                    sent.limit.begin(PACE if number else 0.0)
        runs = {(sent.job.id, sent.job.lease): sent for sent in load.sent}
        for run, notes in itertools.groupby(report.notes, lambda note: (note.job, note.lease)):
            if not runs[run].answer.done():
                runs[run].told.absorb(notes)
        for ran in report.ran:
            self._end(load.sent[ran.place], ran)
        if report.running is not None and report.withdrawn:
            # It takes longer than was thought.
            self._learn(load.sent[report.running].task.name, PACE)
        self._take_back(load.sent[number] for number in report.withdrawn)

    def _end(self, sent: Sent, ran: Ran) -> None:
        self._learn(sent.task.name, ran.seconds)
        if not sent.answer.done():
            sent.answer.set_result(ran.answer)

    def _take_back(self, withdrawn: Iterable[Sent]) -> None:
        """These have not begun: they go on to another bundle, or were told to stop."""
        for sent in reversed([*withdrawn]):
            if sent.answer.done():
                continue
            sent.place = None
            sent.limit.end()
            self._waiting[sent.kind].appendleft(sent)
            if sent.call.stop is not None:
                sent.call.runner.cancel()
            elif sent.task.name in self.lacking:
                self._leave_to_others(sent)
        self._send_soon()

    def _leave_to_others(self, sent: Sent) -> None:
        """It waits where other workers see it, and this one as soon as it can run it."""
        if sent.call.stop is None:
            sent.call.stop = Stop.UNABLE
            sent.call.runner.cancel()

    def _learn(self, task: str, seconds: float) -> None:
        """How long the runs of a task take, and so how many jobs may be under way."""
        known = self._takes.get(task, seconds)
        self._takes[task] = takes = known + WEIGHT * (seconds - known)
        size = min(MOST, max(1.0, SPAN / max(takes, SPAN / MOST)))
        self._size += WEIGHT * (size - self._size)
        self._measure()

    # The cluster -----------------------------------------------------------------------------

    def _look(self) -> None:
        """Nodes have come or gone. What nobody has now may be there again in a moment."""
        lacks = self._lacks()
        if lacks <= self.lacking:
            self._stop_counting()
        elif self._poor is None:
            self._poor = self._loop.call_later(PATIENCE, self._give_up)
        self._tell(lacks & self.lacking)
        self._send_soon()

    def _give_up(self) -> None:
        self._poor = None
        self._tell(self._lacks())

    def _stop_counting(self) -> None:
        if self._poor is not None:
            self._poor.cancel()
            self._poor = None

    def _lacks(self) -> frozenset[str]:
        """The tasks whose resources no node has."""
        return frozenset(task.name for task in self._tasks if not self._engine.has(task.engine))

    def _tell(self, lacking: frozenset[str]) -> None:
        self._measure()
        if self._told == (self._engine.slots, lacking):
            return
        self._told = self._engine.slots, lacking
        self._events.emit(
            ClusterChanged(self._engine.name, self._engine.slots, tuple(sorted(lacking)))
        )
        if lacking != self.lacking:
            self.lacking = lacking
            self._changed()
        for sent in self._sent.values():
            if sent.place is None and sent.task.name in lacking:
                self._leave_to_others(sent)

    def _measure(self) -> None:
        """As many jobs may wait as are under way; what has hardly changed need not be told."""
        capacity = round(2 * self._engine.slots * self._size)
        if abs(capacity - self.capacity) > self.capacity // 4:
            self.capacity = capacity
            self._changed()
