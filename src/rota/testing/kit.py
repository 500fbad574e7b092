"""The test kit: what one test can do with the jobs of its transaction."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from secrets import token_hex
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from rota.app.app import APPS, Rota
from rota.app.task import EnqueueCall, Task
from rota.errors import ConfigError
from rota.events import Event
from rota.model.job import JobId
from rota.model.states import State
from rota.store.execute import adrive, drive
from rota.testing.attempts import Flow
from rota.testing.calling import Later, Now, Side, later, now
from rota.testing.committed import Committed
from rota.testing.confinement import Confinement
from rota.testing.drain import Drain, Part
from rota.testing.jobs import EnqueuedJob, Pattern, pattern
from rota.testing.runs import Run, Runs

E = TypeVar("E", bound=Event)
Due = Literal["now", "all"]
Queues = str | Sequence[str]

DEEPEST = 50
"""Jobs that may run inside one another with `inline`."""


class Kit:
    """Looks at, and runs, the jobs of one transaction, which the test rolls back.

    Args:
        connection: A connection or session in a transaction of the test's, or `use` says it later.
        app: The app; not needed where a process has only one.
        unique: `"test"`: keys of unique jobs are the test's own, so that tests beside each other do not wait
            for each other; `"real"`: they are stored as they are.

    Raises:
        ConfigError: The connection cannot be used; the message says why.
    """

    def __init__(
        self,
        connection: object = None,
        *,
        app: Rota | None = None,
        unique: Literal["test", "real"] = "test",
    ) -> None:
        self._app = app
        self._unique = unique
        self._now: Now | None = None
        self._later: Later | None = None
        self._confinement: Confinement | None = None
        self._drain: Drain | None = None
        self._end: Any = None
        self._depth = 0
        if connection is not None:
            self.use(connection)

    def use(
        self,
        connection: object,
        *,
        app: Rota | None = None,
        unique: Literal["test", "real"] | None = None,
    ) -> Self:
        """Look at the jobs of this connection's or session's transaction from now on.

        Jobs that were enqueued in it before are seen as well. From now on all that the app does with its
        database happens in it, also without `conn=`, until the kit is closed.

        Raises:
            ConfigError: The connection cannot be used; the message says why.
        """
        self.close()
        self._app = app or self._app or _only_app()
        self._unique = unique or self._unique
        if self._unique not in {"test", "real"}:
            message = f'unique="test" or unique="real" is needed, not {self._unique!r}'
            raise ConfigError(message)
        test = f"test-{token_hex(4)}" if self._unique == "test" else ""
        database = self._app.database
        confinement = Confinement(database, connection, test)
        if database.store.name != "sqlite":
            database.ready(make=False)
        end = database.confine(confinement)
        self._confinement, self._end = confinement, end
        self._now, self._later = Now(confinement), Later(confinement)
        self._drain = Drain(self._app, confinement)
        if not confinement.awaits:
            try:
                self._do(self._drain.begin)
            except BaseException:
                self.close()
                raise
        return self

    def close(self) -> None:
        """Give the app its own database back. The transaction stays as it is; the test rolls it back."""
        if self._end is not None:
            self._end()
        if self._now is not None:
            self._now.close()
        self._confinement = self._drain = self._end = self._now = self._later = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # What was enqueued -------------------------------------------------------------------------

    def jobs(
        self,
        task: Task[..., Any, Any] | str | None = None,
        args: Mapping[str, Any] | None = None,
        /,
        *,
        queue: str | None = None,
        priority: int | None = None,
        state: State | str | None = None,
        **named: Any,
    ) -> list[EnqueuedJob]:
        """The jobs that were enqueued in the transaction, in their order, in whatever state they are now.

        Args:
            task: Only those of this task.
            args: Only those with these args, among others.
            queue: Only those of this queue.
            priority: Only those of this priority.
            state: Only those in this state.
            named: Only those with these args; `args` is for names that mean something else here.
        """
        wanted = self._pattern(task, args, named, queue=queue, priority=priority, state=state)
        return wanted.found_among(self._do(self._part.jobs))

    async def ajobs(
        self,
        task: Task[..., Any, Any] | str | None = None,
        args: Mapping[str, Any] | None = None,
        /,
        *,
        queue: str | None = None,
        priority: int | None = None,
        state: State | str | None = None,
        **named: Any,
    ) -> list[EnqueuedJob]:
        """`jobs` for async tests."""
        wanted = self._pattern(task, args, named, queue=queue, priority=priority, state=state)
        return wanted.found_among(await self._ado(self._part.jobs))

    def assert_enqueued(
        self,
        task: Task[..., Any, Any] | str,
        args: Mapping[str, Any] | None = None,
        /,
        *,
        queue: str | None = None,
        priority: int | None = None,
        state: State | str | None = None,
        count: int | None = None,
        **named: Any,
    ) -> EnqueuedJob:
        """Check that a job of this task was enqueued, with these args among others; the newest such job.

        Args:
            task: The task, or its name.
            args: Some of its args.
            queue: In this queue.
            priority: With this priority.
            state: And it is in this state now.
            count: So many, not one or more.
            named: Some of its args; `args` is for names that mean something else here.

        Raises:
            AssertionError: None was; the message says what was enqueued, the nearest first.
        """
        wanted = self._pattern(task, args, named, queue=queue, priority=priority, state=state)
        return _enqueued(wanted, self._do(self._part.jobs), count)

    async def aassert_enqueued(
        self,
        task: Task[..., Any, Any] | str,
        args: Mapping[str, Any] | None = None,
        /,
        *,
        queue: str | None = None,
        priority: int | None = None,
        state: State | str | None = None,
        count: int | None = None,
        **named: Any,
    ) -> EnqueuedJob:
        """`assert_enqueued` for async tests."""
        wanted = self._pattern(task, args, named, queue=queue, priority=priority, state=state)
        return _enqueued(wanted, await self._ado(self._part.jobs), count)

    def refute_enqueued(
        self,
        task: Task[..., Any, Any] | str | None = None,
        args: Mapping[str, Any] | None = None,
        /,
        *,
        queue: str | None = None,
        priority: int | None = None,
        state: State | str | None = None,
        **named: Any,
    ) -> None:
        """Check that no such job was enqueued; without anything: none at all.

        Raises:
            AssertionError: One was.
        """
        wanted = self._pattern(task, args, named, queue=queue, priority=priority, state=state)
        _refuted(wanted, self._do(self._part.jobs))

    async def arefute_enqueued(
        self,
        task: Task[..., Any, Any] | str | None = None,
        args: Mapping[str, Any] | None = None,
        /,
        *,
        queue: str | None = None,
        priority: int | None = None,
        state: State | str | None = None,
        **named: Any,
    ) -> None:
        """`refute_enqueued` for async tests."""
        wanted = self._pattern(task, args, named, queue=queue, priority=priority, state=state)
        _refuted(wanted, await self._ado(self._part.jobs))

    # Running -----------------------------------------------------------------------------------

    def run(self, task: Task[..., Any, Any], /, *args: Any, raises: bool = True, **named: Any) -> Run:
        """Enqueue one job and make one attempt of it, as a worker would; how that ended.

        Args:
            task: The task; `task.using(...)` for other options.
            args: The job's args by place.
            raises: Whether the handler's own error is raised here.
            named: The job's args by name.

        Raises:
            ConfigError: The task is of another app.
        """
        return self._do(self._one(task, args, named, raises=raises))  # type: ignore[no-any-return]

    async def arun(
        self, task: Task[..., Any, Any], /, *args: Any, raises: bool = True, **named: Any
    ) -> Run:
        """`run` for async tests."""
        return await self._ado(self._one(task, args, named, raises=raises))  # type: ignore[no-any-return]

    def drain(
        self,
        queues: Queues | None = None,
        *,
        due: Due = "now",
        recursive: bool = True,
        raises: bool = True,
        limit: int = 1000,
        crash: Literal["before_settle"] | None = None,
    ) -> Runs:
        """Run the transaction's jobs until none is left, as a worker would; what came of each attempt.

        Each attempt is a savepoint: what a failing handler did is undone.

        Args:
            queues: Only jobs of this queue, or of these.
            due: `"now"`: jobs whose time has come; `"all"`: delayed and retried ones, too, without waiting,
                and limits are no obstacle. What snoozes or comes round then is left for the next drain.
            recursive: Whether jobs are run that handlers enqueue.
            raises: Whether the first error of a handler is raised here, once the attempt is settled.
            limit: Attempts at the most.
            crash: `"before_settle"`: after each handler that ended well the job's lease is lost, and the job
                runs again. What the handler did must bear that.

        Raises:
            ConfigError: There were more attempts than `limit`.
        """
        part = self._drained(queues, due, recursive, raises, limit, crash)
        return Runs(self._do(partial(self._part.drain, part=part)))

    async def adrain(
        self,
        queues: Queues | None = None,
        *,
        due: Due = "now",
        recursive: bool = True,
        raises: bool = True,
        limit: int = 1000,
        crash: Literal["before_settle"] | None = None,
    ) -> Runs:
        """`drain` for async tests."""
        part = self._drained(queues, due, recursive, raises, limit, crash)
        return Runs(await self._ado(partial(self._part.drain, part=part)))

    @contextmanager
    def inline(self, *, due: Due = "now", raises: bool = True) -> Iterator[None]:
        """Run each job as soon as it is enqueued, as `drain` does; also inside of handlers.

        Jobs with a delay wait, unless `due="all"`.
        """

        def around(call: EnqueueCall, call_next: Any) -> Any:
            return self._inlined(call_next(call), due, raises=raises)

        async def aaround(call: EnqueueCall, call_next: Any) -> Any:
            jobs = await call_next(call)
            with self._deeper():
                part = Part(due=due, raises=raises, jobs=frozenset(jobs))
                await self._ado(partial(self._part.drain, part=part))
            return jobs

        registered = self._mine_app.middleware.enqueueing
        registered += [around, aaround]
        try:
            yield
        finally:
            registered.remove(around)
            registered.remove(aaround)

    # Time, and events ----------------------------------------------------------------------------

    def travel(self, **duration: float) -> None:
        """Let so much time pass for the transaction's jobs: `travel(hours=2)`, `travel(days=1, minutes=5)`.

        What is stored of them is set back, the clock stays: times that they wait for, windows of their
        limits and unique keys, and how long finished ones are kept.
        """
        self._do(partial(self._part.travel, seconds=timedelta(**duration).total_seconds()))

    async def atravel(self, **duration: float) -> None:
        """`travel` for async tests."""
        await self._ado(partial(self._part.travel, seconds=timedelta(**duration).total_seconds()))

    @contextmanager
    def collect(self, kind: type[E]) -> Iterator[list[E]]:
        """Collect the events of a kind while the block runs."""
        with self._mine_app.events.collect(kind) as events:
            yield events

    def args(self, job: int) -> Mapping[str, Any]:
        """The args of a job that was enqueued here, also where an event tells only its id.

        Raises:
            ConfigError: The app has not enqueued it since `use`.
        """
        return self._part.args(JobId(job))

    # What needs commits --------------------------------------------------------------------------

    @contextmanager
    def committed(
        self, *, app: Rota | None = None, template: str | None = None
    ) -> Iterator[Committed]:
        """Give the app a database of the test's own, with real commits, for a block; see `Committed`.

        Args:
            app: The app; not needed where a process has only one.
            template: The PostgreSQL database to copy, with your own tables, to which nothing is connected;
                without it a copy has Rota's tables alone.

        Raises:
            ConfigError: The kit has a transaction in use.
        """
        if self._end is not None:
            message = "rota_test.committed() has a database of its own; use no connection before it"
            raise ConfigError(message)
        with Committed(app or self._app or _only_app(), template) as committed:
            yield committed

    # Within --------------------------------------------------------------------------------------

    @property
    def _part(self) -> Drain:
        if self._drain is None:
            message = (
                "the kit has no connection yet: call rota_test.use(connection_or_session), or override the "
                "fixture rota_connection"
            )
            raise ConfigError(message)
        return self._drain

    @property
    def _mine_app(self) -> Rota:
        self._app = self._app or _only_app()
        return self._app

    def _do(self, flow: Any) -> Any:
        side, confinement = self._now, self._confinement
        assert side is not None  # noqa: S101 - there is a drain
        assert confinement is not None  # noqa: S101 - and so there is this
        if confinement.awaits:
            return confinement.from_thread(partial(self._ado, flow))
        return drive(self._flow(flow, side), now)

    async def _ado(self, flow: Any) -> Any:
        side = self._later
        assert side is not None  # noqa: S101 - there is a drain
        return await adrive(self._flow(flow, side), later)

    def _flow(self, flow: Any, side: Side) -> Flow:
        return (yield from flow(side))

    def _one(
        self, task: Task[..., Any, Any], args: Sequence[Any], named: dict[str, Any], *, raises: bool
    ) -> Any:
        mine = self._mine(task)
        return partial(self._part.run_one, task=mine, args=args, named=named, raises=raises)

    def _inlined(self, jobs: Sequence[JobId], due: Due, *, raises: bool) -> Sequence[JobId]:
        with self._deeper():
            part = Part(due=due, raises=raises, jobs=frozenset(jobs))
            self._do(partial(self._part.drain, part=part))
        return jobs

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        if self._depth >= DEEPEST:
            message = (
                f"{DEEPEST} jobs run inside one another with inline(): does a handler enqueue itself? "
                "Use drain(), which runs one after the other"
            )
            raise ConfigError(message)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def _mine(self, task: Task[..., Any, Any]) -> Task[..., Any, Any]:
        """The task, if the app has it.

        Raises:
            ConfigError: It is another app's.
        """
        if not isinstance(task, Task):
            message = f"a task is needed, not {task!r}; is the function decorated with @rota.task?"
            raise ConfigError(message)
        self._part  # noqa: B018 - refuses without a connection
        if self._mine_app.tasks.get(task.name) is None or task.enqueuing.database is not self._mine_app.database:
            message = (
                f"task {task.name!r} is of another app than the one of rota_test.use(...): give the task's own "
                "app, rota_test.use(connection, app=...)"
            )
            raise ConfigError(message)
        return task

    def _pattern(
        self,
        task: Task[..., Any, Any] | str | None,
        args: Mapping[str, Any] | None,
        named: Mapping[str, Any],
        **options: Any,
    ) -> Pattern:
        if task is not None and not isinstance(task, str):
            self._mine(task)
        return pattern(task, args, named, options)

    def _drained(
        self,
        queues: Queues | None,
        due: Due,
        recursive: bool,  # noqa: FBT001
        raises: bool,  # noqa: FBT001
        limit: int,
        crash: Literal["before_settle"] | None,
    ) -> Part:
        if due not in {"now", "all"}:
            message = f'due="now" or due="all" is needed, not {due!r}'
            raise ConfigError(message)
        if crash not in {None, "before_settle"}:
            message = f'crash="before_settle" is the only crash there is, not {crash!r}'
            raise ConfigError(message)
        only = (queues,) if isinstance(queues, str) else queues
        return Part(
            None if only is None else tuple(only), due, recursive, raises, limit,
            crash=crash is not None,
        )  # fmt: skip


def _enqueued(wanted: Pattern, jobs: list[EnqueuedJob], count: int | None) -> EnqueuedJob:
    found = wanted.found_among(jobs)
    if not found or (count is not None and len(found) != count):
        number = "no job" if not found else f"{len(found)} jobs, not {count},"
        number = f"{number} of " if count is None or found else f"no job, not {count}, of "
        message = f"{number}{wanted}: none such was enqueued" if not found else f"{number}{wanted} were enqueued"
        raise AssertionError(f"{message}\n{wanted.nearest_first(jobs)}")
    return found[-1]


def _refuted(wanted: Pattern, jobs: list[EnqueuedJob]) -> None:
    if found := wanted.found_among(jobs):
        message = f"{len(found)} job(s) of {wanted} were enqueued, and none should be"
        raise AssertionError(f"{message}\n{wanted.nearest_first(found)}")


def _only_app() -> Rota:
    """The app of this process.

    Raises:
        ConfigError: There is none, or more than one.
    """
    apps = list(APPS)
    if len(apps) == 1:
        return apps[0]
    if not apps:
        message = "there is no Rota app yet: import the module that makes it, or say app=..."
        raise ConfigError(message)
    message = (
        f"there are {len(apps)} Rota apps in this process: say which one, rota_test.use(connection, app=...), or "
        "override the fixture rota_app"
    )
    raise ConfigError(message)

