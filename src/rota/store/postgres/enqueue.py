"""Appending jobs: to the log, or to the timer where their time has not come.

A producer takes no lock that another producer waits for. The lane it appends to must exist and be
visible to its snapshot; `lanes` makes it.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from rota.model.enqueued import Enqueued
from rota.model.job import JobId, JobSpec, Order
from rota.store.operation import (
    Begin,
    Copy,
    Operation,
    Query,
    Rows,
    Single,
    Statement,
    Stepped,
    Steps,
    surroundings,
)
from rota.store.postgres.copying import COPY_FROM, blocks, middle
from rota.store.postgres.enqueue_keyed import enqueue_keyed
from rota.store.postgres.ids import taken
from rota.store.postgres.lanes import apart, ensure_lane
from rota.store.postgres.layout import LOG_SEGMENTS
from rota.store.postgres.statements import CHUNK, sql

ENQUEUE = sql("enqueue/enqueue")
ENQUEUE_HERE = tuple(
    Statement(
        "enqueue_here",
        sql("enqueue/enqueue_here")
        .text.replace("rota.log_0", f"rota.log_{segment}")
        .replace("0 /* segment */", str(segment)),
    )
    for segment in range(LOG_SEGMENTS)
)
ENQUEUE_MANY = sql("enqueue/enqueue_many")
ENQUEUE_LATER = sql("enqueue/enqueue_later")
TIME_HAS_COME = sql("enqueue/time_has_come")
COPY_PREPARE = sql("enqueue/copy_prepare")
COPY_LOG = sql("enqueue/copy_log")

CLOCKS_APART = 60.0
"""Seconds by which a producer's clock may be behind the server's, which decides what is past."""

FRESH = 0.5
"""Seconds for which a producer goes on with the lane and the segment that it was told last."""


class Known(NamedTuple):
    """Where the last job of a lane went, when, and what is set for its queue."""

    since: float
    lane: int
    segment: int
    max_attempts: int | None
    timeout: float | None


class Appender:
    """Appends jobs, and remembers for a moment where the last ones went.

    Looking up the lane and the current segment, and routing a row through the partitioned table,
    costs a third of a single enqueue. A producer may go on with what it was told: a lane never
    changes its number, and a row in a segment that is not the current one any more does no harm.
    What is set for a queue meanwhile holds that moment later.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], Known] = {}

    def enqueue(self, order: Order) -> Operation[Enqueued]:
        """Store the jobs of an order; see `rota.store.protocol.Store.enqueue`."""
        if order.keys is not None:
            return enqueue_keyed(order)
        spec, args, _ = order
        if len(args) == 1 and not spec.later:
            return self._one(spec, args[0])
        # One job is one statement; more may need several, which must be all or nothing.
        begin = Begin.NOTHING if len(args) == 1 else Begin.DURABLE
        return Stepped("enqueue", _many(spec, args), begin)

    def _one(self, spec: JobSpec, args: str) -> Operation[Enqueued]:
        now = time.monotonic()
        known = self._known.get((spec.queue, spec.priority))
        if known is None or now - known.since >= FRESH:
            return Stepped("enqueue", self._find(spec, args, now), Begin.NOTHING)
        params = {
            "lane": known.lane,
            "wake": spec.queue if spec.wake else None,
            "max_attempts": spec.attempts(known.max_attempts),
            "timeout": spec.time_limit(known.timeout),
            "task": spec.task,
            "headers": spec.headers,
            "args": args,
        }
        return Single("enqueue", Query(ENQUEUE_HERE[known.segment], params), _ids)

    def _find(self, spec: JobSpec, args: str, now: float) -> Steps[Enqueued]:
        """Append one job, and remember where it went."""
        query = Query(ENQUEUE, {**_params(spec), "args": args})
        [(job, lane, segment, _, lasting, *preset)] = yield from _in_lane(spec, query)
        if lasting:
            self._known[spec.queue, spec.priority] = Known(now, lane, segment, *preset)
        return Enqueued([JobId(job)])


def append(order: Order) -> Steps[Enqueued]:
    """Store the jobs of an order as a part of a larger transaction."""
    if order.keys is not None:
        return enqueue_keyed(order, among=True).steps
    return _many(order.spec, order.args)


def _ids(rows: Rows) -> Enqueued:
    return Enqueued([JobId(row[0]) for row in rows])


def _many(spec: JobSpec, args: Sequence[str]) -> Steps[Enqueued]:
    spec = yield from _without_past(spec)
    ids = Enqueued()
    copy = len(args) >= COPY_FROM and not spec.later and (yield from surroundings()).copy
    for start in range(0, len(args), CHUNK):
        count = min(CHUNK, len(args) - start)
        if copy and count >= COPY_FROM:
            ids += yield from _copy(spec, args, start, count)
        else:
            ids += yield from _insert(spec, args[start : start + count])
    return ids


def _without_past(spec: JobSpec) -> Steps[JobSpec]:
    """The spec without its moment, if that is past: there is nothing to wait for."""
    if spec.at is None or spec.at.timestamp() > time.time() + CLOCKS_APART:
        return spec
    [(come,)] = yield TIME_HAS_COME(at=spec.at)
    return replace(spec, at=None) if come else spec


def _params(spec: JobSpec) -> dict[str, object]:
    return {
        "queue": spec.queue,
        "wake": spec.queue if spec.wake else None,
        "priority": spec.priority,
        "max_attempts": spec.max_attempts,
        "timeout": spec.timeout,
        "fallback_attempts": spec.fallback_attempts,
        "fallback_timeout": spec.fallback_timeout,
        "task": spec.task,
        "headers": spec.headers,
    }


def _insert(spec: JobSpec, args: Sequence[str]) -> Steps[list[JobId]]:
    params = {**_params(spec), "args": list(args)}
    if spec.later:
        query = Query(ENQUEUE_LATER, {**params, "delay": spec.delay, "at": spec.at})
    else:
        query = Query(ENQUEUE_MANY, params)
    rows = yield from _in_lane(spec, query)
    return _ids(rows)


def _copy(spec: JobSpec, args: Sequence[str], first: int, count: int) -> Steps[list[JobId]]:
    params = {
        "queue": spec.queue,
        "wake": spec.queue if spec.wake else None,
        "priority": spec.priority,
        "count": count,
    }
    [(lane, segment, ids, _, *preset)] = yield from _in_lane(spec, Query(COPY_PREPARE, params))
    attempts, limit = spec.attempts(preset[0]), spec.time_limit(preset[1])
    same = middle((lane, segment, attempts, limit, spec.task, spec.headers))
    jobs = taken(ids, count)
    # Of args that are still to be written, each block is written while the server stores those
    # before.
    yield Copy(COPY_LOG, blocks(jobs, same, args, first))
    return jobs


def _in_lane(spec: JobSpec, query: Query) -> Steps[Rows]:
    params = {**query.params, "lane": None}
    rows = yield Query(query.statement, params)
    if not rows:
        lane = yield from apart(spec.queue, spec.priority, ensure_lane(spec.queue, spec.priority))
        rows = yield Query(query.statement, {**params, "lane": lane})
    return rows
