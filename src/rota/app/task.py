"""Tasks: functions with a name, under which jobs are enqueued and workers find them.

A task called like a function is just the function. Its `enqueue` has the function's own parameters,
for people, editors and type checkers; how the job runs is set by `@rota.task(...)` and changed for
one call by `.using(...)`.
"""

import copy
import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Generic, ParamSpec, Self, TypeVar

from rota.app.arguments import Arguments, arguments_of_many
from rota.app.context import Context
from rota.app.enqueuing import Enqueuing
from rota.app.executor import Executor
from rota.app.handle import JobHandle
from rota.app.hiding import check_keys, hidden_args
from rota.app.in_time import checked
from rota.app.introspection import result_annotation, without_outcomes
from rota.args import ArgsCodec, ResultCodec
from rota.args.provided import Need, not_given
from rota.errors import ArgsError, ConfigError
from rota.model.backoff import RetryPolicy
from rota.model.enqueued import Enqueued, Placing
from rota.model.job import JobSpec
from rota.model.keys import Keying
from rota.model.limit import Limit
from rota.model.options import JobOptions
from rota.model.redaction import redacting
from rota.model.unique import Unique

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


NOT_GIVEN = object()
"""Stands for no `conn=`, where `None` is a mistake: a connection that the caller does not have."""


@dataclass(frozen=True, slots=True)
class EnqueueCall:
    """Jobs that are about to be enqueued, before their args are checked.

    Attributes:
        task: The task, as `using(…)` has left it.
        jobs: The arguments of each job: one for `enqueue`, all for `enqueue_many`. Middleware gets
            a tuple.
        conn: The caller's connection, or `None`.
        many: Whether this is `enqueue_many`.
    """

    task: "Task[..., Any, Any]"
    jobs: Sequence[Arguments]
    conn: object = None
    many: bool = False

    @property
    def options(self) -> JobOptions:
        """Where, when and how often they run."""
        return self.task.options

    def using(self, **changes: Any) -> Self:
        """The same jobs with other options, as in `Task.using`.

        Raises:
            ConfigError: An option is not known, or a value is outside its range.
        """
        conn = _connection(changes.pop("conn", NOT_GIVEN), self.conn)
        return replace(self, task=self.task.using(**changes), conn=conn)

    def passing(self, **arguments: object) -> Self:
        """The same jobs with more keyword arguments, for jobs that do not have them yet."""
        names = self.task.codec.names
        jobs = []
        for args, kwargs in self.jobs:
            given = {*names[: len(args)], *kwargs}
            more = {name: value for name, value in arguments.items() if name not in given}
            jobs.append((args, {**kwargs, **more}))
        return replace(self, jobs=tuple(jobs))


class Task(Generic[P, R, T]):
    """A function that can be enqueued. Made by `Rota.task`.

    Attributes:
        engine: What its jobs need of a cluster, in the words of the cluster's engine.
    """

    engine: Mapping[str, object] = MappingProxyType({})

    def __init__(
        self,
        enqueuing: Enqueuing,
        function: Callable[P, R],
        *,
        name: str,
        options: JobOptions,
        retry: RetryPolicy,
        executor: Executor | None,
        retention: float | None,
        store_result: bool,
        soft_timeout: float | None = None,
        on_success: str | None = None,
        on_failure: str | None = None,
        redact: Collection[str] = (),
    ) -> None:
        self.enqueuing = enqueuing
        self.function = function
        self.name = name
        self.options = options
        self.retry = retry
        self.executor = Executor.fitting(function, executor, name)
        self.keeps = enqueuing.queues.keeps(retention)
        self.codec = self._args_codec()
        self.redact = hidden_args(name, self.codec, redact)
        self.spec = self._spec(options)
        self.keying = self._keying(options) if options.keyed else None
        parameters = inspect.signature(function).parameters
        self._first = next(iter(parameters), None)
        if "conn" in parameters:
            message = (
                f"task {name!r}: a parameter cannot be named conn, which is one of enqueue's own"
            )
            raise ConfigError(message)
        # What is not stored may be of any type.
        self.result_codec = ResultCodec(self._result_annotation() if store_result else Any, name)
        self.store_result = store_result
        self.on_success = on_success
        self.on_failure = on_failure
        self.chained = on_success is not None or on_failure is not None
        self.soft_timeout = checked(
            soft_timeout, self.spec.timeout, name, told=self.codec.context_parameter is not None
        )
        self.conn: object = None
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Just call the function.

        A function that takes a `Context` gets one that says: first attempt, not cancelled; unless
        the caller gives one by name.
        """
        wanted = self.codec.context_parameter
        if wanted is None or wanted in kwargs:
            return self._direct(*args, **kwargs)
        if wanted == self._first:
            if args and isinstance(args[0], Context):
                return self._direct(*args, **kwargs)
            return self._direct(self._alone(), *args, **kwargs)
        return self._direct(*args, **{**kwargs, wanted: self._alone()})

    def _direct(self, *args: Any, **kwargs: Any) -> R:
        """Call the function, if all resources are given that it needs.

        Raises:
            ArgsError: One is not.
        """
        call: Callable[..., R] = self.function
        if self.codec.needs and (missing := not_given(call, args, kwargs)):
            message = (
                f"task {self.name!r}: `{missing[0]}` is a resource, which a worker passes from its "
                "lifespans; in a direct call, pass it yourself"
            )
            raise ArgsError(message)
        return call(*args, **kwargs)

    def _alone(self) -> Context:
        """The context of a direct call."""
        from rota.app.job_transaction import without_job  # here: most programs never need it

        return Context.alone(self.spec, without_job(self.enqueuing))

    @property
    def needs(self) -> tuple[Need, ...]:
        """The handler's parameters that are given resources."""
        return self.codec.needs

    def __repr__(self) -> str:
        return f"<Task {self.name}>"

    def result_annotation(self) -> object:
        """How the result of one job is annotated."""
        return self._result_annotation()

    @functools.cached_property
    def given_codec(self) -> ResultCodec:
        """What writes results that other jobs are given, whether the task keeps them or not."""
        return (
            self.result_codec
            if self.store_result
            else ResultCodec(self._result_annotation(), self.name)
        )

    def using(
        self,
        *,
        queue: str | None = None,
        priority: int | None = None,
        delay: float | timedelta | None = None,
        at: datetime | None = None,
        max_attempts: int | None = None,
        timeout: float | timedelta | None = None,
        wake: bool | None = None,
        unique: str | Unique | None = None,
        limit: Limit | None = None,
        fair: str | None = None,
        headers: Mapping[str, str] | None = None,
        expires: float | timedelta | datetime | None = None,
        on_success: "Task[..., Any, Any] | str | None" = None,
        on_failure: "Task[..., Any, Any] | str | None" = None,
        conn: object = NOT_GIVEN,
        **unknown: object,
    ) -> Self:
        """The same task with other options for the jobs enqueued through it.

        Args:
            queue: The queue to wait in.
            priority: Smaller first.
            delay: Seconds or a timedelta to wait before the job becomes available.
            at: An aware datetime before which the job does not become available.
            max_attempts: How many times it is tried before it is discarded.
            timeout: Seconds or a timedelta that one attempt may take.
            wake: Whether a sleeping worker is told at once (the default); if not, it finds the job
                by polling, within a second. PostgreSQL cannot prepare a transaction (two-phase
                commit) that has notified a worker.
            unique: A key such as `"order:{order_id}"`, or a `Unique`: at most one such job at a
                time.
            limit: How many jobs of a key may run at once, or start in a time.
            fair: A key such as `"tenant:{tenant}"`: the queue is shared fairly between its values.
            headers: Names and texts that travel with the job, to `Context.headers`; 4 kB at the
                most.
            expires: Seconds or a timedelta after the enqueue, or an aware datetime, after which no
                attempt begins: the job is cancelled instead.
            on_success: A task, or its name: a job of it is enqueued when this one completes. It
                overrides what the task declares.
            on_failure: The same, for when this one is discarded.
            conn: The caller's connection or session; `using(conn=c).enqueue(…)` is
                `enqueue(…, conn=c)` in a form that type checkers can follow. Not `None`.
            unknown: Anything else is refused.

        Raises:
            ConfigError: An option is not known, a value is outside its range, or `conn` is `None`.
        """
        named = {
            "queue": queue,
            "priority": priority,
            "delay": delay,
            "at": at,
            "max_attempts": max_attempts,
            "timeout": timeout,
            "wake": wake,
            "unique": unique,
            "limit": limit,
            "fair": fair,
            "headers": headers,
            "expires": expires,
            "on_success": self._successor("on_success", on_success),
            "on_failure": self._successor("on_failure", on_failure),
        }
        changes = {key: value for key, value in named.items() if value is not None} | unknown
        self._check_changes(changes)
        other = copy.copy(self)
        other.options = self.options.using(changes, "conn")
        other.spec = self._spec(other.options)
        if other.options.keyed and changes:
            other.keying = self._keying(other.options)
        other.conn = _connection(conn, self.conn)
        return other

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[T]:
        """Store a job with these args.

        The keyword argument `conn=` is Rota's own: a connection or session of the caller, whose
        transaction the job joins.

        Raises:
            ArgsError: The args do not fit the task; nothing was stored.
            StoreError: The database refused; nothing was stored.
            StoreUnavailable: The database cannot be reached.
        """
        call = self._call(args, kwargs)
        home = self.enqueuing.home(call)
        return self._handle(home, home.enqueue(call))

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[T]:
        """`enqueue` for async code; `conn=` may be an async connection or session."""
        call = self._call(args, kwargs)
        home = await self.enqueuing.ahome(call)
        return self._handle(home, await home.aenqueue(call))

    def enqueue_many(
        self, jobs: Iterable[Sequence[Any] | Mapping[str, Any]], *, conn: object = None
    ) -> Enqueued:
        """Store many jobs, all or none; returns their ids in the same order.

        For unique jobs, the answer also says which were created, replaced and skipped.

        Args:
            jobs: For each job a tuple (or list) of positional arguments, or a dict of keyword
                arguments.
            conn: A connection or session of the caller, whose transaction the jobs join.

        Raises:
            ArgsError: Some args do not fit; the message says which job's. Nothing was stored.
            StoreError: The database refused; nothing was stored.
        """
        return self.enqueuing.enqueue(self._call_many(jobs, conn))

    async def aenqueue_many(
        self, jobs: Iterable[Sequence[Any] | Mapping[str, Any]], *, conn: object = None
    ) -> Enqueued:
        """`enqueue_many` for async code."""
        return await self.enqueuing.aenqueue(self._call_many(jobs, conn))

    def _call(self, args: tuple[object, ...], kwargs: dict[str, Any]) -> EnqueueCall:
        conn = kwargs.pop("conn", None)
        return EnqueueCall(self, ((args, kwargs),), self.conn if conn is None else conn)

    def _call_many(
        self, jobs: Iterable[Sequence[Any] | Mapping[str, Any]], conn: object
    ) -> EnqueueCall:
        conn = self.conn if conn is None else conn
        return EnqueueCall(self, arguments_of_many(jobs), conn, many=True)

    def _handle(self, home: Enqueuing, stored: Enqueued) -> JobHandle[T]:
        [job] = stored
        placing = Placing.CREATED if stored.placings is None else stored.placings[0]
        return home.handle(job, self.result_codec, placing)

    def _successor(self, option: str, given: object) -> str | None:
        if given is None:
            return None
        from rota.app.successor import chosen  # here: few programs have successors

        return chosen(option, given, self.enqueuing)

    def _check_changes(self, changes: Mapping[str, object]) -> None:
        """Refuse options that one job of this kind of task cannot have."""

    def _spec(self, options: JobOptions) -> JobSpec:
        """What jobs with these options have."""
        spec = options.spec(self.name)
        return replace(spec, headers=redacting(spec.headers, self.redact))

    def _keying(self, options: JobOptions) -> Keying:
        """What makes the keys of jobs with these options."""
        keying = Keying(options, self.function, self.name, self.codec.context_parameter)
        return check_keys(keying, self.redact)

    def _args_codec(self) -> ArgsCodec:
        return ArgsCodec(self.function, self.name, context=Context)

    def _result_annotation(self) -> object:
        """The annotation of what is stored as the result of one job."""
        return without_outcomes(result_annotation(self.function))


def _connection(conn: object, otherwise: object) -> object:
    """What `using(conn=…)` was given, or what holds without it.

    Raises:
        ConfigError: It is `None`.
    """
    if conn is None:
        message = (
            "using(conn=None): there is no transaction for the jobs to join; pass a connection or "
            "session, or leave out conn= to store them in a transaction of their own"
        )
        raise ConfigError(message)
    return otherwise if conn is NOT_GIVEN else conn
