"""What a handler can learn about its own run.

A parameter annotated `Context` receives one, in a batch handler one annotated `BatchContext`; it is
no part of the job's args.
"""

import threading
import time
from collections.abc import Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

import msgspec

from rota.app.in_time import InTime, too_slow
from rota.args.provided import Need, kinds_of
from rota.errors import ConfigError
from rota.model.headers import MADE_BY, decoded, of_users
from rota.model.job import ClaimedJob, JobId, JobSpec, LeaseId
from rota.model.notes import JobLog, Notes, RunNotes

if TYPE_CHECKING:
    from rota.app.job_transaction import JobTransaction, Transact
    from rota.app.resources import Resources

T = TypeVar("T")


class Run:
    """What the context of one job and that of a batch have in common."""

    __slots__ = ("_cancelled", "_interrupts", "_noticed", "_resources", "_soft_end")

    def __init__(
        self,
        resources: "Resources | None" = None,
        soft_timeout: float | None = None,
        *,
        interrupts: bool = False,
    ) -> None:
        self._cancelled = threading.Event()
        self._noticed = False
        self._resources = resources
        self._soft_end = None if soft_timeout is None else time.monotonic() + soft_timeout
        self._interrupts = interrupts

    @property
    def cancelled(self) -> bool:
        """Whether the job was asked to stop, its time is up, or its lease was lost.

        Async handlers are cancelled by themselves; a handler in a thread cannot be stopped from
        outside, so a long one looks at this between its steps and returns.
        """
        self._noticed = self._noticed or self._cancelled.is_set()
        return self._noticed

    def wait_cancelled(self, seconds: float) -> bool:
        """Wait up to `seconds` for a request to stop; whether there is one. For threads."""
        self._cancelled.wait(seconds)
        return self.cancelled

    @property
    def noticed(self) -> bool:
        """Whether the handler has been told to stop by one of the above."""
        return self._noticed

    def request_cancel(self) -> None:
        """Tell the handler to stop; the worker calls this."""
        self._cancelled.set()

    @property
    def hurry(self) -> bool:
        """Whether the task's soft timeout has come: time to end in order, before `timeout` comes."""
        return self._soft_end is not None and time.monotonic() >= self._soft_end

    def check_time(self) -> None:
        """Go on, unless the task's soft timeout has come: for the steps of a thread.

        Raises:
            SoftTimeout: It has.
        """
        if self.hurry:
            raise too_slow()

    def in_time(self) -> InTime:
        """A block that ends with a `SoftTimeout` when the task's soft timeout comes.

        `async with` on the loop, where what the block waits for is cancelled; `with` in a child
        process, where the handler is interrupted wherever it is. A thread cannot be interrupted.

        Raises:
            SoftTimeout: When the block begins, or while it runs.
            ConfigError: When a `with` block begins, if this is no child process.
        """
        return InTime(self._soft_end, interrupts=self._interrupts)

    @overload
    def resource(self, what: type[T], /) -> T: ...
    @overload
    def resource(self, what: str, /) -> Any: ...
    def resource(self, what: type[Any] | str, /) -> Any:
        """What a lifespan has yielded, by its type or by the lifespan's name.

        Of the exact type, else of a subclass of it.

        Raises:
            ConfigError: No lifespan has, several have one of that type, or this is a direct call.
        """
        if self._resources is None:
            message = (
                f"ctx.resource({what!r}): a direct call has no resources; pass it as an argument"
            )
            raise ConfigError(message)
        need = Need(what) if isinstance(what, str) else Need("", kinds_of(what))
        return self._resources.find(need, f"ctx.resource({what!r})")


class Context(Run):
    """The job that is being run, and whether it shall stop."""

    __slots__ = ("_job", "_notes", "_told", "_transact")

    def __init__(
        self,
        job: ClaimedJob,
        *,
        notes: Notes | None = None,
        transact: "Transact | None" = None,
        resources: "Resources | None" = None,
        soft_timeout: float | None = None,
        interrupts: bool = False,
    ) -> None:
        super().__init__(resources, soft_timeout, interrupts=interrupts)
        self._job = job
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
        """The args as they are stored: JSON, by parameter name, read anew at each look."""
        return msgspec.json.decode(self._job.args, type=dict[str, Any])

    @property
    def headers(self) -> dict[str, str]:
        """The names and texts that were enqueued with it, read anew at each look."""
        return of_users(self._job.headers)

    @property
    def cron_entry(self) -> str | None:
        """The name of the cron entry that has made the job, if one has."""
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
        """Say how far the work is: 0.4 is two fifths. `message` says in words what is going on.

        Cheap enough for a loop's every step: it only notes the newest value, which is written about
        once a second, and when the run ends. A direct call of the task keeps it nowhere.

        Raises:
            ConfigError: The fraction is no number from 0 to 1, or the message no text.
        """
        self._run.progress(fraction, message)

    def transaction(self, conn: object = None, *, commit: bool = True) -> "JobTransaction":
        """A transaction in which the job is completed, for one `with` (or `async with`) block.

        At the end of the block the job's completion is written, fenced, and committed together with
        what the handler wrote in it. An exception undoes both, and is an ordinary failed attempt.

        Args:
            conn: A connection or session of yours; without one Rota opens a connection to the job's
                database, whose statements `execute` and `aexecute` run.
            commit: Whether Rota commits and rolls back. If not, you do, on your `conn`; for two-phase
                commit, or where it is a larger transaction of yours.

        Raises:
            ConfigError: The handler runs in a child process, or (when the block begins) the
                connection cannot be used or the job has been completed already.
            LeaseLost: When the block begins or ends: the job was taken over by another worker.
            TransactionEnded: When the block ends: the handler has committed or rolled back itself.
        """
        if self._transact is None:
            message = (
                "ctx.transaction() is not possible in a child process, which does not hold the job; "
                "leave out executor='process', or make the handler idempotent"
            )
            raise ConfigError(message)
        return self._transact(self._job, conn, commit)

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

    That is so when its time is up, the leases are lost, or the worker ends. A request to cancel one
    job is told by `cancelled` of that job's own context, and stops nothing by itself.
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
