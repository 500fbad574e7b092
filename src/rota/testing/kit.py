"""The test kit: what one test can do with the jobs of its transaction."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any, Literal, TypeVar

from rota.app.app import Rota
from rota.app.task import EnqueueCall
from rota.errors import ConfigError
from rota.events import Event
from rota.model.job import JobId
from rota.testing.committed import Committed
from rota.testing.drain import Part
from rota.testing.frames import hidden
from rota.testing.jobs import TaskLike
from rota.testing.looking import Looking
from rota.testing.runs import Run, Runs
from rota.testing.using import only_app

__tracebackhide__ = hidden

E = TypeVar("E", bound=Event)
Due = Literal["now", "all"]
Queues = str | Sequence[str]

DEEPEST = 50
"""Jobs that may run inside one another with `inline`."""


class Kit(Looking):
    """Looks at the jobs of one transaction, which the test rolls back, and runs them.

    Args:
        connection: A connection or session in the test's transaction; or pass it to `use` later.
        app: The app; not needed if the process has only one.
        unique: `"test"`: keys of unique jobs are the test's own, so that tests beside each other do
            not wait for each other; `"real"`: they are stored as they are.

    Raises:
        ConfigError: The connection cannot be used; the message says why.
    """

    _depth = 0

    # Running -----------------------------------------------------------------------------------

    def run(self, task: TaskLike, /, *args: Any, raises: bool = True, **named: Any) -> Run:
        """Enqueue one job and make one attempt, as a worker would; returns how that ended.

        Args:
            task: The task; `task.using(...)` for other options.
            args: The job's positional args.
            raises: Whether the handler's own error is raised here.
            named: The job's args by name.

        Raises:
            ConfigError: The task is of another app.
        """
        return self._do(self._one(task, args, named, raises=raises))  # type: ignore[no-any-return]

    async def arun(self, task: TaskLike, /, *args: Any, raises: bool = True, **named: Any) -> Run:
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
        """Run the transaction's jobs until none is left, as a worker would; how each attempt ended.

        Each attempt is a savepoint: what a failing handler did is undone.

        Args:
            queues: Run only jobs of this queue, or of these queues.
            due: `"now"`: run jobs whose time has come; `"all"`: do not wait for delays, retries and
                limits. Jobs that snooze or come round are then left for the next drain.
            recursive: Whether to run the jobs that handlers enqueue.
            raises: Whether the first error of a handler is raised here, once the attempt is
                settled.
            limit: How many attempts it makes at most.
            crash: `"before_settle"`: after each handler that ended well, the job's lease is lost,
                and the job runs again, so the handler must be safe to run twice.

        Raises:
            ConfigError: There were more attempts than `limit`.
        """
        part = self.part_of(
            queues, due, recursive=recursive, raises=raises, limit=limit, crash=crash
        )
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
        part = self.part_of(
            queues, due, recursive=recursive, raises=raises, limit=limit, crash=crash
        )
        return Runs(await self._ado(partial(self._part.drain, part=part)))

    @contextmanager
    def inline(self, *, due: Due = "now", raises: bool = True) -> Iterator[None]:
        """Run each job as soon as it is enqueued, as `drain` does; also inside of handlers.

        Jobs with a delay wait, unless `due="all"`.
        """

        def around(call: EnqueueCall, call_next: Any) -> Any:
            jobs = call_next(call)
            self.run_part(Part(due=due, raises=raises, jobs=frozenset(jobs)))
            return jobs

        async def aaround(call: EnqueueCall, call_next: Any) -> Any:
            jobs = await call_next(call)
            await self.arun_part(Part(due=due, raises=raises, jobs=frozenset(jobs)))
            return jobs

        registered = self._mine_app.middleware.enqueueing
        registered += [around, aaround]
        try:
            yield
        finally:
            registered.remove(around)
            registered.remove(aaround)

    def run_part(self, part: Part) -> Runs:
        """Run some of the jobs, inside of whatever runs."""
        with self._deeper():
            return Runs(self._do(partial(self._part.drain, part=part)))

    async def arun_part(self, part: Part) -> Runs:
        """`run_part` for async tests."""
        with self._deeper():
            return Runs(await self._ado(partial(self._part.drain, part=part)))

    # Time, and events ----------------------------------------------------------------------------

    def travel(
        self,
        *,
        weeks: float = 0,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
    ) -> None:
        """Let time pass for the transaction's jobs: `travel(hours=2)`, `travel(days=1, minutes=5)`.

        The clock stays. What is stored about the jobs is set back: the times that they wait for,
        the windows of their limits and unique keys, and how long finished jobs are kept.
        """
        passed = timedelta(days, seconds, minutes=minutes, hours=hours, weeks=weeks)
        self._do(partial(self._part.travel, seconds=passed.total_seconds()))

    async def atravel(
        self,
        *,
        weeks: float = 0,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
    ) -> None:
        """`travel` for async tests."""
        passed = timedelta(days, seconds, minutes=minutes, hours=hours, weeks=weeks)
        await self._ado(partial(self._part.travel, seconds=passed.total_seconds()))

    @contextmanager
    def collect(self, kind: type[E]) -> Iterator[list[E]]:
        """Collect the events of a kind while the block runs."""
        with self._mine_app.events.collect(kind) as events:
            yield events

    def args(self, job: int) -> Mapping[str, Any]:
        """The args of a job that was enqueued here, for events that tell only its id.

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
            app: The app; not needed if the process has only one.
            template: The PostgreSQL database to copy, with your own tables; nothing may be
                connected to it. Without it, the copy has only Rota's tables.

        Raises:
            ConfigError: The kit has a transaction in use.
        """
        if self._end is not None:
            message = "rota_test.committed() has a database of its own; use no connection before it"
            raise ConfigError(message)
        self.close()
        try:
            with Committed(app or self._app or only_app(), template) as committed:
                yield committed
        finally:
            self.guard()

    # Within --------------------------------------------------------------------------------------

    def _one(
        self, task: TaskLike, args: Sequence[Any], named: dict[str, Any], *, raises: bool
    ) -> Any:
        mine = self._mine(task)
        return partial(self._part.run_one, task=mine, args=args, named=named, raises=raises)

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

    @staticmethod
    def part_of(
        queues: Queues | None,
        due: Due,
        *,
        recursive: bool,
        raises: bool,
        limit: int,
        crash: Literal["before_settle"] | None,
    ) -> Part:
        """What a drain does.

        Raises:
            ConfigError: A word is not known.
        """
        if due not in {"now", "all"}:
            message = f'due must be "now" or "all", not {due!r}'
            raise ConfigError(message)
        if crash not in {None, "before_settle"}:
            message = f'crash must be "before_settle", not {crash!r}'
            raise ConfigError(message)
        only = (queues,) if isinstance(queues, str) else queues
        return Part(
            None if only is None else tuple(only), due, recursive, raises, limit,
            crash=crash is not None,
        )  # fmt: skip
