"""Runners that also make calls for many jobs: the handlers of batch tasks.

A batch is gathered before it reaches a runner (`rota.worker.gathering`); one runner serves it, and one
`Run` stands for all of its jobs. What ends the whole call (a timeout, a lost session, the end of the
worker) ends it for each of them, and only then is each job settled by itself.
"""

import functools
from collections.abc import Callable, Collection, Iterable
from typing import Any

from rota.app.batch import BatchTask
from rota.app.middleware import Middleware
from rota.app.task import Task
from rota.config import WorkerConfig
from rota.events import Events, JobStarted
from rota.model.job import ClaimedJob, JobId
from rota.model.notes import Notes
from rota.model.settlement import Settlement, cancelled
from rota.outcome import Outcome
from rota.worker.gathering import CANCELLED, Batch, Batches
from rota.worker.job_transactions import Effects
from rota.worker.run import Run
from rota.worker.runners import Runners


class BatchRunners(Runners):
    """Runs jobs one by one, and those of batch tasks together."""

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
        batch_tasks: dict[str, BatchTask[Any, Any]],
        spare: Callable[[int], None],
    ) -> None:
        super().__init__(
            tasks,
            config,
            events,
            settle,
            ended,
            effects=effects,
            notes=notes,
            middleware=middleware,
        )
        self._batches = Batches(batch_tasks, self._take, spare)
        self._called: dict[JobId, Batch] = {}

    def deliver(self, jobs: Iterable[ClaimedJob]) -> None:
        """Take claimed jobs in."""
        super().deliver(self._batches.take(jobs) if self._batches else jobs)

    def cancel(self, jobs: Collection[JobId]) -> None:
        """Stop jobs that somebody wants cancelled; in a call for many, only tell the handler."""
        alone = []
        for job in jobs:
            if batch := self._called.get(job):
                batch.cancel(job)
            else:
                alone.append(job)
        super().cancel(alone)

    def drop(self) -> list[ClaimedJob]:
        """Empty the inbox and the batches; the jobs that were in them and will not be started."""
        dropped = super().drop()
        self._batches.drop()
        return dropped

    def _unstarted(self) -> list[ClaimedJob]:
        return super()._unstarted() + self._batches.unstarted()

    def _begun(self) -> list[ClaimedJob]:
        # A run stands for all jobs of its batch; one that is being gathered has its place already.
        calls = {id(batch): batch for batch in self._called.values()}.values()
        alone = [
            run.job
            for job, run in self._running.items()
            if run.job is not None and job not in self._called
        ]
        called = [job for batch in calls for job in batch.jobs]
        return [*alone, *called, *self._batches.unstarted()]

    def _take(self, batch: Batch) -> None:
        self._due.append(functools.partial(self._run_batch, batch))
        self._start()

    async def _run_batch(self, batch: Batch, run: Run) -> None:
        """Make one call for many jobs, and settle each of them by itself."""
        if self._next is None:
            self._start()
        count = len(batch.jobs)
        for job in batch.take_out(self._unwanted):
            self._unwanted.discard(job.id)
            self._end(job, cancelled(job, batch.task.keeps[job.queue].cancelled))
            self._give(job)
        self._batches.begin(batch)
        said = await self._call_batch(batch, run) if batch.jobs else None
        for job, part in batch.parts(said):
            self._end(job, self._ending(run, job, batch.task, part))
            self._give(job)
        self._batches.end(batch)
        self._ended(count)

    async def _call_batch(self, batch: Batch, run: Run) -> object:
        """What the handler returned or raised; nothing if the args of no job could be read."""
        batch.read(self._notes)
        lead = batch.lead
        run.job, run.task, run.context, run.stop = lead, batch.task, batch.context, None
        for job in batch.jobs:
            self._running[job.id] = run
            self._called[job.id] = batch
            if self._on_started:
                self._events.emit(JobStarted(job))
        try:
            if batch.elements:
                call = self._call_through if self._around else self._call
                return await call(run, lead, batch.task, batch.arguments())
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is an outcome
            return error
        else:
            return None
        finally:
            for job in batch.jobs:
                # Not if it has come back, after a lost session, while a thread was still at it.
                if self._called.get(job.id) is batch:
                    del self._running[job.id], self._called[job.id]
            while run.stop is not None and run.runner.cancelling():
                run.runner.uncancel()

    def _ending(
        self, run: Run, job: ClaimedJob, task: BatchTask[Any, Any], part: object
    ) -> Settlement | None:
        if part is CANCELLED:
            return cancelled(job, task.keeps[job.queue].cancelled)
        error = part if isinstance(part, BaseException) and not isinstance(part, Outcome) else None
        if run.stop is not None:
            return self._stopped(run, job, task, error, part)
        return self._returned(job, task, part) if error is None else self._failed(job, task, error)

    def _end(self, job: ClaimedJob, settlement: Settlement | None) -> None:
        if settlement is None:
            return
        self._settle(settlement)
        self._events.settled(job, settlement)
