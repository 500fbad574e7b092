"""Storing jobs.

The steps run on a caller's connection as well, inside the caller's transaction: they are plain
statements with named parameters. Ids rise in the order of the args and, since SQLite has one
writer at a time, in the order of commits: the log order is the order of ids.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

from rota.model.enqueued import Enqueued
from rota.model.job import JobId, JobSpec, Order
from rota.model.states import State
from rota.store.operation import Begin, Steps, Then, operation
from rota.store.sqlite.counters import added
from rota.store.sqlite.enqueue_keyed import enqueue_keyed
from rota.store.sqlite.statements import chunks, json_list, sql

ENQUEUE = sql("enqueue/enqueue")
ENQUEUE_ONE = sql("enqueue/enqueue_one")


@operation(Begin.DURABLE, then=Then.WORKERS)
def enqueue(order: Order) -> Steps[Enqueued]:
    """Store the jobs of an order; see `rota.store.protocol.Store.enqueue`."""
    return (yield from append(order))


def append(order: Order) -> Steps[Enqueued]:
    """The steps of it, as a part of a larger transaction, too."""
    if not order.args:
        return Enqueued()
    at = order.spec.at
    if at is not None and at.timestamp() <= time.time():
        order = order._replace(spec=replace(order.spec, at=None))
    if order.keys is None:
        return (yield from _enqueue(order.spec, order.args))
    return (yield from enqueue_keyed(order, order.keys))


def _enqueue(spec: JobSpec, args: Sequence[str]) -> Steps[Enqueued]:
    state = State.SCHEDULED if spec.later else State.AVAILABLE
    yield from added({(spec.queue, state.value, None): len(args)})
    options = {
        "task": spec.task,
        "queue": spec.queue,
        "priority": spec.priority,
        "state": state.value,
        "headers": spec.headers,
        "max_attempts": spec.max_attempts,
        "timeout": spec.timeout,
        "fallback_attempts": spec.fallback_attempts,
        "fallback_timeout": spec.fallback_timeout,
        "delay": spec.delay,
        "at": None if spec.at is None else spec.at.timestamp(),
    }
    jobs = Enqueued()
    if len(args) == 1:
        [(job,)] = yield ENQUEUE_ONE(args=args[0], **options)
        jobs.append(JobId(job))
        return jobs
    for chunk in chunks(args):
        rows = yield ENQUEUE(args=json_list(chunk), **options)
        # SQLite promises no order for what RETURNING gives; the ids themselves are in order.
        jobs.extend(sorted(JobId(row[0]) for row in rows))
    return jobs
