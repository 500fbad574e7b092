"""`@rota.task`: how functions become the tasks of an app."""

import functools
from collections.abc import Callable, Collection, Coroutine, Mapping
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from rota.app.batch import BatchDecorator, BatchTask, batching
from rota.app.context import Context
from rota.app.enqueuing import Enqueuing
from rota.app.executor import Executor
from rota.app.handler import check_handler
from rota.app.introspection import module_of
from rota.app.middleware import Middleware
from rota.app.task import Task
from rota.app.tasks import Tasks
from rota.model.backoff import Backoff, RetryPolicy, check_policy
from rota.model.chosen import Exceptions, choosing
from rota.model.durations import seconds
from rota.model.limit import Limit
from rota.model.options import JobOptions, check_name
from rota.model.unique import Unique

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


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


class DeclaresTasks:
    """The part that apps of one and of several databases share: tasks, and what is around them.

    Attributes:
        tasks: Those that were declared.
        middleware: What is registered around enqueues and runs.
    """

    tasks: Tasks
    middleware: Middleware
    _enqueuer: Enqueuing

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
        retry_on: Exceptions | None = None,
        discard_on: Exceptions | None = None,
        max_attempts: int | None = None,
        timeout: float | timedelta | None = None,
        soft_timeout: float | timedelta | None = None,
        executor: Executor | str | None = None,
        dask: Mapping[str, Any] | None = None,
        ray: Mapping[str, Any] | None = None,
        retention: float | timedelta | None = None,
        store_result: bool = False,
        unique: str | Unique | None = None,
        limit: Limit | None = None,
        fair: str | None = None,
        expires: float | timedelta | None = None,
        on_success: Task[..., Any, Any] | str | None = None,
        on_failure: Task[..., Any, Any] | str | None = None,
        redact: Collection[str] = (),
    ) -> TaskDecorator: ...
    @overload
    def task(
        self,
        /,
        *,
        batch: int,
        within: float | timedelta | None = None,
        name: str | None = None,
        queue: str = "default",
        priority: int = 0,
        retry: RetryPolicy | None = None,
        retry_on: Exceptions | None = None,
        discard_on: Exceptions | None = None,
        max_attempts: int | None = None,
        timeout: float | timedelta | None = None,
        soft_timeout: float | timedelta | None = None,
        executor: Executor | str | None = None,
        dask: Mapping[str, Any] | None = None,
        ray: Mapping[str, Any] | None = None,
        retention: float | timedelta | None = None,
        store_result: bool = False,
        unique: str | Unique | None = None,
        limit: Limit | None = None,
        fair: str | None = None,
        expires: float | timedelta | None = None,
        on_success: Task[..., Any, Any] | str | None = None,
        on_failure: Task[..., Any, Any] | str | None = None,
        redact: Collection[str] = (),
    ) -> BatchDecorator: ...

    def task(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        queue: str = "default",
        priority: int = 0,
        retry: RetryPolicy | None = None,
        retry_on: Exceptions | None = None,
        discard_on: Exceptions | None = None,
        max_attempts: int | None = None,
        timeout: float | timedelta | None = None,
        soft_timeout: float | timedelta | None = None,
        executor: Executor | str | None = None,
        dask: Mapping[str, Any] | None = None,
        ray: Mapping[str, Any] | None = None,
        retention: float | timedelta | None = None,
        store_result: bool = False,
        batch: int | None = None,
        within: float | timedelta | None = None,
        unique: str | Unique | None = None,
        limit: Limit | None = None,
        fair: str | None = None,
        expires: float | timedelta | None = None,
        on_success: Task[..., Any, Any] | str | None = None,
        on_failure: Task[..., Any, Any] | str | None = None,
        redact: Collection[str] = (),
    ) -> Any:
        """Make a function a task: `@rota.task`, or `@rota.task(...)` with options.

        Args:
            function: The function, if there are no options.
            name: The stable name that jobs are stored under; by default `module.function`.
            queue: The queue its jobs wait in.
            priority: Smaller first.
            retry: A `Backoff`, or a function of the failed attempt's number and the exception that
                gives the seconds to wait, or `None` to discard the job.
            retry_on: An exception class or a tuple of them: only these are retried, all others
                discard the job at once.
            discard_on: Exceptions that discard the job at once, even if they are among those of
                `retry_on`.
            max_attempts: How many times a job is tried; else as the `Backoff` says, else as the
                queue says, else 5.
            timeout: Seconds (or a timedelta) that one attempt may take; else as the queue
                says. It stops async handlers and child processes; a thread is only told, through
                its `Context`.
            soft_timeout: Seconds (or a timedelta) after which the handler's `Context` tells it to
                hurry, or interrupts it with a `SoftTimeout`; shorter than `timeout`.
            executor: `loop` for `async def`, `thread` for `def` (the defaults), `process`, `dask`,
                `ray`.
            dask: What the jobs need of a Dask cluster, in Dask's words:
                `{"resources": {"GPU": 1}}`.
            ray: What they need of a Ray cluster, in Ray's words: `{"num_gpus": 1}`.
            retention: Seconds a completed or cancelled job stays readable; else what the queue or
                the app says.
            store_result: Whether what the handler returns is stored for `JobHandle.result`.
            batch: One call serves up to this many jobs: the handler takes a list with one element
                for each job.
            within: Seconds (or a timedelta) that the first job of a batch waits for others; by
                default 0.1.
            unique: A key such as `"order:{order_id}"`, or a `Unique`: at most one such job at a
                time.
            limit: How many jobs of a key may run at once, or start in a time.
            fair: A key such as `"tenant:{tenant}"`: the queue is shared fairly between its values.
            expires: Seconds (or a timedelta) after a job's enqueue, after which no attempt of it
                begins: it is cancelled instead.
            on_success: A task, or its name: a job of it is enqueued when a job is completed, in the
                same transaction.
            on_failure: The same, for when a job is discarded. A task given by name may be declared
                later.
            redact: Names of args that are shown as `***` wherever people look at jobs; annotating
                them with `Secret` does the same.

        Raises:
            ConfigError: An option cannot be used.
            ArgsError: The function's parameters cannot be stored as JSON.
            TaskError: The function cannot be a handler: it is a class or yields, or it needs a
                `name`, as a lambda and a function inside another one do.
            TaskAlreadyRegistered: There is already a task of that name.
        """
        policy = check_policy(retry)
        if max_attempts is None and isinstance(policy, Backoff):
            max_attempts = policy.attempts
        policy = choosing(policy, retry_on, discard_on)
        options = JobOptions(
            queue=queue, priority=priority, max_attempts=max_attempts, timeout=timeout,
            unique=unique, limit=limit, fair=fair, expires=expires,
        )  # fmt: skip
        where = None if executor is None else Executor.named(executor)
        engine: Mapping[str, object] = {}
        if dask is not None or ray is not None:
            from rota.app.engine_options import engine_options  # here: most have none

            engine = engine_options(where, dask=dask, ray=ray)
        soft = None if soft_timeout is None else seconds(soft_timeout, "soft_timeout")
        keep = None if retention is None else seconds(retention, "retention")
        gathered = batching(batch, within)
        success = self._successor("on_success", on_success)
        failure = self._successor("on_failure", on_failure)
        kind = Task if gathered is None else functools.partial(BatchTask, batching=gathered)

        def register(function: Callable[..., Any]) -> Task[..., Any, Any]:
            check_handler(function, named=name is not None)
            own = f"{module_of(function)}.{function.__qualname__}"
            task: Task[..., Any, Any] = kind(
                self._enqueuer,
                function,
                name=check_name(own if name is None else name, "task"),
                options=options,
                retry=policy,
                executor=where,
                retention=keep,
                store_result=store_result,
                soft_timeout=soft,
                on_success=success,
                on_failure=failure,
                redact=redact,
            )
            task.engine = engine
            self.tasks.register(task)
            return task

        return register if function is None else register(function)

    def find_task(self, name: str) -> Task[..., Any, Any]:
        """The task of that name.

        Raises:
            TaskNotFound: There is none in this process.
        """
        return self.tasks.find(name)

    def around_enqueue(self, function: F) -> F:
        """Register middleware around enqueueing: `@rota.around_enqueue`.

        It gets an `EnqueueCall` and `call_next`, and returns what `call_next` returns, or raises. A
        `def` is called around `enqueue` and `enqueue_many`, an `async def` around their async
        twins.

        Raises:
            ConfigError: It does not take these two parameters.
        """
        return self.middleware.around_enqueue(function)

    def around_run(self, function: F) -> F:
        """Register middleware around running jobs: `@rota.around_run`.

        It gets the job's `Context` (or `BatchContext`) and `call_next`; what it returns or raises
        is the job's result or outcome. An `async def` is called around every handler, a `def`
        only around those in threads, in the handler's thread.

        Raises:
            ConfigError: It does not take these two parameters.
        """
        return self.middleware.around_run(function)

    def _successor(self, option: str, given: object) -> str | None:
        if given is None:
            return None
        from rota.app.successor import chosen  # here: few programs have successors

        return check_name(chosen(option, given, self._enqueuer), "task")
