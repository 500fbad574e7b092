"""Calls: how a handler is called, and how the jobs of the call end.

A runner makes one call after another. Most serve a single job; that of a batch serves many, which
share the call's fate (its time is up, the session is lost, the worker stops) and are settled one by
one.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from rota.app.context import Context
from rota.app.executor import Executor
from rota.app.middleware import wrapped
from rota.app.results import fetching
from rota.app.successor import check_known
from rota.app.suspended import suspended
from rota.app.task import Task
from rota.config import WorkerConfig
from rota.dispatch import Events
from rota.events import JobExpired, JobStarted, TaskUnknown
from rota.model.flow import needs_of
from rota.model.headers import expired
from rota.model.job import ClaimedJob, JobId
from rota.model.notes import Notes
from rota.model.settlement import Settlement, cancelled, passed_on, released
from rota.outcome import Outcome
from rota.store.execute import adrive
from rota.worker.arguments import Arguments
from rota.worker.batches import CANCELLED, Batch
from rota.worker.call import Call, Stop
from rota.worker.ending import failed, forgetting, returned, too_long
from rota.worker.executors.cluster import Cluster
from rota.worker.executors.dask import Dask
from rota.worker.executors.loop import Loop
from rota.worker.executors.no_cluster import NoCluster
from rota.worker.executors.process import Children, Nursery
from rota.worker.executors.ray import Ray
from rota.worker.executors.remote_calls import RemoteCalls
from rota.worker.executors.seam import HandlerExecutor, TimeLimit
from rota.worker.executors.thread import Threads
from rota.worker.homes import Homes
from rota.worker.job_transactions import JobTransactions
from rota.worker.undone import undone

if TYPE_CHECKING:
    from rota.worker.executors.engine import Engine


class Calls:
    """Calls handlers where their tasks want it; lives on the event loop.

    `places` limits how many handlers run in this process, where a cluster has some, too. `changed`
    is called when one of the attributes has changed.

    Attributes:
        capacity: How many calls there may be beyond the concurrency.
        unable: The tasks that cannot run here now, though they are known.
    """

    def __init__(
        self,
        tasks: Mapping[str, Task[..., Any, Any]],
        config: WorkerConfig,
        events: Events,
        *,
        homes: Homes,
        notes: Notes,
        effects: JobTransactions,
        nursery: Nursery,
        places: asyncio.Semaphore | None = None,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._tasks = tasks
        self._events = events
        self._notes = notes
        self._effects = effects
        self._homes = homes
        self._completions = effects.completions
        self._loop = asyncio.get_running_loop()
        self._worker = asyncio.current_task()
        self._running: dict[JobId, Call] = {}
        arguments, remote = Arguments(notes, effects), RemoteCalls(effects)
        self._arguments, self._context = arguments.of, arguments.context
        # Where a cluster has jobs, too, there are more runners than may run handlers here.
        self._places = places
        around = places or nullcontext()
        self._executors: dict[Executor, HandlerExecutor] = {
            Executor.LOOP: Loop(arguments, around),
            Executor.THREAD: Threads(config.concurrency, arguments, events, around),
            Executor.PROCESS: Children(
                nursery, config, homes, tasks.values(), events, notes=notes, remote=remote
            ),
        }
        engines: dict[Executor, Engine[Any] | None] = {
            Executor.DASK: None if config.dask is None else Dask(config.dask),
            Executor.RAY: None if config.ray is None else Ray(config.ray),
        }
        for executor, engine in engines.items():
            mine = [task for task in tasks.values() if task.executor is executor]
            self._executors[executor] = (
                NoCluster(frozenset(task.name for task in mine))
                if engine is None
                else Cluster(engine, mine, remote, notes=notes, events=events, changed=self._change)
            )
        self._changed = changed
        self.capacity = 0
        self.unable: frozenset[str] = frozenset()
        # Asked for once: a call per job would cost more than a small handler.
        self._on_started = events.listeners(JobStarted)

    def __len__(self) -> int:
        """How many jobs run."""
        return len(self._running)

    @property
    def full(self) -> bool:
        """Whether a handler on the loop would have to wait for a place."""
        return self._places is not None and self._places.locked()

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
        """Find out what would keep handlers from running, before anything is claimed.

        Raises:
            LifespanFailed: A lifespan of child processes could not be entered.
            ConfigError: One of them or a handler needs a resource that no lifespan yields.
        """
        for executor in self._executors.values():
            await executor.prepare()
        self._change()

    def _change(self) -> None:
        """Add up what the executors can do."""
        executors = self._executors.values()
        self.capacity = sum(executor.capacity for executor in executors)
        self.unable = frozenset[str]().union(*(executor.lacking for executor in executors))
        self._changed()

    def close(self, *, hurry: bool = False) -> None:
        """End what the executors have begun; blocks."""
        for executor in self._executors.values():
            executor.close(hurry=hurry)

    # Jobs ------------------------------------------------------------------------------------

    async def run_job(
        self, call: Call, job: ClaimedJob, rest: Awaitable[Any] | None = None
    ) -> Settlement | None:
        """Run a job, or the `rest` of it; its settlement, or `None` if nothing is to be written."""
        task = self._tasks.get(job.task)
        if task is None:
            return self._unknown(job)
        if self.unable and job.task in self.unable:
            return passed_on(job)
        if job.headers is not None and self.expired(job):
            return self.cancelled(job)
        call.job, call.task, call.batch, call.context, call.stop = job, task, None, None, None
        call.pages = None
        call.home = home = self._homes.of(task)
        self._running[job.id] = call
        if self._on_started:
            self._events.emit(JobStarted(job))
        try:
            if job.headers is not None:
                await self._heed(call, job)
            if rest is not None:
                value = await (rest if self._places is None else self._in_place(rest))
            elif home.around:
                value = await self._call_through(call)
            elif self._places is None and job.timeout is None and task.executor is Executor.LOOP:
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
            if task.executor.elsewhere and value is not None:
                return task.result_codec.decode(value)
            return value

        return await wrapped(call.home.around, self._context(call), call_next)()

    @staticmethod
    async def _heed(call: Call, job: ClaimedJob) -> None:
        """What the job's headers ask for: known successors, and the results that it is given."""
        check_known(job, call.task)
        if needs_of(job.headers):
            database = call.task.enqueuing.database
            call.job, call.pages = await adrive(fetching(job, call.task), database.arun)

    async def _in_place(self, rest: Awaitable[Any]) -> Any:
        """The rest of a handler that began because there was a place for it."""
        async with self._places or nullcontext():
            return await rest

    async def _call(self, call: Call) -> Any:
        limit = TimeLimit(call.job.timeout, partial(self._interrupt, call, Stop.TIMEOUT))
        try:
            return await self._executors[call.task.executor].submit(call, limit)
        finally:
            limit.end()

    # Ending ----------------------------------------------------------------------------------

    def _interrupt(self, call: Call, reason: Stop) -> None:
        """Make a call stop, as far as that is possible where it runs."""
        call.stop = reason
        if call.context is not None:
            call.context.request_cancel()
        self._executors[call.task.executor].cancel(call, reason)

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
            if stop is not Stop.TIMEOUT:
                return self._obeyed(job, stop)
            error = too_long(job)
        if error is None:
            # What ran elsewhere has its result encoded already; middleware has decoded that again.
            encoded = value is not None and task.executor.elsewhere and not call.home.around
            graft = call.context.added() if isinstance(call.context, Context) else None
            settlement = returned(job, task, value, encoded=encoded, graft=graft)
            return forgetting(settlement, call.context)
        if (sleeping := suspended(error)) is not None:
            return sleeping.settlement(job)
        settlement = forgetting(failed(job, task, error), call.context)
        if self._completions:
            self._effects.log_late(job, error)
        return settlement

    def _obeyed(self, job: ClaimedJob, stop: Stop) -> Settlement | None:
        """How a job ended whose call was told to stop, and did."""
        match stop:
            case Stop.CANCEL:
                return self.cancelled(job)
            case Stop.RELEASE:
                return released(job)
            case Stop.UNABLE:
                return passed_on(job)
            case _:
                return None
