"""Batch tasks: many jobs, one call.

Each job is enqueued by itself, with one element. A worker gathers jobs of the task and calls the
handler once with the list of their elements; what the call says of each job is settled job by job.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, Protocol, TypeVar, get_args, get_origin, overload

from rota.app.context import BatchContext
from rota.app.enqueuing import Enqueuing
from rota.app.executor import Executor
from rota.app.introspection import result_annotation, without_outcomes
from rota.app.task import Task
from rota.args import ArgsCodec
from rota.errors import ConfigError
from rota.model.backoff import RetryPolicy
from rota.model.durations import seconds
from rota.model.options import JobOptions

E = TypeVar("E")
R = TypeVar("R")

LARGEST = 10_000
"""Jobs that one call may serve."""

WITHIN = 0.1
"""Seconds that the first job of a batch waits for others, unless the task says otherwise."""


@dataclass(frozen=True, slots=True)
class Batching:
    """How jobs are gathered: up to `size` of them, for up to `within` seconds from the first."""

    size: int
    within: float


def batching(batch: int | None, within: float | timedelta | None) -> Batching | None:
    """Check the options `batch` and `within`.

    Raises:
        ConfigError: They cannot be used.
    """
    if batch is None:
        if within is not None:
            message = "within: says how long a batch is gathered, so it needs batch="
            raise ConfigError(message)
        return None
    if isinstance(batch, bool) or not isinstance(batch, int) or not 1 <= batch <= LARGEST:
        message = f"batch: must be a whole number between 1 and {LARGEST}, not {batch!r}"
        raise ConfigError(message)
    return Batching(batch, WITHIN if within is None else seconds(within, "within"))


class BatchTask(Task[[E], R, Any], Generic[E, R]):
    """A task whose handler takes a list, one element for each job. Made by `Rota.task(batch=…)`."""

    def __init__(
        self,
        enqueuing: Enqueuing,
        function: Callable[..., R],
        *,
        batching: Batching,
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
        if executor is not None and executor.elsewhere:
            message = (
                f"task {name!r}: a batch handler runs on the loop or in a thread, not in another "
                "process; leave out executor=, and hand over heavy work from the handler"
            )
            raise ConfigError(message)
        self.batching = batching
        super().__init__(
            enqueuing,
            function,
            name=name,
            options=options,
            retry=retry,
            executor=executor,
            retention=retention,
            store_result=store_result,
            soft_timeout=soft_timeout,
            on_success=on_success,
            on_failure=on_failure,
            redact=redact,
        )
        [self.parameter] = self.codec.names

    def __call__(self, items: list[E], /, **more: Any) -> R:  # type: ignore[override]
        """Just call the function with a list; a `BatchContext` and resources may be given by name."""
        # Its parameters are not those of `enqueue`, which takes one element.
        wanted = self.codec.context_parameter
        if wanted is not None and wanted not in more:
            more = {**more, wanted: BatchContext.alone(self.spec, len(items))}
        return self._direct(**{self.parameter: items}, **more)

    def _check_changes(self, changes: Mapping[str, object]) -> None:
        if "timeout" in changes:
            message = (
                f"task {self.name!r}: one call serves many jobs, so a single job has no timeout; "
                "set it on the task: @rota.task(batch=…, timeout=…)"
            )
            raise ConfigError(message)

    def _args_codec(self) -> ArgsCodec:
        return ArgsCodec(self.function, self.name, context=BatchContext, element=True)

    def _result_annotation(self) -> object:
        annotation = without_outcomes(result_annotation(self.function))
        for part in (annotation, *get_args(annotation)):
            if get_origin(part) is list:
                return without_outcomes(get_args(part)[0])
        return Any


class BatchDecorator(Protocol):
    """What `@rota.task(batch=…)` gives; for type checkers only."""

    @overload
    def __call__(self, function: Callable[[list[E]], R], /) -> BatchTask[E, R]: ...
    @overload
    def __call__(self, function: Callable[[list[E], BatchContext], R], /) -> BatchTask[E, R]: ...
    @overload
    def __call__(self, function: Callable[[BatchContext, list[E]], R], /) -> BatchTask[E, R]: ...
