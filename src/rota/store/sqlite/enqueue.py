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
from rota.store.operation import (
    Begin,
    Operation,
    Query,
    Rows,
    Stepped,
    Steps,
    Then,
    Together,
)
from rota.store.sqlite.counters import added, one_more
from rota.store.sqlite.enqueue_keyed import enqueue_keyed
from rota.store.sqlite.statements import chunks, json_list, sql

ENQUEUE = sql("enqueue/enqueue")
ENQUEUE_ONE = sql("enqueue/enqueue_one")


def enqueue(order: Order) -> Operation[Enqueued]:
    """Store the jobs of an order; see `rota.store.protocol.Store.enqueue`."""
    if len(order.args) == 1 and order.keys is None:
        queries = _single(_due(order.spec), order.args[0])
        return Together("enqueue", queries, _enqueued, lasting=True, then=Then.WORKERS)
    return Stepped("enqueue", append(order), Begin.DURABLE, Then.WORKERS)


def append(order: Order) -> Steps[Enqueued]:
    """The steps of it, as a part of a larger transaction, too."""
    if not order.args:
        return Enqueued()
    spec = _due(order.spec)
    if order.keys is not None:
        return (yield from enqueue_keyed(order._replace(spec=spec), order.keys))
    if len(order.args) > 1:
        return (yield from _many(spec, order.args))
    counted, stored = _single(spec, order.args[0])
    yield counted
    return _enqueued([(yield stored)])


def _due(spec: JobSpec) -> JobSpec:
    """The same, without a moment that has passed."""
    if spec.at is None or spec.at.timestamp() > time.time():
        return spec
    return replace(spec, at=None)


def _single(spec: JobSpec, args: str) -> tuple[Query, Query]:
    """What stores one job. It takes no list: caches are cold after a flush; a short road pays."""
    state = _state(spec)
    return one_more(spec.queue, state), ENQUEUE_ONE(args=args, **_options(spec, state))


def _enqueued(rows: Sequence[Rows]) -> Enqueued:
    [(job,)] = rows[-1]
    return Enqueued((JobId(job),))


def _many(spec: JobSpec, args: Sequence[str]) -> Steps[Enqueued]:
    state = _state(spec)
    yield from added({(spec.queue, state.value, None): len(args)})
    options = _options(spec, state)
    jobs = Enqueued()
    for chunk in chunks(args):
        rows = yield ENQUEUE(args=json_list(chunk), **options)
        # SQLite promises no order for what RETURNING gives; the ids themselves are in order.
        jobs.extend(sorted(JobId(row[0]) for row in rows))
    return jobs


def _state(spec: JobSpec) -> State:
    return State.SCHEDULED if spec.later else State.AVAILABLE


def _options(spec: JobSpec, state: State) -> dict[str, object]:
    return {
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
