"""A run in another process: what is asked for, how it is run there, and what comes back.

Handlers are found by their place in a module, args travel as the JSON that is stored, and answers
are JSON: nothing of a user's is pickled. This module is imported there, so it knows nothing of the
worker.
"""

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from traceback import format_exception
from typing import TYPE_CHECKING, Any, Self

import msgspec

from rota.app.context import RUN, Context
from rota.app.resources import Resources
from rota.app.successor import wants_result
from rota.app.task import Task
from rota.errors import ConfigError
from rota.model.chosen import retries
from rota.model.flow import wanted
from rota.model.job import ClaimedJob, Following
from rota.model.notes import Note, Notes
from rota.model.settlement import RemoteError
from rota.outcome import Again, Discard, Outcome, Retry, Snooze
from rota.worker.undone import undone

if TYPE_CHECKING:
    from rota.worker.executors.remote_transaction import RemoteTransaction


class UnstorableResult(RemoteError):
    """The handler ran, and what it returned cannot be stored."""


class Hopeless(RemoteError):
    """The handler raised what its task does not retry."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where to find a task or a lifespan, and the name that it was registered under."""

    module: str
    qualname: str
    name: str

    def find(self) -> Any:
        """Import the module and take the object from it."""
        found: Any = importlib.import_module(self.module)
        for name in self.qualname.split("."):
            found = getattr(found, name)
        return found


class Holder(msgspec.Struct):
    """Who holds a job: a worker's session, and in which database."""

    session: int
    database: str


class Transacted(msgspec.Struct):
    """What a handler's transaction came to: the job's lease since, stage, result and successors."""

    lease: int
    stage: str
    result: str | None = None
    following: list[Following] = []


class Order(msgspec.Struct):
    """What a worker wants done.

    A job, where to find its task, which of the worker's apps has it, whether its result is wanted,
    what middleware has sent along, and who holds the job, where its handler may want a transaction.
    """

    module: str
    qualname: str
    job: ClaimedJob
    result: bool
    app: int = 0
    sent: dict[str, Mapping[str, str]] = {}
    holder: Holder | None = None

    @classmethod
    def of(cls, task: Task[..., Any, Any], job: ClaimedJob, app: int) -> Self:
        """That of a claimed job."""
        function = task.function
        result = task.store_result or wants_result(job, task) or wanted(job.headers)
        return cls(function.__module__, function.__qualname__, job, result, app)


class Answer(msgspec.Struct):
    """What came of it.

    `kind` is returned, again, snooze, retry, discard, raised, hopeless or unstorable.

    `hopeless`: it raised what its task does not retry, which only the child can tell.

    Before that there may be answers of the kind told, with what the handler tells of its run. The
    first answer of all is of the kind ready, or broken or unfit where a lifespan could not be
    entered, or lacks something. After the one that is the `last` the child ends; `memory` is in
    bytes. `noticed`: the handler was told to stop, and has looked. `transacted`: it has had a
    transaction.
    """

    kind: str
    result: str | None = None
    after: float | None = None
    at: datetime | None = None
    exception: str = ""
    message: str = ""
    traceback: str = ""
    notes: list[Note] = []
    last: bool = False
    memory: int | None = None
    noticed: bool = False
    transacted: Transacted | None = None

    def value(self) -> str | None:
        """What the run came to: the JSON text of the result, if that was wanted.

        Raises:
            Snooze: The handler said so; likewise Again, Retry and Discard.
            RemoteError: The handler raised an exception.
        """
        match self.kind:
            case "returned":
                return self.result
            case "snooze":
                raise Snooze(self.after or 0.0)
            case "again":
                raise Again(after=self.after, at=self.at)
            case "retry":
                raise Retry(self.message, after=self.after)
            case "discard":
                raise Discard(self.message)
            case "hopeless":
                raise Hopeless(self.exception, self.message, self.traceback)
            case "unstorable":
                raise UnstorableResult(self.exception, self.message, self.traceback)
            case _:
                raise RemoteError(self.exception, self.message, self.traceback)


def check_findable(task: Task[..., Any, Any]) -> None:
    """Refuse a task that another process cannot import.

    Raises:
        ConfigError: The function is defined inside another one.
    """
    if "<locals>" in task.function.__qualname__:
        message = (
            f"task {task.name!r} runs in another process, which must be able to import it; "
            "define it at the top level of a module"
        )
        raise ConfigError(message)


def place(function: Callable[..., Any], name: str) -> Place:
    """Where another process finds this function."""
    return Place(function.__module__, function.__qualname__, name)


def serve(
    order: Order,
    notes: Notes,
    resources: Resources,
    *,
    interrupts: bool = False,
    begins: Callable[[Context], object] | None = None,
) -> Answer:
    """Run one job; what its handler tells goes to `notes`.

    Args:
        order: Which job, and what is wanted of it.
        notes: Takes progress and lines.
        resources: What lifespans have yielded here.
        interrupts: Whether a soft timeout can interrupt the handler wherever it is.
        begins: Told of the run's context, before the handler is called.
    """
    try:
        task = find(order.module, order.qualname)
    except BaseException as error:  # noqa: BLE001 - as below
        return raised("raised", error)
    transaction = None if order.holder is None else _transaction(task, order.holder)
    context = Context(
        order.job,
        notes=notes,
        transact=None if transaction is None else transaction.transact,
        resources=resources,
        soft_timeout=task.soft_timeout,
        interrupts=interrupts,
    )
    RUN.set(context)
    if begins is not None:
        begins(context)
    answer = _run(task, order, context, resources)
    answer.noticed = context.noticed
    if transaction is not None:
        answer.transacted = transaction.told()
    return answer


def _transaction(task: Task[..., Any, Any], holder: Holder) -> "RemoteTransaction":
    from rota.worker.executors.remote_transaction import RemoteTransaction  # here: few want one

    return RemoteTransaction(task, holder)


def _run(task: Task[..., Any, Any], order: Order, context: Context, resources: Resources) -> Answer:
    try:
        args, kwargs = task.codec.decode(order.job.args)
        if task.codec.context_parameter:
            kwargs[task.codec.context_parameter] = context
        kwargs.update(resources.of(task))
        call = functools.partial(task.function, *args, **kwargs)
        value = task.enqueuing.middleware.received(order.sent, call)()
    except Outcome as outcome:
        return _outcome(outcome)
    except BaseException as error:  # noqa: BLE001 - SystemExit too is an attempt that failed
        return _failed(task, error)
    return _returned(task, value, wanted=order.result)


def find(module: str, qualname: str) -> Task[..., Any, Any]:
    """Import the task's module and take the task from it."""
    found = Place(module, qualname, qualname).find()
    if not isinstance(found, Task):
        message = f"{module}.{qualname} is no task in this process"
        raise TypeError(message)
    return found


def _returned(task: Task[..., Any, Any], value: object, *, wanted: bool) -> Answer:
    if isinstance(value, Outcome):
        return _outcome(value)
    if (left := undone(value)) is not None:
        return _failed(task, left)
    if not wanted:
        return Answer("returned")
    try:
        return Answer("returned", result=task.given_codec.encode(value))
    except Exception as error:  # noqa: BLE001 - reported to the parent
        return raised("unstorable", error)


def _failed(task: Task[..., Any, Any], error: BaseException) -> Answer:
    return raised("raised" if retries(task.retry, error) else "hopeless", error)


def _outcome(outcome: Outcome) -> Answer:
    match outcome:
        case Snooze():
            return Answer("snooze", after=outcome.after)
        case Again():
            return Answer("again", after=outcome.after, at=outcome.at)
        case Retry():
            return Answer("retry", after=outcome.after, message=_sendable(outcome.reason))
        case Discard():
            return Answer("discard", message=_sendable(outcome.reason))
        case _:
            return raised("raised", outcome)


def raised(kind: str, error: BaseException) -> Answer:
    """The answer of this kind that tells of an exception."""
    cls = type(error)
    return Answer(
        kind,
        exception=f"{cls.__module__}.{cls.__qualname__}",
        message=_sendable(str(error)),
        traceback=_sendable("".join(format_exception(error))),
    )


def _sendable(text: str) -> str:
    """The text with surrogates made visible, which UTF-8 cannot have: file names may bring some."""
    return text.encode("utf-8", "backslashreplace").decode()
