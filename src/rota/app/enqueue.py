"""The road of an enqueue: from a call to an order, and from the order to the store.

A call says which jobs of which task are wanted. What is stored is decided in the order, a value, before
any connection is touched. The async road differs in its last line.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rota.app.middleware import Arguments, EnqueueCall
from rota.errors import ArgsError
from rota.events import Events, JobsEnqueued
from rota.model.enqueued import Enqueued
from rota.model.job import JobSpec, Order

NO_NAMES: Mapping[str, object] = {}
"""Of a job whose arguments are all positional."""


def enqueue(call: EnqueueCall) -> Enqueued:
    """Store the jobs of a call, through the middleware.

    Raises:
        ArgsError: Some args do not fit; nothing was stored.
        StoreError: The database refused; nothing was stored.
    """
    middleware = call.task.app.middleware
    return middleware.enqueue(call, _store) if middleware.enqueueing else _store(call)


async def aenqueue(call: EnqueueCall) -> Enqueued:
    """`enqueue` for async code."""
    middleware = call.task.app.middleware
    return await (middleware.aenqueue(call, _astore) if middleware.enqueueing else _astore(call))


def _store(call: EnqueueCall) -> Enqueued:
    order, database = _order(call), call.task.app.database
    stored = database.run(database.store.enqueue(order), call.conn)
    return announced(call.task.app.events, order.spec, stored)


async def _astore(call: EnqueueCall) -> Enqueued:
    order, database = _order(call), call.task.app.database
    stored = await database.arun(database.store.enqueue(order), call.conn)
    return announced(call.task.app.events, order.spec, stored)


def _order(call: EnqueueCall) -> Order:
    """What a call asks for, with everything decided."""
    task = call.task
    encode, limit = task.codec.encode, task.app.max_args_bytes
    args: list[str] = []
    for number, (given, named) in enumerate(call.jobs):
        try:
            args.append(encode(given, named, limit=limit))
        except ArgsError as error:
            if not call.many:
                raise
            raise _of_many(number, error) from None
    keys = None if task.keying is None else task.keying.keys(args)
    return Order(task.app.queues.fill(task.spec), args, keys)


def announced(events: Events, spec: JobSpec, stored: Enqueued) -> Enqueued:
    """Tell the subscribers which jobs are new; gives back what was stored."""
    if events.wanted(JobsEnqueued) and (new := stored.created):
        events.emit(JobsEnqueued(spec.task, spec.queue, tuple(new)))
    return stored


def arguments_of_many(jobs: Iterable[Sequence[Any] | Mapping[str, Any]]) -> tuple[Arguments, ...]:
    """The arguments of each job of an `enqueue_many`.

    Raises:
        ArgsError: One of them is neither a tuple (or list) nor a dict.
    """
    return tuple(
        (job, NO_NAMES) if type(job) is tuple else _arguments(number, job)
        for number, job in enumerate(jobs)
    )


def _arguments(number: int, job: object) -> Arguments:
    match job:
        case Mapping():
            return (), job
        case tuple() | list():
            return tuple(job), {}
        case _:
            pass
    message = (
        "a tuple of positional arguments or a dict of keyword arguments is needed, "
        f"not {type(job).__name__}; for one argument write (value,)"
    )
    raise _of_many(number, ArgsError(message))


def _of_many(number: int, error: ArgsError) -> ArgsError:
    return ArgsError(f"job {number} of enqueue_many: {error}")
