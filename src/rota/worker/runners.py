"""Runners: a bounded number of asyncio tasks that take jobs from the inbox and run them.

A runner serves one job after another, because a task per job costs more than a small handler.
Handlers still do not see each other: a runner in whose context a handler has set a variable
retires, and a fresh one takes its place.
"""

import asyncio
import functools
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, assert_never

from rota.app.context import BatchContext, Context
from rota.app.middleware import Middleware, wrapped
from rota.app.task import Executor, Task
from rota.config import WorkerConfig
from rota.events import Events, JobCompleted, JobOverdue, JobStarted, TaskUnknown
from rota.model.job import ClaimedJob, JobId
from rota.model.notes import Notes, RunNotes
from rota.model.settlement import Settlement, cancelled, released
from rota.model.states import Move
from rota.worker.ending import failed, returned, too_long
from rota.worker.executors.process import Children, UnstorableResult
from rota.worker.executors.thread import contained
from rota.worker.job_transactions import Effects
from rota.worker.run import Run, Stop
from rota.worker.turns import Turns

logger = logging.getLogger("rota")

TURN = 0.005
"""Seconds after which a runner lets the rest of the event loop have its turn."""

COMPLETE = Move.COMPLETE

Given = tuple[list[object], dict[str, object]]
"""What a handler is called with, by place and by name."""

UNKNOWN_DELAY = 5.0
"""Seconds until a job of a task that this worker does not have is offered to the workers again."""


class Runners:
    """Runs jobs; lives on the event loop."""

    def __init__(
        self,
        tasks: dict[str, Task[..., Any, Any]],
        config: WorkerConfig,
        events: Events,
        settle: Callable[[Settlement], None],
        ended: Callable[[int], None],
        *,
        effects: Effects,
        notes: Notes,
        middleware: Middleware,
    ) -> None:
        self._tasks = tasks
        self._notes = notes
        self._concurrency = config.concurrency
        self._events = events
        self._settle = settle
        self._ended = ended
        self._effects = effects
        self._transact = effects.transact
        self._completions = effects.completions
        self._loop = asyncio.get_running_loop()
        self._inbox: deque[ClaimedJob] = deque()
        # Calls that serve more than one job.
        self._due: deque[Callable[[Run], Awaitable[None]]] = deque()
        self._single_next = False
        self._runners: set[asyncio.Task[None]] = set()
        self._running: dict[JobId, Run] = {}
        self._unwanted: set[JobId] = set()
        self._threads = ThreadPoolExecutor(config.concurrency, thread_name_prefix="rota-handler")
        self._children = Children(config.children)
        self._around = middleware.running
        self._around_threads = middleware.running_in_threads
        # Asked for once: a call per job and kind of event would cost more than a small handler.
        self._on_started = events.listeners(JobStarted)
        self._on_completed = events.listeners(JobCompleted)
        self._next: asyncio.Task[None] | None = None
        self._turns: Turns | None = None

    def share(self, turns: Turns | None) -> None:
        """From now on run so many jobs at once of the queues that these turns name."""
        if self._turns is not None:
            self._inbox.extendleft(reversed(self._turns.drop()))
        self._turns = turns
        if turns is not None:
            for job in turns.adopt(self._inbox, self._begun()):
                self._settle(released(job))
                self._ended(1)
        self._start()

    def deliver(self, jobs: Iterable[ClaimedJob]) -> None:
        """Take claimed jobs in."""
        self._inbox.extend(jobs)
        self._start()

    def cancel(self, jobs: Collection[JobId]) -> None:
        """Stop jobs that somebody wants cancelled, running or not yet started."""
        if self._turns is not None:
            # It need not wait for its turn in order to be cancelled.
            self._inbox.extendleft(self._turns.pull(frozenset(jobs)))
        waiting = {job.id for job in self._unstarted()}
        for job in jobs:
            run = self._running.get(job)
            if run is not None and run.stop is None:
                self._interrupt(run, Stop.CANCEL)
            elif job in waiting:
                # Not a job that has ended and is being settled: it may come back one day.
                self._unwanted.add(job)
        self._start()

    def lose(self) -> list[JobId]:
        """Stop everything: the session is lost, and others run these jobs."""
        dropped = self.drop()
        for run in set(self._running.values()):
            self._interrupt(run, Stop.LOST)
        return [job.id for job in dropped]

    def drop(self) -> list[ClaimedJob]:
        """Empty the inbox; the jobs that were in it and will not be started."""
        dropped = self._unstarted()
        self._inbox.clear()
        self._due.clear()
        self._unwanted.clear()
        if self._turns is not None:
            dropped += self._turns.drop(dropped)
        return dropped

    def _unstarted(self) -> list[ClaimedJob]:
        return list(self._inbox)

    def _begun(self) -> list[ClaimedJob]:
        return [run.job for run in self._running.values() if run.job is not None]

    async def finish(self, grace: float) -> bool:
        """Wait until nothing runs any more, for up to `grace` seconds; whether nothing does."""
        deadline = time.monotonic() + grace
        while self._runners and (left := deadline - time.monotonic()) > 0:
            await asyncio.wait(self._runners, timeout=left)
        return not self._runners

    async def abandon(self, patience: float = 1.0) -> int:
        """Stop what still runs, and give it back; threads are left to themselves. How many ran."""
        running = len(self._running)
        for run in set(self._running.values()):
            self._interrupt(run, Stop.RELEASE)
            if run.task is not None and run.task.executor is Executor.THREAD:
                run.runner.cancel()
        if self._runners:
            await asyncio.wait(self._runners, timeout=patience)
        return running

    def close(self) -> None:
        """End threads and children that have nothing to do."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._children.close()

    # Runners ---------------------------------------------------------------------------------

    def _start(self) -> None:
        """Start one more runner; when its turn comes, it starts the next one.

        One at a time: handlers that do not wait for anything never need a second one.
        """
        waiting = self._inbox or self._due
        if waiting and self._next is None and len(self._runners) < self._concurrency:
            runner = self._next = self._loop.create_task(self._serve())
            self._runners.add(runner)
            runner.add_done_callback(self._retire)

    def _retire(self, runner: "asyncio.Task[None]") -> None:
        self._runners.discard(runner)
        if self._next is runner:
            self._next = None
        if not runner.cancelled() and (error := runner.exception()) is not None:
            logger.error("a runner failed", exc_info=error)
        self._start()

    async def _serve(self) -> None:
        self._next = None
        clean = copy_context()
        runner = asyncio.current_task()
        assert runner is not None  # noqa: S101 - a coroutine of a task
        run = Run(runner)
        inbox, due = self._inbox, self._due
        turn = time.monotonic()
        while inbox or due:
            if due and self._due_has_turn():
                await due.popleft()(run)
            else:
                job = inbox.popleft()
                if self._next is None:
                    self._start()
                if self._turns is not None and not self._may_start(self._turns, job):
                    continue
                settlement = await self._run(run, job)
                if self._completions and run.task is not None:
                    settlement = self._effects.ended(job, run.task, settlement)
                if settlement is not None:
                    self._settle(settlement)
                    if self._on_completed or settlement.move is not COMPLETE:
                        self._events.settled(job, settlement)
                self._ended(1)
                self._give(job)
            # A handler has left something behind: a variable, or a request to cancel its own task.
            if copy_context() != clean or runner.cancelling():
                return
            if time.monotonic() - turn > TURN:
                await asyncio.sleep(0)
                turn = time.monotonic()

    def _may_start(self, turns: Turns, job: ClaimedJob) -> bool:
        return job.id in self._unwanted or turns.take(job)

    def _give(self, job: ClaimedJob) -> None:
        """A job has ended: if it was its queue's turn, another one may have it."""
        if self._turns is not None and (follower := self._turns.give(job)) is not None:
            self._inbox.appendleft(follower)

    def _due_has_turn(self) -> bool:
        """Whether a call that is due goes first: they and single jobs take turns."""
        self._single_next = not self._single_next
        return self._single_next or not self._inbox

    async def _run(self, run: Run, job: ClaimedJob) -> Settlement | None:
        """Run one job; its settlement, or nothing where the job is somebody else's now."""
        task = self._tasks.get(job.task)
        if task is None:
            self._events.emit(TaskUnknown(job))
            return released(job, UNKNOWN_DELAY)
        if self._unwanted and job.id in self._unwanted:
            self._unwanted.discard(job.id)
            return cancelled(job, task.keeps[job.queue].cancelled)
        run.job, run.task, run.context, run.stop = job, task, None, None
        self._running[job.id] = run
        if self._on_started:
            self._events.emit(JobStarted(job))
        try:
            if self._around:
                value = await self._call_through(run, job, task)
            elif job.timeout is None and task.executor is Executor.LOOP:
                args, kwargs = self._arguments(run, job, task)
                value = await task.function(*args, **kwargs)
            else:
                value = await self._call(run, job, task)
            if run.stop is not None:
                return self._stopped(run, job, task, None, value)
            return self._returned(job, task, value)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is an outcome
            if run.stop is not None:
                return self._stopped(run, job, task, error, None)
            return self._failed(job, task, error)
        finally:
            # It may have come back, after a lost session, while a thread was still at it.
            self._running.pop(job.id, None)
            while run.stop is not None and run.runner.cancelling():
                run.runner.uncancel()

    async def _call_through(
        self, run: Run, job: ClaimedJob, task: Task[..., Any, Any], given: Given | None = None
    ) -> Any:
        """`_call` inside the middleware around all runs."""

        async def call() -> Any:
            value = await self._call(run, job, task, given)
            if task.executor is Executor.PROCESS and task.store_result:
                return task.result_codec.decode(value)
            return value

        return await wrapped(self._around, self._context(run, job), call)()

    async def _call(
        self, run: Run, job: ClaimedJob, task: Task[..., Any, Any], given: Given | None = None
    ) -> Any:
        if task.executor is Executor.PROCESS:
            return await self._in_child(run, job, task)
        args, kwargs = given or self._arguments(run, job, task)
        if task.executor is Executor.THREAD:
            call: Callable[[], Any] = functools.partial(task.function, *args, **kwargs)
            if self._around_threads:
                call = wrapped(self._around_threads, self._context(run, job), call)
            return await self._in_thread(run, job, call)
        limit = asyncio.timeout(job.timeout)
        try:
            async with limit:
                return await task.function(*args, **kwargs)
        except TimeoutError as error:
            if limit.expired():
                raise too_long(job) from error
            raise

    def _arguments(self, run: Run, job: ClaimedJob, task: Task[..., Any, Any]) -> Given:
        """What the handler is called with."""
        args, kwargs = task.codec.decode(job.args)
        if task.codec.context_parameter is not None:
            kwargs[task.codec.context_parameter] = self._context(run, job)
        return args, kwargs

    def _context(self, run: Run, job: ClaimedJob) -> Context | BatchContext:
        if run.context is None:
            run.context = Context(job, notes=self._notes, transact=self._transact)
        return run.context

    async def _in_thread(self, run: Run, job: ClaimedJob, call: Callable[[], Any]) -> Any:
        timer = job.timeout and self._loop.call_later(
            job.timeout, self._interrupt, run, Stop.TIMEOUT
        )
        try:
            value, error = await self._loop.run_in_executor(
                self._threads, contained, copy_context(), call
            )
        finally:
            if timer:
                timer.cancel()
        if error is not None:
            raise error
        return value

    async def _in_child(self, run: Run, job: ClaimedJob, task: Task[..., Any, Any]) -> Any:
        timer: asyncio.TimerHandle | None = None

        def begun() -> None:
            nonlocal timer
            if job.timeout is not None:
                timer = self._loop.call_later(job.timeout, self._interrupt, run, Stop.TIMEOUT)

        try:
            told = RunNotes(job, self._notes)
            return await self._children.run(task, job, run.children, begun, told.absorb)
        finally:
            if timer is not None:
                timer.cancel()

    # Endings ---------------------------------------------------------------------------------

    def _returned(self, job: ClaimedJob, task: Task[..., Any, Any], value: Any) -> Settlement:
        # A child has encoded its result already; middleware has decoded that again.
        encoded = task.executor is Executor.PROCESS and not self._around
        return returned(job, task, value, encoded=encoded)

    def _failed(
        self, job: ClaimedJob, task: Task[..., Any, Any], error: BaseException
    ) -> Settlement:
        if self._completions and not isinstance(error, UnstorableResult):
            self._effects.failed_late(job, error)
        return failed(job, task, error)

    def _stopped(
        self,
        run: Run,
        job: ClaimedJob,
        task: Task[..., Any, Any],
        error: BaseException | None,
        value: Any,
    ) -> Settlement | None:
        """The ending of a run that was told to stop: it obeyed, or had come to its end anyway."""
        if error is None and not (run.context is not None and run.context.noticed):
            return self._returned(job, task, value)
        match run.stop:
            case Stop.CANCEL:
                return cancelled(job, task.keeps[job.queue].cancelled)
            case Stop.TIMEOUT:
                return self._failed(job, task, too_long(job))
            case Stop.RELEASE:
                return released(job)
            case Stop.LOST | None:
                return None
        assert_never(run.stop)

    def _interrupt(self, run: Run, stop: Stop) -> None:
        """Make a run stop, as far as that is possible where it runs."""
        run.stop = stop
        if run.context is not None:
            run.context.request_cancel()
        if run.task is None:
            return
        match run.task.executor:
            case Executor.LOOP:
                run.runner.cancel()
            case Executor.PROCESS:
                if run.children:
                    run.children[0].kill()
                else:
                    run.runner.cancel()
            case Executor.THREAD:
                if stop is Stop.TIMEOUT and run.job is not None:
                    self._events.emit(JobOverdue(run.job))
