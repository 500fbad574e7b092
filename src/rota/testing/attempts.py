"""One attempt of a job (or of a batch), as a worker makes it, in the test's transaction.

Args are read as a worker reads them, middleware is called, what the handler says becomes a
settlement by the worker's own functions, and the store's own operation writes it. What differs: the
attempt is a savepoint, and is undone when the handler fails; nothing else runs meanwhile.
"""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from rota.app.app import Rota
from rota.app.batch import BatchTask
from rota.app.context import BatchContext, Context
from rota.app.executor import Executor
from rota.app.grafting import Grafting
from rota.app.job_steps import JobSteps
from rota.app.job_transaction import Completion, JobTransaction
from rota.app.resources import Resources
from rota.app.results import Fetch, Filled, fetching, put
from rota.app.successor import check_known
from rota.app.suspended import Suspended, suspended
from rota.app.task import Task
from rota.errors import ArgsError, ConfigError, TaskNotFound
from rota.events import JobExpired, JobStarted
from rota.model.flow import needs_of
from rota.model.headers import expired
from rota.model.job import ClaimedJob, Following, LeaseId, SessionId
from rota.model.memory import Holder
from rota.model.notes import Notes
from rota.model.settlement import cancelled, released
from rota.model.states import Move
from rota.outcome import Outcome
from rota.relay.relay import Relay
from rota.store.operation import Operation
from rota.store.protocol import Store
from rota.store.testing import Wanted
from rota.testing.calling import Handler, Side
from rota.testing.frames import hidden
from rota.testing.jobs import read_args
from rota.testing.runs import Ended, Run
from rota.worker.batches import CANCELLED, Batch
from rota.worker.ending import failed, forgetting, returned
from rota.worker.undone import undone

__tracebackhide__ = hidden

Flow = Generator[Callable[[], Any], Any, Any]


class Attempts:
    """Makes attempts of the jobs of an app."""

    def __init__(self, app: Rota, store: Store, resources: Resources) -> None:
        self._app = app
        self._store = store
        self._resources = resources
        self._notes = Notes(lambda: None)

    def make(
        self, side: Side, session: SessionId, jobs: Sequence[ClaimedJob], *, crash: bool
    ) -> Flow:
        """Run jobs that were claimed together: one, or those of a batch. Gives a `Run` of each.

        `crash`: their lease is lost after the handler, and they run a second time.

        Raises:
            TaskNotFound: The app has no such task.
        """
        if crash:
            ended = yield from self._attempt(side, session, jobs)
            if all(one.error is None and not one.settled for one in ended):
                jobs = yield from self._lose(side, session, ended)
                ended = yield from self._attempt(side, session, jobs)
        else:
            ended = yield from self._attempt(side, session, jobs)
        runs = []
        for one in ended:
            came = one.following
            if not one.settled:
                settling = self._store.settle(session, [one.settlement])
                came = (yield partial(side.run, settling)).following
            if one.settlement.node is not None:
                yield partial(side.run, self._store.flows.decide([one.settlement.node]))
            yield partial(side.tell, partial(self._app.events.settled, one.job, one.settlement))
            yield partial(side.tell, partial(self._app.events.following, came))
            runs.append(self._run(one, came))
        return runs

    def _lose(self, side: Side, session: SessionId, ended: Sequence[Ended]) -> Flow:
        """Give jobs back that have run, as if their worker had been lost, and claim them again."""
        back = [released(one.job) for one in ended]
        yield partial(side.run, self._store.settle(session, back))
        late = [one.settlement for one in ended]
        refused = yield partial(side.run, self._store.settle(session, late))
        assert len(refused) == len(late)  # noqa: S101 - the fence, of which a crash depends
        testing = self._store.testing
        wanted = Wanted(jobs=[one.job.id for one in ended], limits=False)
        return (yield partial(side.run, testing.claim(session, wanted, len(ended))))

    def _attempt(  # noqa: C901 - as an attempt goes
        self, side: Side, session: SessionId, jobs: Sequence[ClaimedJob]
    ) -> Flow:
        """Call the handler in a savepoint; how each job ended."""
        task = self._app.tasks.get(jobs[0].task)
        if task is None:
            yield partial(side.run, self._store.settle(session, list(map(released, jobs))))
            message = (
                f"job {jobs[0].id} is of task {jobs[0].task!r}, which this app does not have; import the module "
                "that defines it"
            )
            raise TaskNotFound(message)
        if late := [job for job in jobs if job.headers and expired(job.headers, time.time())]:
            return (yield from self._without(late, side, session, jobs))
        call = _Call(self._app, task, session, jobs, notes=self._notes, resources=self._resources)
        yield from call.fill(side)
        handler = call.handler(self._app)
        yield from self._check(side, session, jobs, handler)
        savepoint = yield side.joined
        yield savepoint.begin
        value: Any = None
        error: BaseException | None = None
        try:
            if call.wanted:
                value = yield partial(side.call, handler)
        except Exception as raised:  # noqa: BLE001 - whatever a handler raises is an outcome
            error = raised
        except BaseException as raised:
            error = suspended(raised)
            if error is None:
                yield savepoint.rollback
                raise
        if error is None and value is not None:
            error = undone(value)
        if error is not None and not isinstance(error, Outcome | Suspended) and not call.completed:
            yield savepoint.rollback
            for operation in call.written(self._store):
                yield partial(side.run, operation)
        else:
            yield savepoint.commit
        if told := self._notes.take():
            yield partial(side.run, self._store.note(told))
        return call.ended(value, error)

    def _without(
        self, late: Sequence[ClaimedJob], side: Side, session: SessionId, jobs: Sequence[ClaimedJob]
    ) -> Flow:
        """Cancel those that have expired, and attempt the others."""
        ended = []
        for job in late:
            yield partial(side.tell, partial(self._app.events.emit, JobExpired(job)))
            keeps = self._app.tasks[job.task].keeps
            ended.append(Ended(job, cancelled(job, keeps[job.queue].cancelled)))
        if rest := [job for job in jobs if job not in late]:
            ended += yield from self._attempt(side, session, rest)
        return ended

    def _check(
        self, side: Side, session: SessionId, jobs: Sequence[ClaimedJob], handler: Handler
    ) -> Flow:
        """Give the jobs back if their handler cannot run here; else tell that it is called."""
        try:
            yield partial(side.check, handler)
        except ConfigError:
            yield partial(side.run, self._store.settle(session, list(map(released, jobs))))
            raise
        if self._app.events.wanted(JobStarted):
            for job in jobs:
                yield partial(side.tell, partial(self._app.events.emit, JobStarted(job)))

    def _run(self, ended: Ended, came: Sequence[Following]) -> Run:
        job, settlement = ended.job, ended.settlement
        task = self._app.tasks[job.task]
        result = ended.value
        if settlement.result is not None:
            result = task.result_codec.decode(settlement.result)
        elif task.store_result or settlement.move is not Move.COMPLETE:
            result = None
        return Run(
            job.id, job.task, read_args(job.task, job.args, self._app.tasks), job.attempt,
            settlement.move, result, ended.error, settlement.delay,
            tuple(successor for each in came for successor in each.jobs),
        )  # fmt: skip


def filling(steps: Fetch[Filled], side: Side) -> Flow:
    """Run what is to be read for a job; the job with it, or why it cannot be given that."""
    try:
        operation = next(steps)
        while True:
            operation = steps.send((yield partial(side.run, operation)))
    except StopIteration as end:
        return end.value
    except ArgsError as error:
        return error


class _Call:
    """One call, for one job or those of a batch."""

    def __init__(
        self,
        app: Rota,
        task: Task[..., Any, Any],
        session: SessionId,
        jobs: Sequence[ClaimedJob],
        *,
        notes: Notes,
        resources: Resources,
    ) -> None:
        self._app = app
        self._task = task
        self._session = session
        self._jobs = jobs
        self._resources = resources
        self._filled: Filled | ArgsError = Filled(jobs[0], {})
        self._completion: Completion | None = None
        self._steps: JobSteps | None = None
        self._batch: Batch | None = None
        self._context: Context | BatchContext
        if isinstance(task, BatchTask):
            self._batch = Batch(task)
            self._batch.jobs = list(jobs)
            self._batch.read(notes, resources)
            self._context = self._batch.context
        else:
            self._context = Context(
                jobs[0],
                notes=notes,
                transact=self._transact,
                remember=None if task.executor.elsewhere else self._remember,
                grafts=None if task.executor.elsewhere else partial(Grafting, task.enqueuing),
                resources=resources,
                soft_timeout=task.soft_timeout,
            )

    def fill(self, side: Side) -> Flow:
        """Get other jobs' results that the job is given; a fault in them is the handler's error."""
        if self._batch is None and needs_of(self._jobs[0].headers):
            self._filled = yield from filling(fetching(self._jobs[0], self._task), side)

    @property
    def wanted(self) -> bool:
        """Whether there is something to call the handler with; a relay sends nothing in a test."""
        if isinstance(self._task, Relay):
            return False
        return self._batch is None or bool(self._batch.elements)

    @property
    def completed(self) -> bool:
        """Whether the handler's own transaction has completed the job."""
        return self._completion is not None and self._completion.over

    def written(self, store: Store) -> list[Operation[bool]]:
        """What appends to memory once more the steps that the handler has appended.

        The handler's failure undoes no others.
        """
        if self._steps is None:
            return []
        holder = Holder(self._session, self._jobs[0].lease, self._jobs[0].id)
        return [store.memory.remember(holder, name, text) for name, text in self._steps.written]

    def handler(self, app: Rota) -> Handler:
        """What is to be called."""
        job = self._jobs[0] if self._batch is None else self._batch.lead
        return Handler(self._task, job, self._context, self._arguments, app.middleware)

    def ended(self, value: Any, error: BaseException | None) -> list[Ended]:
        """How each job ended."""
        if self._batch is not None:
            said = value if error is None else error
            return [self._part(job, part) for job, part in self._batch.parts(said)]
        job = self._jobs[0]
        completion = self._completion
        if completion is not None:
            job = completion.job
            if completion.over and completion.settlement is not None:
                return [
                    Ended(
                        job,
                        completion.settlement,
                        value,
                        error,
                        settled=True,
                        following=completion.following,
                    )
                ]
        return [self._end(job, value, error)]

    def _part(self, job: ClaimedJob, part: object) -> Ended:
        if part is CANCELLED:
            return Ended(job, cancelled(job, self._task.keeps[job.queue].cancelled))
        if isinstance(part, BaseException):
            return self._end(job, None, part)
        return self._end(job, part, None)

    def _end(self, job: ClaimedJob, value: Any, error: BaseException | None) -> Ended:
        if isinstance(value, Outcome):
            value, error = None, value
        if isinstance(error, Suspended):
            return Ended(job, error.settlement(job), None, None)
        if error is not None:
            ended = Ended(job, failed(job, self._task, error), None, error)
        else:
            graft = self._context.added() if isinstance(self._context, Context) else None
            settlement = returned(job, self._task, value, encoded=False, graft=graft)
            ended = Ended(job, settlement, value)
        return replace(ended, settlement=forgetting(ended.settlement, self._context))

    def _arguments(self) -> tuple[list[object], dict[str, object]]:
        if self._batch is not None:
            return self._batch.arguments()
        codec = self._task.codec
        if self._jobs[0].headers is not None:
            check_known(self._jobs[0], self._task)
        filled = self._filled
        if isinstance(filled, Exception):
            raise filled
        args, kwargs = codec.decode(filled.job.args)
        if filled.pages:
            put(codec.names, (args, kwargs), filled.pages)
        if codec.context_parameter is not None:
            kwargs[codec.context_parameter] = self._context
        kwargs.update(self._resources.of(self._task))
        return args, kwargs

    def _transact(self, job: ClaimedJob, conn: object, commit: bool) -> JobTransaction:  # noqa: FBT001
        return JobTransaction(self._app.database, self._hold(job), conn, commit=commit)

    def _remember(self, job: ClaimedJob) -> JobSteps:
        awaits = self._task.executor is Executor.LOOP
        self._steps = JobSteps(self._app.database, self._hold(job), awaits=awaits)
        return self._steps

    def _hold(self, job: ClaimedJob) -> Completion:
        if self._completion is None:
            self._completion = Completion(
                job, self._session, self._task, moving=_moving, doubtful=lambda: None
            )
        return self._completion


@contextmanager
def _moving() -> Iterator[Callable[[LeaseId, LeaseId], None]]:
    """No other part of a worker has to know the new lease."""
    yield lambda _old, _new: None
