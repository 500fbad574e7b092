"""Calls: how a handler is called, and how the jobs of the call end.

A runner makes one call after another. Most serve a single job; that of a batch serves many, which
share the call's fate (its time is up, the session is lost, the worker stops) and are settled one by one.
"""

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from enum import Enum
from typing import Any

from rota.app.context import BatchContext, Context
from rota.app.executor import Executor
from rota.app.middleware import wrapped
from rota.app.successor import check_known, wants_result
from rota.app.task import Task
from rota.config import WorkerConfig
from rota.dispatch import Events
from rota.events import JobExpired, JobOverdue, JobStarted, TaskUnknown
from rota.model.headers import expired
from rota.model.job import ClaimedJob, JobId
from rota.model.notes import Notes, RunNotes
from rota.model.settlement import Settlement, cancelled, passed_on, released
from rota.outcome import Outcome
from rota.worker.batches import CANCELLED, Batch
from rota.worker.ending import failed, returned, too_long
from rota.worker.executors.process import Child, Children
from rota.worker.executors.thread import contained
from rota.worker.homes import Home, Homes
from rota.worker.job_transactions import JobTransactions
from rota.worker.undone import undone

Given = tuple[list[object], dict[str, object]]
"""What a handler is called with, by place and by name."""


class Stop(Enum):
    """Why a call was told to stop."""

    CANCEL = "its cancelling was requested"
    TIMEOUT = "its time is up"
    LOST = "the session is lost: other workers run the job"
    RELEASE = "the worker stops"


class Call:
    """The call that a runner makes just now. One object for all its calls: that is cheaper."""

    __slots__ = ("batch", "children", "context", "home", "job", "runner", "stop", "task")

    job: ClaimedJob
    task: Task[..., Any, Any]
    home: Home

    def __init__(self, runner: "asyncio.Task[None]") -> None:
        self.runner = runner
        self.batch: Batch | None = None
        self.context: Context | BatchContext | None = None
        self.children: list[Child] = []
        self.stop: Stop | None = None

    @property
    def jobs(self) -> Sequence[ClaimedJob]:
        """The jobs that it serves."""
        return (self.job,) if self.batch is None else self.batch.jobs


class Calls:
    """Calls handlers where their tasks want it; lives on the event loop."""

    def __init__(
        self,
        tasks: Mapping[str, Task[..., Any, Any]],
        config: WorkerConfig,
        events: Events,
        *,
        homes: Homes,
        notes: Notes,
        effects: JobTransactions,
        begin_child: Callable[[], object] | None = None,
    ) -> None:
        self._tasks = tasks
        self._events = events
        self._notes = notes
        self._effects = effects
        self._homes = homes
        self._transact = effects.transact
        self._completions = effects.completions
        self._loop = asyncio.get_running_loop()
        self._worker = asyncio.current_task()
        self._running: dict[JobId, Call] = {}
        self._threads = ThreadPoolExecutor(config.concurrency, thread_name_prefix="rota-handler")
        self._children = Children(config, homes, tasks.values(), events, begin_child)
        # Asked for once: a call per job would cost more than a small handler.
        self._on_started = events.listeners(JobStarted)

    def __len__(self) -> int:
        """How many jobs run."""
        return len(self._running)

    def jobs(self) -> list[ClaimedJob]:
        """The jobs that run."""
        return [job for call in set(self._running.values()) for job in call.jobs]

    def cancel(self, job: JobId) -> bool:
        """Stop a job; in a call for many, only tell the handler. Whether the job runs."""
        call = self._running.get(job)
        if call is not None and call.batch is not None:
            call.batch.cancel(job)
        elif call is not None and call.stop is None:
            self._interrupt(call, Stop.CANCEL)
        else:
            return False
        return True

    def stop(self, reason: Stop) -> None:
        """Stop all calls, as far as that is possible where they run."""
        for call in set(self._running.values()):
            self._interrupt(call, reason)

    async def prepare(self) -> None:
        """Find out what is wrong with the lifespans of children, before anything is claimed.

        Raises:
            LifespanFailed: One could not be entered.
            ConfigError: One of them or a handler needs a resource that no lifespan yields.
        """
        await self._children.prepare()

    def close(self, *, hurry: bool = False) -> None:
        """End threads and children that have nothing to do; blocks."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._children.close(hurry=hurry)

    # Jobs ------------------------------------------------------------------------------------

    async def run_job(
        self, call: Call, job: ClaimedJob, rest: Awaitable[Any] | None = None
    ) -> Settlement | None:
        """Run one job, or the `rest` of it; its settlement, or `None` where there is nothing to write."""
        task = self._tasks.get(job.task)
        if task is None:
            return self._unknown(job)
        if job.headers is not None and self.expired(job):
            return self.cancelled(job)
        call.job, call.task, call.batch, call.context, call.stop = job, task, None, None, None
        call.home = home = self._homes.of(task)
        self._running[job.id] = call
        if self._on_started:
            self._events.emit(JobStarted(job))
        try:
            if job.headers is not None:
                check_known(job, task)
            if rest is not None:
                value = await rest
            elif home.around:
                value = await self._call_through(call)
            elif job.timeout is None and task.executor is Executor.LOOP:
                args, kwargs = self._arguments(call)
                value = await task.function(*args, **kwargs)
            else:
                value = await self._call(call)
            settlement = self._ending(call, job, value)
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is an outcome
            self._look_for_the_end(call, error)
            settlement = self._ending(call, job, None, error)
        finally:
            self._end(call, job)
        return self._effects.conclude(job, task, settlement) if self._completions else settlement

    async def run_batch(
        self, call: Call, batch: Batch
    ) -> list[tuple[ClaimedJob, Settlement | None]]:
        """Run the jobs of a batch in one call; the settlement of each, as `run_job` gives it."""
        call.home = home = self._homes.of(batch.task)
        batch.read(self._notes, home.resources)
        call.job, call.task, call.batch, call.stop = batch.lead, batch.task, batch, None
        call.context = batch.context
        for job in batch.jobs:
            self._running[job.id] = call
            if self._on_started:
                self._events.emit(JobStarted(job))
        said: object = None
        try:
            if batch.elements:
                said = await (self._call_through if home.around else self._call)(call)
                if said is not None:
                    said = undone(said) or said
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is an outcome
            self._look_for_the_end(call, error)
            said = error
        finally:
            for job in batch.jobs:
                self._end(call, job)
        return [(job, self._part(call, job, part)) for job, part in batch.parts(said)]

    def cancelled(self, job: ClaimedJob) -> Settlement:
        """The settlement of a job that did not start, or was stopped, because of a request."""
        task = self._tasks.get(job.task)
        return (
            self._unknown(job) if task is None else cancelled(job, task.keeps[job.queue].cancelled)
        )

    def expired(self, job: ClaimedJob) -> bool:
        """Whether it is too late for the job to begin, which is told then."""
        if job.headers is None or not expired(job.headers, time.time()):
            return False
        self._events.emit(JobExpired(job))
        return True

    def _unknown(self, job: ClaimedJob) -> Settlement:
        settlement = passed_on(job)
        self._events.emit(TaskUnknown(job))
        return settlement

    # Calling ---------------------------------------------------------------------------------

    async def _call_through(self, call: Call) -> Any:
        """`_call` inside the middleware around all runs."""
        task = call.task

        async def call_next() -> Any:
            value = await self._call(call)
            if task.executor is Executor.PROCESS and value is not None:
                return task.result_codec.decode(value)
            return value

        return await wrapped(call.home.around, self._context(call), call_next)()

    async def _call(self, call: Call) -> Any:
        job, task = call.job, call.task
        if task.executor is Executor.PROCESS:
            return await self._in_child(call)
        args, kwargs = self._arguments(call)
        if task.executor is Executor.THREAD:
            function: Callable[[], Any] = functools.partial(task.function, *args, **kwargs)
            if call.home.around_threads:
                function = wrapped(call.home.around_threads, self._context(call), function)
            return await self._in_thread(call, function)
        limit = asyncio.timeout(job.timeout)
        try:
            async with limit:
                return await task.function(*args, **kwargs)
        except TimeoutError as error:
            if limit.expired():
                raise too_long(job) from error
            raise

    def _arguments(self, call: Call) -> Given:
        """What the handler is called with."""
        if call.batch is not None:
            return call.batch.arguments()
        codec = call.task.codec
        args, kwargs = codec.decode(call.job.args)
        if codec.more:
            if codec.context_parameter is not None:
                kwargs[codec.context_parameter] = self._context(call)
            if codec.needs:
                kwargs.update(call.home.resources.of(call.task))
        return args, kwargs

    def _context(self, call: Call) -> Context | BatchContext:
        if call.context is None:
            call.context = Context(
                call.job,
                notes=self._notes,
                transact=self._transact,
                resources=call.home.resources,
                soft_timeout=call.task.soft_timeout,
            )
        return call.context

    async def _in_thread(self, call: Call, function: Callable[[], Any]) -> Any:
        timer = self._timer(call)
        try:
            value, error = await self._loop.run_in_executor(
                self._threads, contained, copy_context(), function
            )
        finally:
            if timer is not None:
                timer.cancel()
        if error is not None:
            raise error
        return value

    async def _in_child(self, call: Call) -> Any:
        timer: asyncio.TimerHandle | None = None

        def start() -> None:
            nonlocal timer
            timer = self._timer(call)

        try:
            notes = RunNotes(call.job, self._notes)
            return await self._children.run(
                call.task,
                call.job,
                call.children,
                start,
                notes.absorb,
                result=call.task.store_result or wants_result(call.job, call.task),
                sent=call.home.app.middleware.sent(),
            )
        finally:
            if timer is not None:
                timer.cancel()

    def _timer(self, call: Call) -> asyncio.TimerHandle | None:
        if call.job.timeout is None:
            return None
        return self._loop.call_later(call.job.timeout, self._interrupt, call, Stop.TIMEOUT)

    # Ending ----------------------------------------------------------------------------------

    def _interrupt(self, call: Call, reason: Stop) -> None:
        """Make a call stop, as far as that is possible where it runs."""
        call.stop = reason
        if call.context is not None:
            call.context.request_cancel()
        if call.children:
            call.children[0].kill()
        elif call.task.executor is not Executor.THREAD or reason is Stop.RELEASE:
            # A thread goes on, and is left behind.
            call.runner.cancel()
        elif reason is Stop.TIMEOUT:
            self._events.emit(JobOverdue(call.job))

    def _look_for_the_end(self, call: Call, error: BaseException) -> None:
        """Give jobs back that were cancelled with the worker.

        A web server that does not wait for the end of its lifespan cancels every task of the loop.
        """
        if call.stop is None and isinstance(error, asyncio.CancelledError) and self._cancelled:
            call.stop = Stop.RELEASE
            if call.context is not None:
                # A thread goes on, and keeps the process from ending.
                call.context.request_cancel()

    @property
    def _cancelled(self) -> bool:
        return self._worker is not None and self._worker.cancelling() > 0

    def _end(self, call: Call, job: ClaimedJob) -> None:
        # After a lost session the job may have come back, while its thread still ran.
        if self._running.get(job.id) is call:
            del self._running[job.id]
        while call.stop is not None and call.runner.cancelling() and not self._cancelled:
            call.runner.uncancel()

    def _part(self, call: Call, job: ClaimedJob, part: object) -> Settlement | None:
        """How a job of a batch ended, for which the call gave this part."""
        if part is CANCELLED:
            return self.cancelled(job)
        if isinstance(part, BaseException) and not isinstance(part, Outcome):
            return self._ending(call, job, None, part)
        return self._ending(call, job, part)

    def _ending(
        self, call: Call, job: ClaimedJob, value: Any, error: BaseException | None = None
    ) -> Settlement | None:
        """How a job ended: by itself, or because its call was stopped and obeyed."""
        task, stop = call.task, call.stop
        if value is not None:
            error = undone(value)
        if stop is not None and (
            error is not None or (call.context is not None and call.context.noticed)
        ):
            match stop:
                case Stop.CANCEL:
                    return self.cancelled(job)
                case Stop.RELEASE:
                    return released(job)
                case Stop.LOST:
                    return None
                case Stop.TIMEOUT:
                    error = too_long(job)
        if error is None:
            # A child has encoded its result already; middleware has decoded that again.
            encoded = task.executor is Executor.PROCESS and not call.home.around
            return returned(job, task, value, encoded=encoded)
        settlement = failed(job, task, error)
        if self._completions:
            self._effects.log_late(job, error)
        return settlement
