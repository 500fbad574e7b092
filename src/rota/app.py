"""The application object: one database, and the tasks whose jobs it keeps."""

import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, overload

from rota.args import MAX_ARGS_BYTES
from rota.backoff import Backoff, RetryPolicy
from rota.config import DAY
from rota.context import Context
from rota.durations import seconds
from rota.errors import (
    ConfigError,
    SchemaMissing,
    StoreUnavailable,
    TaskAlreadyRegistered,
    TaskNotFound,
)
from rota.events import Event, Events
from rota.handle import JobHandle
from rota.job import JobId, JobSpec, Keys
from rota.limit import Limit
from rota.options import JobOptions, check_name
from rota.placed import Placed
from rota.store import migrate
from rota.store.callers import Awaiting, Blocking, blocking_caller, caller
from rota.store.execute import adrive, drive, in_thread
from rota.store.opening import default_url, open_store
from rota.store.operation import Apart, Operation, Request, Rows
from rota.store.protocol import Connection, Store, Transaction
from rota.task import Executor, Task
from rota.transaction import OwnTransaction
from rota.unique import Unique

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
E = TypeVar("E", bound=Event)

SPARE = 8
"""So many connections are kept open for the next operation."""


class Rota:
    """A job queue in a database.

    Args:
        url: `postgresql://…` or `sqlite:///file.db`; without one `ROTA_DATABASE_URL` is read, else
            the file `rota.db` in the current folder is used. Nothing is opened yet.
        retention: Seconds (or a timedelta) that completed and cancelled jobs stay readable; 0
            keeps none. Discarded ones stay until somebody deletes or retries them.
        queue_retention: The same for single queues, by their names.
        max_args_bytes: The largest args a job may have, as JSON; `None` for no limit.

    Raises:
        ConfigError: A setting cannot be used, or the driver is not installed.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        retention: float | timedelta = DAY,
        queue_retention: Mapping[str, float | timedelta] | None = None,
        max_args_bytes: int | None = MAX_ARGS_BYTES,
    ) -> None:
        self.url = url or default_url()
        self.store: Store = open_store(self.url)
        self.tasks: dict[str, Task[..., Any, Any]] = {}
        self.events = Events()
        self.retention = seconds(retention, "retention")
        self.queue_retention = {
            check_name(queue, "queue_retention"): seconds(keep, f"queue_retention[{queue!r}]")
            for queue, keep in (queue_retention or {}).items()
        }
        self.max_args_bytes = max_args_bytes
        self._ready = False
        self._spare: list[Connection] = []

    # Tasks -----------------------------------------------------------------------------------

    # A handler that takes a Context first is enqueued without it.
    @overload
    def task(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, T]], /
    ) -> Task[P, Coroutine[Any, Any, T], T]: ...
    @overload
    def task(self, function: Callable[Concatenate[Context, P], R], /) -> Task[P, R, R]: ...
    @overload
    def task(
        self, function: Callable[P, Coroutine[Any, Any, T]], /
    ) -> Task[P, Coroutine[Any, Any, T], T]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R, R]: ...
    @overload
    def task(
        self,
        /,
        *,
        name: str | None = None,
        queue: str = "default",
        priority: int = 0,
        retry: RetryPolicy | None = None,
        max_attempts: int | None = None,
        timeout: float | timedelta | None = None,
        executor: Executor | str | None = None,
        retention: float | timedelta | None = None,
        store_result: bool = False,
        unique: str | Unique | None = None,
        limit: Limit | None = None,
        fair: str | None = None,
    ) -> "TaskDecorator": ...

    def task(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        queue: str = "default",
        priority: int = 0,
        retry: RetryPolicy | None = None,
        max_attempts: int | None = None,
        timeout: float | timedelta | None = None,
        executor: Executor | str | None = None,
        retention: float | timedelta | None = None,
        store_result: bool = False,
        unique: str | Unique | None = None,
        limit: Limit | None = None,
        fair: str | None = None,
    ) -> Any:
        """Make a function a task: `@rota.task`, or `@rota.task(...)` with options.

        Args:
            function: The function, where there are no options.
            name: The stable name that jobs are stored under; else `module.function`.
            queue: The queue its jobs wait in.
            priority: Smaller first.
            retry: A `Backoff`, or a function of the failed attempt's number and the exception that
                gives the seconds to wait, or `None` to discard the job.
            max_attempts: How often a job is tried; else what the `Backoff` says, else 5.
            timeout: Seconds (or a timedelta) that one attempt may take. It stops async handlers
                and child processes; a thread is only told, through its `Context`.
            executor: `loop` for `async def`, `thread` for `def` (the defaults), `process`.
            retention: Seconds a completed job stays readable; else what the queue or the app says.
            store_result: Whether what the handler returns is stored for `JobHandle.result`.
            unique: A key such as `"order:{order_id}"`, or a `Unique`: at most one such job at a time.
            limit: How many jobs of a key may run at once, or start in a time.
            fair: A key such as `"tenant:{tenant}"`, between whose values the queue is shared.

        Raises:
            ConfigError: An option cannot be used.
            ArgsError: The function's parameters cannot be stored as JSON.
            TaskAlreadyRegistered: There is a task of that name already.
        """
        policy = retry if retry is not None else Backoff()
        if max_attempts is None:
            max_attempts = policy.attempts if isinstance(policy, Backoff) else 5
        if not (isinstance(policy, Backoff) or callable(policy)):
            message = f"retry: a Backoff or a function is needed, not {type(policy).__name__}"
            raise ConfigError(message)
        options = JobOptions(
            queue=queue, priority=priority, max_attempts=max_attempts, timeout=timeout,
            unique=unique, limit=limit, fair=fair,
        )  # fmt: skip
        try:
            where = None if executor is None else Executor(executor)
        except ValueError as error:
            kinds = ", ".join(Executor)
            message = f"executor: one of {kinds} is needed, not {executor!r}"
            raise ConfigError(message) from error
        keep = None if retention is None else seconds(retention, "retention")

        def register(function: Callable[..., Any]) -> Task[..., Any, Any]:
            own = f"{_module(function)}.{function.__qualname__}"
            task: Task[..., Any, Any] = Task(
                self,
                function,
                name=check_name(own if name is None else name, "task"),
                options=options,
                retry=policy,
                executor=where,
                retention=self.queue_retention.get(queue, self.retention) if keep is None else keep,
                store_result=store_result,
            )
            known = self.tasks.setdefault(task.name, task)
            if known is not task:
                message = f"there is a task named {task.name!r} already; give one of them a name="
                raise TaskAlreadyRegistered(message)
            return task

        return register if function is None else register(function)

    def find_task(self, name: str) -> Task[..., Any, Any]:
        """The task of that name.

        Raises:
            TaskNotFound: There is none in this process.
        """
        try:
            return self.tasks[name]
        except KeyError:
            message = f"no task named {name!r} is registered here; import the module that has it"
            raise TaskNotFound(message) from None

    # Jobs ------------------------------------------------------------------------------------

    def job(self, job: int) -> JobHandle[Any]:
        """A handle on the job with that id. Nothing is looked up yet."""
        return JobHandle(self, JobId(job))

    def enqueue(self, spec: JobSpec, args: Sequence[str], conn: object = None) -> list[JobId]:
        """Store jobs of one spec; `args` are JSON texts. Tasks call this."""
        if conn is None:
            return self.run(self.store.enqueue(spec, args, copy=True))
        return self._join(conn, lambda copy: self.store.enqueue(spec, args, copy=copy))

    async def aenqueue(
        self, spec: JobSpec, args: Sequence[str], conn: object = None
    ) -> list[JobId]:
        """`enqueue` for async code."""
        if conn is None:
            return await self.arun(self.store.enqueue(spec, args, copy=True))
        return await self._ajoin(conn, lambda copy: self.store.enqueue(spec, args, copy=copy))

    def enqueue_keyed(
        self, spec: JobSpec, args: Sequence[str], keys: Keys, conn: object = None
    ) -> list[Placed]:
        """`enqueue` for jobs that have keys; what became of each."""
        operation = self.store.enqueue_keyed(spec, args, keys)
        return self.run(operation) if conn is None else self._join(conn, lambda _: operation)

    async def aenqueue_keyed(
        self, spec: JobSpec, args: Sequence[str], keys: Keys, conn: object = None
    ) -> list[Placed]:
        """`enqueue_keyed` for async code."""
        operation = self.store.enqueue_keyed(spec, args, keys)
        if conn is None:
            return await self.arun(operation)
        return await self._ajoin(conn, lambda _: operation)

    def _join(self, conn: object, build: Callable[[bool], Operation[T]]) -> T:
        """Run an operation in the caller's transaction; `build` is told whether it can COPY."""
        if isinstance(conn, OwnTransaction):
            conn = conn.connection
        return self._on(blocking_caller(conn), build)

    async def _ajoin(self, conn: object, build: Callable[[bool], Operation[T]]) -> T:
        """`_join` for async code, on whichever kind of connection."""
        if isinstance(conn, OwnTransaction):
            return await in_thread(self._on, blocking_caller(conn.connection), build)
        found = await caller(conn)
        if isinstance(found, Blocking):
            return self._on(found, build)
        self._check_backend(found)
        if not self._ready:
            await in_thread(self.ready, make=False)
        joined = found

        async def execute(request: Request) -> Rows:
            if isinstance(request, Apart):
                return [(await self.arun(request.operation),)]
            return await joined.execute(request)

        return await adrive(build(joined.copy).steps, execute)

    def _on(self, found: Blocking, build: Callable[[bool], Operation[T]]) -> T:
        self._check_backend(found)
        self.ready(make=False)

        def execute(request: Request) -> Rows:
            if isinstance(request, Apart):
                return [(self.run(request.operation),)]
            return found.execute(request)

        return drive(build(found.copy).steps, execute)

    def _check_backend(self, found: Blocking | Awaiting) -> None:
        if found.backend != self.store.name:
            message = (
                f"conn leads to {found.backend}, but this Rota keeps its jobs in "
                f"{self.store.name}; a job can only join a transaction of its own database"
            )
            raise ConfigError(message)

    def transaction(self) -> OwnTransaction:
        """A transaction of Rota's own, for `with` and `async with`."""
        return OwnTransaction(self)

    def begin(self) -> Transaction:
        """Begin a transaction of Rota's own; `transaction` is the way to use it."""
        self.ready()
        return self.store.transaction()

    # The store -------------------------------------------------------------------------------

    def use(self, url: str) -> None:
        """Keep the jobs in another database from now on: `rota worker --url` and tests need that.

        What is open is closed; transactions that are under way must have ended.

        Raises:
            ConfigError: The URL cannot be used; then nothing has changed.
        """
        store = open_store(url)
        self.close()
        self.url, self.store, self._ready = url, store, False

    def ready(self, *, make: bool = True) -> None:
        """Check once that the database has the tables that this Rota needs.

        A SQLite file gets them by itself (unless `make` is false: a caller's open transaction
        would keep it waiting); a PostgreSQL database by `rota migrate`.

        Raises:
            SchemaMissing: Run `rota migrate`.
            SchemaOutdated: Run `rota migrate`.
            SchemaTooNew: Upgrade Rota.
        """
        if self._ready:
            return
        connection = self.store.connect()
        try:
            try:
                migrate.check(self.store, connection)
            except SchemaMissing:
                if not make or self.store.name != "sqlite":
                    raise
                migrate.migrate(self.store, connection)
        finally:
            connection.close()
        self._ready = True

    def run(self, operation: Operation[T]) -> T:
        """Run a store's operation on a connection of Rota's own."""
        if not self._ready:
            self.ready()
        # Without a lock: taking from a list and adding to it are single steps for all threads.
        try:
            connection = self._spare.pop()
        except IndexError:
            connection = self.store.connect()
        try:
            return connection.run(operation)
        except StoreUnavailable:
            connection.close()
            raise
        finally:
            if len(self._spare) < SPARE:
                self._spare.append(connection)
            else:
                connection.close()

    async def arun(self, operation: Operation[T]) -> T:
        """`run` for async code: in a thread, since Rota's own connections block."""
        return await in_thread(self.run, operation)

    def on(self, kind: type[E]) -> Callable[[Callable[[E], None]], Callable[[E], None]]:
        """Subscribe a function to a kind of event: `@rota.on(JobSettled)`."""

        def subscribe(handler: Callable[[E], None]) -> Callable[[E], None]:
            self.events.subscribe(kind, handler)
            return handler

        return subscribe

    def close(self) -> None:
        """Close all connections; using the object again opens new ones."""
        spare, self._spare = self._spare, []
        for connection in spare:
            connection.close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _module(function: Callable[..., Any]) -> str:
    """The module's name as a worker will know it, also for a file that is run as a script."""
    if function.__module__ != "__main__":
        return function.__module__
    script = sys.modules["__main__"]
    spec = getattr(script, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    return Path(getattr(script, "__file__", None) or "__main__").stem


class TaskDecorator(Protocol):
    """What `@rota.task(...)` gives; for type checkers only."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, T]], /
    ) -> Task[P, Coroutine[Any, Any, T], T]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R], /) -> Task[P, R, R]: ...
    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, T]], /
    ) -> Task[P, Coroutine[Any, Any, T], T]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R, R]: ...
