"""A task of Django as a task of Rota: how its jobs are stored and run.

Its args are what Django was given, by place and by name, as JSON. The begin of each run is a line
of the job's log, which the settler writes before the run is settled: from these lines a
`TaskResult` has its times and its workers.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from asgiref.sync import sync_to_async
from django.utils import timezone

from rota.app.context import Context
from rota.app.enqueuing import Enqueuing
from rota.app.task import Task as AppTask
from rota.args import ArgsCodec
from rota.contrib.django.results import BEGUN, running_result, worker_id
from rota.contrib.django.tasks_api import Task, TaskContext, normalize_json, task_started
from rota.errors import ArgsError, ConfigError
from rota.model.backoff import Backoff, RetryPolicy, check_policy
from rota.model.durations import seconds
from rota.model.job import Keys
from rota.model.keys import Keying
from rota.model.options import JobOptions

if TYPE_CHECKING:
    from rota.app.app import Rota

OF_JOBS = {"max_attempts", "timeout", "unique", "limit", "fair", "wake"}
"""Rota's options of single jobs that a task of Django may have."""

OF_TASKS = {"retry", "retention"}
"""The same of all jobs of the task."""

WEEK = timedelta(days=7)

VARIADIC = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


def runnable(app: "Rota", task: Task) -> "Runnable | None":
    """A task of Django as one of this app's; `None` if its backend is none of this app.

    Raises:
        ConfigError: One of its options cannot be used.
    """
    backend = task.get_backend()
    if getattr(backend, "app", None) is not app:
        return None
    given = options_of(task)
    policy = check_policy(given.get("retry"))
    attempts = policy.attempts if isinstance(policy, Backoff) else None
    chosen = {"max_attempts": attempts} | {n: v for n, v in given.items() if n in OF_JOBS}
    return Runnable(
        app._enqueuer,  # noqa: SLF001 - as Rota.task
        task,
        options=JobOptions(queue=task.queue_name, priority=-task.priority, **chosen),
        retry=policy,
        retention=seconds(given.get("retention", backend.retention), "retention"),
    )


def options_of(task: Task) -> Mapping[str, Any]:
    """Rota's own options of a task of Django.

    Raises:
        ConfigError: One of them is not known.
    """
    given: Mapping[str, Any] = getattr(task, "rota", {})
    if unknown := given.keys() - OF_JOBS - OF_TASKS:
        message = (
            f"rota={{…}}: unknown option {', '.join(sorted(unknown))}; "
            f"there are {', '.join(sorted(OF_JOBS | OF_TASKS))}"
        )
        raise ConfigError(message)
    return given


def enqueueable(known: AppTask[..., Any, Any], task: Task) -> AppTask[..., Any, Any]:
    """The task of Rota that runs this one, with the queue, the priority and the time that it has now."""
    changes: dict[str, Any] = {"queue": task.queue_name, "priority": -task.priority}
    if task.run_after is not None:
        aware = timezone.is_aware(task.run_after)
        changes["at"] = task.run_after if aware else timezone.make_aware(task.run_after)
    return known.using(**changes)


def djangos(task: AppTask[..., Any, Any] | None) -> Task | None:
    """The task of Django that this one runs; `None` for a task of Rota's own."""
    return task.django if isinstance(task, Runnable) else None


class Runnable(AppTask[..., Any, Any]):
    """The task of Rota that runs a task of Django.

    Attributes:
        django: That task.
    """

    def __init__(
        self,
        enqueuing: Enqueuing,
        task: Task,
        *,
        options: JobOptions,
        retry: RetryPolicy,
        retention: float,
    ) -> None:
        self.django = task
        super().__init__(
            enqueuing,
            _handler(task),
            name=task.module_path,
            options=options,
            retry=retry,
            executor=None,
            retention=retention,
            store_result=True,
        )

    def _keying(self, options: JobOptions) -> Keying:
        return NamedKeys(options, self.django)

    def _args_codec(self) -> ArgsCodec:
        return NamedArgs(self.function, self.django)


class NamedArgs(ArgsCodec):
    """Reads and writes args by place and by name, and tells their names in Django's function."""

    def __init__(self, handler: Callable[..., Any], task: Task) -> None:
        super().__init__(handler, task.module_path, context=Context)
        parameters = list(inspect.signature(task.func).parameters.values())[task.takes_context :]
        self._told = tuple(each.name for each in parameters if each.kind not in VARIADIC)
        self._tells_all = all(each.kind is not each.VAR_KEYWORD for each in parameters)

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters of Django's function that are args."""
        return self._told

    @property
    def open(self) -> bool:
        """Whether it takes args of other names."""
        return not self._tells_all


class NamedKeys(Keying):
    """Makes the keys of jobs whose args are by place and by name, from the parameters' names."""

    __slots__ = ("_context", "_signature", "_task")

    def __init__(self, options: JobOptions, task: Task) -> None:
        self._context = "context" if task.takes_context else None
        super().__init__(options, task.func, task.module_path, self._context)
        self._signature = inspect.signature(task.func)
        self._task = task.module_path

    def keys(self, args: Sequence[str]) -> Keys:
        """The keys of jobs with these args (JSON texts).

        Raises:
            ArgsError: Some do not fit the function, or no key can be made of them.
        """
        return super().keys([self._named(text) for text in args])

    def _named(self, text: str) -> str:
        given = msgspec.json.decode(text)
        first = () if self._context is None else (None,)
        try:
            bound = self._signature.bind(*first, *given.get("args", ()), **given.get("kwargs", {}))
        except TypeError as error:
            raise ArgsError(f"args of task {self._task!r}: {error}") from error
        named = {name: value for name, value in bound.arguments.items() if name != self._context}
        return msgspec.json.encode(named).decode()


def _handler(task: Task) -> Callable[..., Any]:
    """What a worker calls: it tells of the beginning, and normalizes what the function returns."""
    function = task.func

    def begin(context: Context) -> Any:
        context.log(f"{BEGUN}{worker_id()}")
        return running_result(task.get_backend(), task, context)

    @contextmanager
    def noted(context: Context) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            task.get_backend().app.finishing.raised[context.job_id] = error
            raise

    def given(result: Any, args: Sequence[Any]) -> Sequence[Any]:
        return (TaskContext(task_result=result), *args) if task.takes_context else args

    def call(*args: Any, rota_context: Context, **kwargs: Any) -> Any:
        result = begin(rota_context)
        task_started.send(sender=type(task.get_backend()), task_result=result)
        with noted(rota_context):
            return normalize_json(function(*given(result, args), **kwargs))

    async def acall(*args: Any, rota_context: Context, **kwargs: Any) -> Any:
        # It may look at earlier attempts, through Django's connection.
        result = await sync_to_async(begin, thread_sensitive=True)(rota_context)
        await task_started.asend(sender=type(task.get_backend()), task_result=result)
        with noted(rota_context):
            return normalize_json(await function(*given(result, args), **kwargs))

    handler = acall if inspect.iscoroutinefunction(function) else call
    handler.__name__, handler.__qualname__ = function.__name__, function.__qualname__
    handler.__doc__, handler.__module__ = function.__doc__, function.__module__
    return handler
