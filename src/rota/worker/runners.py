"""Runners: a bounded number of asyncio tasks that take jobs and batches from the inbox and run them.

A runner makes one call after another, because a task per job costs more than a small handler.
Handlers still do not see each other: a runner in whose context a handler has set a variable
retires, and a fresh one takes its place.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Collection, Mapping
from contextvars import Context, copy_context
from typing import Any

from rota.app.batch import BatchTask
from rota.dispatch import Events
from rota.events import JobCompleted
from rota.model.job import ClaimedJob, JobId, SessionId
from rota.model.settlement import Settlement, released
from rota.model.states import Move
from rota.worker.batches import Batch, Batches
from rota.worker.call import Call, Stop
from rota.worker.calls import Calls
from rota.worker.plain import Begun, PlainJobs
from rota.worker.slots import Share
from rota.worker.switchboard import Switchboard
from rota.worker.turns import Turns

logger = logging.getLogger("rota")

TURN = 0.005
"""Seconds after which a runner lets the rest of the event loop have its turn."""

COMPLETE = Move.COMPLETE


class Runners:
    """Keeps the jobs that wait here, and the runners; lives on the event loop."""

    def __init__(
        self,
        share: Share,
        calls: Calls,
        batch_tasks: Mapping[str, BatchTask[Any, Any]],
        events: Events,
        switchboard: Switchboard,
        *,
        plain: PlainJobs,
        context: Context | None = None,
    ) -> None:
        self._share = share
        share.start = self._start
        # Handlers see nothing of whatever else is done on the loop.
        self._context = Context() if context is None else context
        self._for_batches = 0
        self._calls = calls
        self._plain = plain
        self._events = events
        self._switchboard = switchboard
        self._loop = asyncio.get_running_loop()
        self._inbox: deque[ClaimedJob] = deque()
        self._batches = Batches(batch_tasks, self._take, self._hold)
        self._due: deque[Batch] = deque()
        self._batch_next = False
        self._unwanted: set[JobId] = set()
        self._lost: set[SessionId] = set()
        self._runners: set[asyncio.Task[None]] = set()
        self._next: asyncio.Task[None] | None = None
        self._turns: Turns | None = None
        # Asked for once: a call per job would cost more than a small handler.
        self._on_completed = events.listeners(JobCompleted)

    @property
    def running(self) -> int:
        """How many jobs run."""
        return len(self._calls) + self._plain.busy

    def widen(self, more: int) -> None:
        """From now on make so many calls beyond the concurrency."""
        self._share.beyond = more
        self._hold(self._for_batches)
        self._start()

    def adopt(self, turns: Turns | None) -> None:
        """From now on run so many jobs at once of the queues that these turns name."""
        if self._turns is not None:
            self._inbox.extendleft(reversed(self._turns.drop()))
        self._turns = turns
        if turns is not None:
            # A job that is being gathered has its place already.
            begun = self._calls.jobs() + self._batches.unstarted()
            for job in turns.adopt(self._inbox, begun):
                self._switchboard.settle(released(job))
                self._switchboard.free(1)
        self._start()

    def deliver(self, session: SessionId, jobs: list[ClaimedJob]) -> None:
        """Take claimed jobs in, unless their session is lost: the claim outlasted it."""
        if session in self._lost:
            if self._turns is not None:
                self._turns.forget(jobs)
            self._switchboard.free(len(jobs))
            return
        self._inbox.extend(self._batches.take(jobs))
        self._start()

    def cancel(self, jobs: Collection[JobId]) -> None:
        """Stop jobs whose cancelling was requested, running or not yet started."""
        if self._turns is not None:
            # They need not wait for their turn in order to be cancelled.
            self._inbox.extendleft(self._turns.pull(frozenset(jobs)))
        waiting = {job.id for job in self._unstarted()}
        # Not a job that has ended and is being settled: it may come back one day.
        self._unwanted.update(job for job in jobs if not self._calls.cancel(job) and job in waiting)
        self._start()

    def lose(self, session: SessionId) -> None:
        """Stop everything: the session is lost, and other workers run its jobs."""
        self._lost.add(session)
        dropped = self.drop()
        self._calls.stop(Stop.LOST)
        self._switchboard.free(len(dropped))

    def drop(self) -> list[ClaimedJob]:
        """Forget the jobs that have not started; which these were."""
        dropped = self._unstarted()
        self._inbox.clear()
        self._due.clear()
        self._batches.drop()
        self._unwanted.clear()
        self._share.forgo()
        if self._turns is not None:
            dropped += self._turns.drop(dropped)
        return dropped

    async def finish(self, grace: float) -> bool:
        """Wait until nothing runs any more, for up to `grace` seconds; whether nothing does."""
        deadline = time.monotonic() + grace
        while self._runners and (left := deadline - time.monotonic()) > 0:
            await asyncio.wait(self._runners, timeout=left)
        return not self._runners

    async def abandon(self, patience: float = 1.0) -> int:
        """Stop what still runs, and give it back; threads are left behind. How many jobs ran."""
        running = len(self._calls)
        self._calls.stop(Stop.RELEASE)
        if self._runners:
            await asyncio.wait(self._runners, timeout=patience)
        return running

    def _take(self, batch: Batch) -> None:
        self._due.append(batch)
        self._start()

    def _hold(self, for_batches: int) -> None:
        """So many jobs may be held for batches; and what is widened is to be filled."""
        self._for_batches = for_batches
        self._switchboard.allow(for_batches + self._share.beyond)

    def _unstarted(self) -> list[ClaimedJob]:
        return [*self._inbox, *self._batches.unstarted()]

    # Runners ---------------------------------------------------------------------------------

    def _start(self) -> None:
        """Start one more runner; when its turn comes, it starts the next.

        One at a time: handlers that do not wait for anything never need a second one.
        """
        waiting = self._inbox or self._due
        if waiting and self._next is None and self._share.take():
            # A copy of the clean context: a handler that runs at the moment may have changed its
            # own.
            clean = self._context.copy()
            runner = self._next = self._loop.create_task(self._serve(), context=clean)
            self._runners.add(runner)
            runner.add_done_callback(self._retire, context=self._context)

    def _retire(self, runner: "asyncio.Task[None]") -> None:
        self._runners.discard(runner)
        if self._next is runner:
            self._next = None
        self._share.give()
        if not runner.cancelled() and (error := runner.exception()) is not None:
            logger.error("a runner failed", exc_info=error)
        self._start()

    async def _serve(self) -> None:
        self._next = None
        clean = copy_context()
        runner = asyncio.current_task()
        assert runner is not None  # noqa: S101 - a coroutine of a task
        call = Call(runner)
        inbox, due = self._inbox, self._due
        turn = time.monotonic()
        while inbox or due:
            if due and self._batch_has_turn():
                await self._run_batch(call, due.popleft())
            elif begun := self._begin(clean, runner, turn + TURN):
                job, rest = begun
                if self._next is None:
                    self._start()
                if self._unwanted and job.id in self._unwanted:
                    self._unwanted.discard(job.id)
                    self._end(job, self._calls.cancelled(job))
                elif self._turns is None or self._turns.take(job):
                    self._end(job, await self._calls.run_job(call, job, rest))
                else:
                    # Its queue's turn is still to come.
                    continue
                self._switchboard.free(1)
            # A handler has left something behind: a variable, or a request to cancel its own task.
            # Or it is the turn of another database.
            if copy_context() != clean or runner.cancelling() or self._share.yields:
                return
            if time.monotonic() - turn > TURN:
                await asyncio.sleep(0)
                turn = time.monotonic()

    def _begin(self, clean: Context, runner: "asyncio.Task[None]", until: float) -> Begun | None:
        """The next job, if any, to go the long way, after plain ones at the head of the inbox."""
        if self._due or self._unwanted or self._turns is not None or self._calls.full:
            return self._inbox.popleft(), None
        return self._plain.run(self._inbox, clean, runner, until)

    def _batch_has_turn(self) -> bool:
        """Whether a batch goes first: batches and single jobs take turns."""
        self._batch_next = not self._batch_next
        return self._batch_next or not self._inbox

    async def _run_batch(self, call: Call, batch: Batch) -> None:
        """Run the jobs of a batch in one call."""
        if self._next is None:
            self._start()
        count = len(batch.jobs)
        late = {job.id for job in batch.jobs if self._calls.expired(job)}
        for job in batch.take_out(self._unwanted | late):
            self._unwanted.discard(job.id)
            self._end(job, self._calls.cancelled(job))
        self._batches.begin(batch)
        if batch.jobs:
            for job, settlement in await self._calls.run_batch(call, batch):
                self._end(job, settlement)
        self._batches.end(batch)
        self._switchboard.free(count)

    def _end(self, job: ClaimedJob, settlement: Settlement | None) -> None:
        """Have a job settled that has ended, and let the next one of its queue have its turn."""
        if settlement is not None:
            self._switchboard.settle(settlement)
            if self._on_completed or settlement.move is not COMPLETE:
                self._events.settled(job, settlement)
        if self._turns is not None and (follower := self._turns.give(job)) is not None:
            self._inbox.appendleft(follower)
