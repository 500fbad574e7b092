"""The test kit of several databases: a kit for each shard, and what concerns all of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Literal, Self

from rota.app.app import Rota
from rota.app.shards import Shards
from rota.app.task import EnqueueCall, Task
from rota.errors import ConfigError
from rota.model.job import JobId
from rota.testing.drain import Part
from rota.testing.frames import hidden
from rota.testing.jobs import EnqueuedJob, TaskLike
from rota.testing.kit import Due, Kit, Queues
from rota.testing.runs import Run, Runs

__tracebackhide__ = hidden


def kit_of(connection: Any, app: Rota | Shards | None) -> "Kit | ShardKits":
    """The kit of an app with one database or several.

    Args:
        connection: The test's; of several databases a mapping from the names of the shards; or
            `None`.
        app: The app; `None` if the process has only one.

    Raises:
        ConfigError: A connection cannot be used; the message says why.
    """
    if isinstance(app, Shards):
        return ShardKits(connection, app=app)
    return Kit(connection, app=app)


class ShardKits(Mapping[str, Kit]):
    """A mapping from the names of shards to the kit of each, whose connections the test rolls back.

    `kits["eu"].assert_enqueued(…)` looks at one shard. What is here runs jobs wherever they lie,
    those included that handlers enqueue on another shard.

    Args:
        connections: A connection or session for each shard, in a transaction of the test's; or give
            them to `use` later.
        app: The app.
        unique: As a `Kit` has it.

    Raises:
        ConfigError: A shard has no connection, or one cannot be used; the message says why.
    """

    def __init__(
        self,
        connections: Mapping[str, object] | None = None,
        *,
        app: Shards,
        unique: Literal["test", "real"] = "test",
    ) -> None:
        self._app = app
        self._kits = {name: Kit(app=shard, unique=unique) for name, shard in app.items()}
        if connections is not None:
            self.use(connections)

    def use(self, connections: Mapping[str, object]) -> Self:
        """Look at the jobs of these transactions from now on, one for each shard.

        Raises:
            ConfigError: A shard has none, or one cannot be used; the message says why.
        """
        if not isinstance(connections, Mapping) or set(connections) != set(self._kits):
            message = (
                f"a connection for each shard is needed, {{{', '.join(f'{name!r}: …' for name in self._kits)}}}: what "
                "happens on a shard without one would be committed"
            )
            raise ConfigError(message)
        try:
            for name, kit in self._kits.items():
                kit.use(connections[name])
        except BaseException:
            self.close()
            raise
        return self

    def __getitem__(self, name: str) -> Kit:
        return self._kits[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kits)

    def __len__(self) -> int:
        return len(self._kits)

    # Running -----------------------------------------------------------------------------------

    def run(self, task: TaskLike, /, *args: Any, raises: bool = True, **named: Any) -> Run:
        """Enqueue one job where its key says, or `on`, and make one attempt, as `Kit.run` does.

        Raises:
            ConfigError: Nothing says on which shard it shall lie.
        """
        return self._home(task, args, named).run(task, *args, raises=raises, **named)

    async def arun(self, task: TaskLike, /, *args: Any, raises: bool = True, **named: Any) -> Run:
        """`run` for async tests."""
        return await self._home(task, args, named).arun(task, *args, raises=raises, **named)

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
        """Run all shards' jobs until none is left, like `Kit.drain`; the attempts, shard by shard.

        Raises:
            ConfigError: There were more attempts than `limit`.
        """
        part = Kit.part_of(
            queues, due, recursive=recursive, raises=raises, limit=limit, crash=crash
        )
        if not recursive:
            parts = {kit: replace(part, jobs=_ids(kit.jobs())) for kit in self._kits.values()}
            return Runs([run for kit, own in parts.items() for run in kit.run_part(own)])
        runs: list[Run] = []
        going = True
        while going:
            going = False
            for kit in self._kits.values():
                came = kit.run_part(replace(part, limit=limit - len(runs)))
                runs += came
                # They may have enqueued some on a shard that was empty.
                going = going or bool(came)
        return Runs(runs)

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
        part = Kit.part_of(
            queues, due, recursive=recursive, raises=raises, limit=limit, crash=crash
        )
        if not recursive:
            parts = {
                kit: replace(part, jobs=_ids(await kit.ajobs())) for kit in self._kits.values()
            }
            return Runs([run for kit, own in parts.items() for run in await kit.arun_part(own)])
        runs: list[Run] = []
        going = True
        while going:
            going = False
            for kit in self._kits.values():
                came = await kit.arun_part(replace(part, limit=limit - len(runs)))
                runs += came
                going = going or bool(came)
        return Runs(runs)

    @contextmanager
    def inline(self, *, due: Due = "now", raises: bool = True) -> Iterator[None]:
        """Run each job as soon as it is enqueued, on whatever shard, as `Kit.inline` does."""

        def around(call: EnqueueCall, call_next: Any) -> Any:
            new = self._new()
            jobs = call_next(call)
            for kit, those in new().items():
                kit.run_part(Part(due=due, raises=raises, jobs=those))
            return jobs

        async def aaround(call: EnqueueCall, call_next: Any) -> Any:
            new = self._new()
            jobs = await call_next(call)
            for kit, those in new().items():
                await kit.arun_part(Part(due=due, raises=raises, jobs=those))
            return jobs

        registered = self._app.middleware.enqueueing
        registered += [around, aaround]
        try:
            yield
        finally:
            registered.remove(around)
            registered.remove(aaround)

    def provide(self, **resources: object) -> None:
        """Give handlers on all shards these resources, as `Kit.provide` does."""
        for kit in self._kits.values():
            kit.provide(**resources)

    # The kit itself ----------------------------------------------------------------------------

    def close(self) -> None:
        """Give the shards their own databases back."""
        with ExitStack() as stack:
            for kit in self._kits.values():
                stack.callback(kit.close)

    def __enter__(self) -> Self:
        for kit in self._kits.values():
            kit.guard()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _home(self, task: TaskLike, args: tuple[Any, ...], named: dict[str, Any]) -> Kit:
        meant = self._app.tasks.meant(task)
        if not isinstance(meant, Task):
            message = f"a task of the app is needed, not {task!r}"
            raise ConfigError(message)
        home = meant.enqueuing.home(EnqueueCall(meant, ((args, named),), meant.conn))
        return next(kit for name, kit in self._kits.items() if self._app[name].enqueuer is home)

    def _new(self) -> Callable[[], dict[Kit, frozenset[JobId]]]:
        """What will say which jobs were enqueued since, on which shard: two may have one id."""
        before = {kit: kit.enqueued() for kit in self._kits.values()}
        return lambda: {
            kit: new for kit, known in before.items() if (new := kit.enqueued() - known)
        }


def _ids(jobs: Sequence[EnqueuedJob]) -> frozenset[JobId]:
    return frozenset(JobId(job.id) for job in jobs)
