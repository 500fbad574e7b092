"""What a handler can learn about its own run.

A parameter annotated `Context` receives one, in a batch handler one annotated `BatchContext`; it is
no part of the job's args.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, overload

import msgspec

from rota.app.run import Run
from rota.errors import ConfigError
from rota.model.headers import MADE_BY, decoded, of_users
from rota.model.job import ClaimedJob, JobId, JobSpec, LeaseId
from rota.model.notes import JobLog, Notes, RunNotes

if TYPE_CHECKING:
    from rota.app.grafting import Grafting
    from rota.app.job_steps import JobSteps
    from rota.app.job_transaction import JobTransaction, Transact
    from rota.app.resources import Resources
    from rota.app.step_transaction import StepTransaction
    from rota.model.flow import Graft

T = TypeVar("T")
P = ParamSpec("P")


class Context(Run):
    """The running job, and whether it should stop."""

    __slots__ = ("_graft", "_grafts", "_job", "_notes", "_remember", "_steps", "_told", "_transact")

    def __init__(
        self,
        job: ClaimedJob,
        *,
        notes: Notes | None = None,
        transact: "Transact | None" = None,
        remember: "Callable[[ClaimedJob], JobSteps] | None" = None,
        grafts: "Callable[[ClaimedJob], Grafting] | None" = None,
        resources: "Resources | None" = None,
        soft_timeout: float | None = None,
        interrupts: bool = False,
    ) -> None:
        super().__init__(resources, soft_timeout, interrupts=interrupts)
        self._job = job
        self._remember = remember
        self._steps: JobSteps | None = None
        self._grafts = grafts
        self._graft: Grafting | None = None
        self._notes = notes
        self._transact = transact
        self._told: RunNotes | None = None

    @classmethod
    def alone(cls, spec: JobSpec, transact: "Transact | None" = None) -> Self:
        """The context of a direct call, which belongs to no job: its id is 0."""
        job = ClaimedJob(
            JobId(0), LeaseId(0), spec.task, "{}", spec.queue, spec.priority, 1,
            spec.attempts(None), spec.time_limit(None), time.time(),
        )  # fmt: skip
        return cls(job, transact=transact)

    @property
    def job_id(self) -> JobId:
        """The job's id."""
        return self._job.id

    @property
    def task(self) -> str:
        """The task's name."""
        return self._job.task

    @property
    def queue(self) -> str:
        """The queue the job came from."""
        return self._job.queue

    @property
    def priority(self) -> int:
        """The job's priority, smaller first."""
        return self._job.priority

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self._job.attempt

    @property
    def max_attempts(self) -> int:
        """How many attempts the job has altogether."""
        return self._job.max_attempts

    @property
    def args(self) -> dict[str, Any]:
        """The args as they are stored: JSON, by parameter name, parsed anew on each access."""
        return msgspec.json.decode(self._job.args, type=dict[str, Any])

    @property
    def headers(self) -> dict[str, str]:
        """The names and texts that were enqueued with the job, parsed anew on each access."""
        return of_users(self._job.headers)

    @property
    def cron_entry(self) -> str | None:
        """The name of the cron entry that made the job, if one did."""
        return decoded(self._job.headers).get(MADE_BY)

    @property
    def enqueued_at(self) -> datetime:
        """When the job was enqueued."""
        return datetime.fromtimestamp(self._job.enqueued_at, UTC)

    @property
    def timeout(self) -> float | None:
        """Seconds this attempt may take, `None` for no limit."""
        return self._job.timeout

    def progress(self, fraction: float, message: str = "") -> None:
        """Report how far the work has come: 0.4 is two fifths. `message` says in words what is going on.

        Cheap enough for every step of a loop: it only notes the newest value, which is written
        about once a second, and when the run ends. A direct call of the task stores nothing.

        Raises:
            ConfigError: The fraction is not a number from 0 to 1, or the message is not a text.
        """
        self._run.progress(fraction, message)

    def transaction(self, conn: object = None, *, commit: bool = True) -> "JobTransaction":
        """A transaction in which the job is completed, for one `with` (or `async with`) block.

        At the end of the block the job's completion is written, fenced, and committed together with
        what the handler wrote in it. An exception undoes both, and is an ordinary failed attempt.

        Args:
            conn: A connection or session of yours; without one Rota opens a connection to the job's
                database, whose statements `execute` and `aexecute` run.
            commit: Whether Rota commits and rolls back. If not, you do, on your `conn`; for
                two-phase commit, or as part of a larger transaction of yours.

        Raises:
            ConfigError: The run has no job; or (when the block begins) the connection cannot be
                used or the job has been completed already.
            LeaseLost: When the block begins or ends: the job was taken over by another worker.
            TransactionEnded: When the block ends: the handler has committed or rolled back itself.
        """
        if self._transact is None:
            message = (
                "ctx.transaction() needs a job, and this run has none; enqueue one, and drain it "
                "with the test kit"
            )
            raise ConfigError(message)
        transaction = self._transact(self._job, conn, commit)
        transaction.added = self.added
        return transaction

    @property
    def flow(self) -> "Grafting":
        """Adds jobs to the flow that this job belongs to: `ctx.flow.add(…)`, `ctx.flow.map(…)`.

        They are stored when the job is completed, in the same transaction. What waits for this job
        waits for them, too.

        Raises:
            ConfigError: The job belongs to no flow, or this is another process or a direct call.
        """
        if self._graft is None:
            if self._grafts is None:
                message = (
                    "ctx.flow is not possible in another process, and in a direct call, which belongs to no flow; "
                    "leave executor= out, or enqueue the flow and drain it with the test kit"
                )
                raise ConfigError(message)
            self._graft = self._grafts(self._job)
        return self._graft

    def added(self) -> "Graft | None":
        """What this run has added to its flow; nothing can be added any more."""
        return None if self._graft is None else self._graft.graft()

    @overload
    def step(
        self, name: str, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[T]: ...
    @overload
    def step(
        self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    def step(self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call the function, unless an earlier run did so under this name; returns its result.

        The result is stored before it is returned, so the function runs again only if it did not
        finish or its result could not be stored: make it idempotent, or see `step_transaction`. In
        an async handler the function is async, and this is awaited. A repeated name is another
        step.

        Raises:
            ConfigError: Another step of that name is under way, or steps are not possible here.
            ArgsError: The result does not fit the function's annotation, or is larger than 1 MB.
            LeaseLost: The job was taken over by another worker.
        """
        return self._remembering("step").step(name, function, args, kwargs)

    def step_transaction(self, name: str, conn: object = None) -> "StepTransaction":
        """A step that is a transaction: one `with` (or `async with`) block, committed exactly once.

        If the step is already remembered, the block ends at its first use of the transaction.
        `conn` is your own connection or session, as for `transaction`; check `done` first, or take
        `connection` from the transaction.

        Raises:
            ConfigError: As `step`, when the block begins, or the connection cannot be used.
            LeaseLost: When the block begins or ends: the job was taken over by another worker.
            TransactionEnded: When the block ends: the handler has committed or rolled back itself.
        """
        from rota.app.step_transaction import StepTransaction  # here: few handlers need it

        return StepTransaction(self._remembering("step_transaction"), name, conn)

    def sleep(self, duration: float | timedelta, *, name: str = "sleep") -> Any:
        """Sleep without taking up a slot.

        The handler ends here, and is called again when the time is over, with its steps remembered.

        No attempt is spent. In an async handler, await it.

        Raises:
            ConfigError: Another sleep of that name is under way, or it is not possible here.
        """
        return self._remembering("sleep").sleep(duration, name)

    def wait_for(self, signal: str, *, timeout: float | timedelta | None = None) -> Any:
        """Wait for the next signal of that name and return its payload, see `JobHandle.signal`.

        Until it comes, the job sleeps without taking up a slot.

        A signal that came earlier is not lost. Each signal is taken once. In an async handler,
        await it.

        Raises:
            SignalTimeout: None came in `timeout` seconds; later runs raise it, too.
            ConfigError: Another wait for that name is under way, or it is not possible here.
            LeaseLost: The job was taken over by another worker.
        """
        return self._remembering("wait_for").wait_for(signal, timeout)

    @property
    def remembers(self) -> bool:
        """Whether the job has steps."""
        return self._steps is not None and self._steps.used

    def _remembering(self, what: str) -> "JobSteps":
        if self._steps is None:
            if self._remember is None:
                message = (
                    f"ctx.{what}() works neither in another process, which does not hold the job, nor in a direct call, "
                    "which has none; leave out executor=, or enqueue the job and drain it with the test kit"
                )
                raise ConfigError(message)
            self._steps = self._remember(self._job)
        return self._steps

    @property
    def log(self) -> JobLog:
        """Writes lines that are kept with the job: `ctx.log("…")`, `ctx.log.warning("…")`.

        The newest hundred are kept; see `rota.notes` for the bounds.
        """
        return JobLog(self._run)

    @property
    def _run(self) -> RunNotes:
        if self._told is None:
            self._told = RunNotes(self._job, self._notes)
        return self._told


class BatchContext(Run):
    """The jobs that one call of a batch handler serves, and whether the whole call should stop.

    It should when its time is up, the leases are lost, or the worker ends. A request to cancel one
    job shows in `cancelled` of that job's own context, and stops nothing by itself.
    """

    __slots__ = ("_jobs", "_task", "_timeout")

    def __init__(
        self,
        task: str,
        timeout: float | None,
        jobs: Sequence[Context],
        resources: "Resources | None" = None,
        soft_timeout: float | None = None,
    ) -> None:
        super().__init__(resources, soft_timeout)
        self._task = task
        self._timeout = timeout
        self._jobs = tuple(jobs)

    @classmethod
    def alone(cls, spec: JobSpec, count: int) -> Self:
        """The context of a direct call with `count` elements, which belong to no jobs."""
        return cls(spec.task, spec.time_limit(None), [Context.alone(spec) for _ in range(count)])

    @property
    def jobs(self) -> tuple[Context, ...]:
        """A context for each element of the list, in the same order."""
        return self._jobs

    @property
    def task(self) -> str:
        """The task's name."""
        return self._task

    @property
    def timeout(self) -> float | None:
        """Seconds this call may take, `None` for no limit."""
        return self._timeout


RUN: ContextVar[Context | BatchContext | None] = ContextVar("run", default=None)
"""What is being run where a line is logged: in child processes, and in workers whose log names it."""
