"""Gathering the jobs of batch tasks, and what their call says of each job.

A batch is open from its first job until a runner takes it. When it is full, or `within` seconds
after its first job, it goes to the runners' inbox; while it waits there for a free runner, it still
takes jobs in. So there is at most one open batch of each task, and a worker that is busy makes its
batches larger instead of more.

The claimer counts jobs, the concurrency counts calls: so the claimer is told how many jobs it may
hold beyond its concurrency, for the batches that are gathered or run.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NoReturn

from msgspec.structs import replace

from rota.app.batch import BatchTask
from rota.app.context import BatchContext, Context
from rota.app.resources import Resources
from rota.app.successor import check_known
from rota.errors import ArgsError, ConfigError, SuccessorNotFound
from rota.model.job import ClaimedJob, JobId
from rota.model.notes import Notes

CANCELLED: Final = object()
"""What is said of a job that was not completed because its cancelling was requested."""


class Batch:
    """Jobs of one task for one call."""

    __slots__ = ("_faults", "_resources", "context", "elements", "jobs", "task", "timer")

    def __init__(self, task: BatchTask[Any, Any]) -> None:
        self.task = task
        self.jobs: list[ClaimedJob] = []
        self.timer: asyncio.TimerHandle | None = None
        """Runs while the batch is gathered; afterwards it may still take jobs in."""
        self.elements: list[object] = []
        self.context = BatchContext(task.name, None, ())
        self._faults: dict[JobId, ArgsError | SuccessorNotFound] = {}
        self._resources = Resources()

    @property
    def full(self) -> bool:
        """Whether no other job may join."""
        return len(self.jobs) >= self.task.batching.size

    @property
    def lead(self) -> ClaimedJob:
        """The job in whose name the call is made; its timeout is that of the task."""
        return replace(self.jobs[0], timeout=self.task.spec.timeout)

    def take_out(self, unwanted: Collection[JobId]) -> list[ClaimedJob]:
        """Take jobs out that are to be cancelled; those that were in."""
        out = [job for job in self.jobs if job.id in unwanted]
        if out:
            self.jobs = [job for job in self.jobs if job.id not in unwanted]
        return out

    def read(self, notes: Notes, resources: Resources) -> None:
        """Read the args; a job whose args cannot be read takes no part in the call."""
        contexts = []
        self._resources = resources
        for job in self.jobs:
            try:
                if job.headers is not None:
                    check_known(job, self.task)
                [element], _ = self.task.codec.decode(job.args)
            except (ArgsError, SuccessorNotFound) as error:
                self._faults[job.id] = error
            else:
                self.elements.append(element)
                contexts.append(
                    Context(
                        job,
                        notes=notes,
                        transact=_no_transaction,
                        resources=resources,
                        soft_timeout=self.task.soft_timeout,
                    )
                )
        task = self.task
        self.context = BatchContext(
            task.name, task.spec.timeout, contexts, resources, task.soft_timeout
        )

    def arguments(self) -> tuple[list[object], dict[str, object]]:
        """What the handler is called with, by place and by name."""
        arguments: dict[str, object] = {
            self.task.parameter: self.elements,
            **self._resources.of(self.task),
        }
        if self.task.codec.context_parameter is not None:
            arguments[self.task.codec.context_parameter] = self.context
        return [], arguments

    def cancel(self, job: JobId) -> None:
        """Tell the handler that this job is to be cancelled."""
        for context in self.context.jobs:
            if context.job_id == job:
                context.request_cancel()

    def parts(self, said: object) -> list[tuple[ClaimedJob, object]]:
        """What the call says of each job: its value, its outcome, or why it failed.

        Args:
            said: What the handler returned, or the exception that it raised.
        """
        called = self.context.jobs
        match said:
            case list() if len(said) == len(called):
                each = said
            case list():
                each = [self._wrong(f"a list of {len(said)}")] * len(called)
            case None | BaseException():
                each = [said] * len(called)
            case _:
                each = [self._wrong(type(said).__name__)] * len(called)
        parts: dict[JobId, object] = {**self._faults}
        for context, part in zip(called, each, strict=True):
            noticed = context.noticed
            gone = context.cancelled and (noticed or isinstance(part, BaseException))
            parts[context.job_id] = CANCELLED if gone else part
        return [(job, parts[job.id]) for job in self.jobs]

    def _wrong(self, what: str) -> TypeError:
        return TypeError(
            f"the batch handler of {self.task.name!r} was called with {len(self.context.jobs)} elements "
            f"and returned {what}; it must return None, or a list with one item for each"
        )


class Batches:
    """Gathers jobs into batches; lives on the event loop.

    `take` is called with each batch that a runner shall take, `allow` with how many jobs may be
    held for batches beyond the concurrency.
    """

    def __init__(
        self,
        tasks: Mapping[str, BatchTask[Any, Any]],
        take: Callable[[Batch], None],
        allow: Callable[[int], None],
    ) -> None:
        self._tasks = tasks
        self._take = take
        self._allow = allow
        self._loop = asyncio.get_running_loop()
        self._open: dict[str, Batch] = {}
        self._waiting: list[Batch] = []
        self._running = 0

    def take(self, jobs: list[ClaimedJob]) -> list[ClaimedJob]:
        """Take those jobs in that are gathered; the other ones come back."""
        if not self._tasks:
            return jobs
        others = []
        for job in jobs:
            task = self._tasks.get(job.task)
            if task is None:
                others.append(job)
            else:
                self._join(task, job)
        self._tell()
        return others

    def begin(self, batch: Batch) -> None:
        """A runner takes the batch; no job joins it any more."""
        self._waiting.remove(batch)
        if self._open.get(batch.task.name) is batch:
            del self._open[batch.task.name]
        self._running += len(batch.jobs) - 1
        self._tell()

    def end(self, batch: Batch) -> None:
        """The call of a batch has ended."""
        self._running -= len(batch.jobs) - 1
        self._tell()

    def unstarted(self) -> list[ClaimedJob]:
        """The jobs that no runner has taken."""
        return [job for batch in self._waiting for job in batch.jobs]

    def drop(self) -> None:
        """Forget the jobs that no runner has taken."""
        for batch in self._open.values():
            if batch.timer is not None:
                batch.timer.cancel()
        self._open.clear()
        self._waiting.clear()
        self._tell()

    def _join(self, task: BatchTask[Any, Any], job: ClaimedJob) -> None:
        batch = self._open.get(task.name)
        if batch is None:
            batch = self._open[task.name] = Batch(task)
            batch.timer = self._loop.call_later(task.batching.within, self._gathered, batch)
            self._waiting.append(batch)
        batch.jobs.append(job)
        if batch.full:
            del self._open[task.name]
            if batch.timer is not None:
                batch.timer.cancel()
                self._gathered(batch)

    def _gathered(self, batch: Batch) -> None:
        """The batch is full, or its time is up: now, and only once, it goes to the runners."""
        batch.timer = None
        self._take(batch)
        self._tell()

    def _tell(self) -> None:
        gathering = sum(
            batch.task.batching.size for batch in self._open.values() if batch.timer is not None
        )
        self._allow(gathering + self._running)


def _no_transaction(job: ClaimedJob, conn: object, commit: bool) -> NoReturn:  # noqa: ARG001, FBT001
    message = (
        "ctx.transaction() completes one job, and a batch handler's call serves many; "
        "make it a task without batch="
    )
    raise ConfigError(message)
