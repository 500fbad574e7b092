"""Appending jobs: to the log, or to the timer where their time has not come.

A producer takes no lock that another producer waits for. The lane it appends to must exist and be
visible to its snapshot; the first producer of a lane therefore makes it apart, in a transaction of
Rota's own that commits at once: made in the caller's transaction it would stop every other first
producer of that lane until the caller commits.
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

from rota.model.job import JobId, JobSpec
from rota.store.operation import (
    Apart,
    Begin,
    Copy,
    Operation,
    Query,
    Rows,
    Single,
    Statement,
    Stepped,
    Steps,
    operation,
)
from rota.store.postgres.layout import LOG_SEGMENTS
from rota.store.postgres.statements import sql

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
COPY_PREPARE = sql("enqueue/copy_prepare")
COPY_LOG = sql("enqueue/copy_log")
ENSURE_QUEUE = sql("enqueue/ensure_queue")
ENSURE_LANE = sql("enqueue/ensure_lane")
LANE_LOCK = sql("enqueue/lane_lock")
CURSOR_BEGIN = sql("enqueue/cursor_begin")

COPY_FROM = 200
"""From how many jobs on COPY is faster than an INSERT."""

CHUNK = 20_000
"""Jobs per statement, so that memory on both sides stays bounded."""

FRESH = 0.5
"""Seconds for which a producer goes on with the lane and the segment that it was told last."""


class Preset(NamedTuple):
    """What somebody has set for a queue, of what a job brings with it."""

    max_attempts: int | None
    timeout: float | None

    def over(self, spec: JobSpec) -> dict[str, object]:
        """The parameters of a job of this spec that come from here."""
        changes: dict[str, object] = {}
        if self.max_attempts is not None and not spec.attempts_given:
            changes["max_attempts"] = self.max_attempts
        if self.timeout is not None and not spec.timeout_given:
            changes["timeout"] = self.timeout
        return changes


class Enqueuer:
    """Appends jobs, and remembers for a moment where the last ones went.

    Looking up the lane and the current segment, and routing a row through the partitioned table,
    costs a third of a single enqueue. A producer may go on with what it was told: a lane never
    changes its number, and a row in a segment that is not the current one any more does no harm.
    What somebody sets for a queue meanwhile holds that moment later.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], tuple[float, int, int, Preset | None]] = {}

    def enqueue(self, spec: JobSpec, args: Sequence[str], *, copy: bool) -> Operation[list[JobId]]:
        """Store one job per element of `args`; see `rota.store.protocol.Store.enqueue`."""
        if len(args) == 1 and not spec.later:
            return self._one(spec, args[0])
        # One job is one statement; more may need several, which must be all or nothing.
        begin = Begin.NOTHING if len(args) == 1 else Begin.DURABLE
        return Stepped("enqueue", _many(spec, args, copy=copy), begin)

    def _one(self, spec: JobSpec, args: str) -> Operation[list[JobId]]:
        now = time.monotonic()
        where = spec.queue, spec.priority
        known = self._known.get(where)
        params: dict[str, object] = {
            "wake": spec.queue if spec.wake else None,
            "max_attempts": spec.max_attempts,
            "timeout": spec.timeout,
            "task": spec.task,
            "args": args,
        }
        if known is not None and now - known[0] < FRESH:
            params["lane"] = known[1]
            if known[3] is not None:
                params |= known[3].over(spec)
            return Single("enqueue", Query(ENQUEUE_HERE[known[2]], params), _ids)
        return Stepped("enqueue", self._find(spec, params, now), Begin.NOTHING)

    def _find(self, spec: JobSpec, params: dict[str, object], now: float) -> Steps[list[JobId]]:
        """Append one job, and remember where it went."""
        params |= {
            "queue": spec.queue,
            "priority": spec.priority,
            "attempts_given": spec.attempts_given,
            "timeout_given": spec.timeout_given,
        }
        [(job, lane, segment, _, lasting, *said)] = yield from _in_lane(
            spec, Query(ENQUEUE, params)
        )
        if lasting:
            preset = None if said == [None, None] else Preset(*said)
            self._known[spec.queue, spec.priority] = now, lane, segment, preset
        return [JobId(job)]


def _ids(rows: Rows) -> list[JobId]:
    return [JobId(row[0]) for row in rows]


def _many(spec: JobSpec, args: Sequence[str], *, copy: bool) -> Steps[list[JobId]]:
    ids: list[JobId] = []
    for start in range(0, len(args), CHUNK):
        chunk = args[start : start + CHUNK]
        if copy and not spec.later and len(chunk) >= COPY_FROM:
            ids += yield from _copy(spec, chunk)
        else:
            ids += yield from _insert(spec, chunk)
    return ids


def _insert(spec: JobSpec, args: Sequence[str]) -> Steps[list[JobId]]:
    params = {
        "queue": spec.queue,
        "wake": spec.queue if spec.wake else None,
        "priority": spec.priority,
        "max_attempts": spec.max_attempts,
        "timeout": spec.timeout,
        "attempts_given": spec.attempts_given,
        "timeout_given": spec.timeout_given,
        "task": spec.task,
        "args": list(args),
    }
    if spec.later:
        query = Query(ENQUEUE_LATER, {**params, "delay": spec.delay, "at": spec.at})
    else:
        query = Query(ENQUEUE_MANY, params)
    rows = yield from _in_lane(spec, query)
    return _ids(rows)


def _copy(spec: JobSpec, args: Sequence[str]) -> Steps[list[JobId]]:
    params = {
        "queue": spec.queue,
        "wake": spec.queue if spec.wake else None,
        "priority": spec.priority,
        "count": len(args),
    }
    [(lane, segment, ids, _, *said)] = yield from _in_lane(spec, Query(COPY_PREPARE, params))
    own = {"max_attempts": spec.max_attempts, "timeout": spec.timeout} | Preset(*said).over(spec)
    timeout = r"\N" if own["timeout"] is None else repr(own["timeout"])
    middle = f"\t{lane}\t{segment}\t{own['max_attempts']}\t{timeout}\t{_escape(spec.task)}\t"
    # JSON text holds no tab and no newline, so the backslash is the only character that COPY
    # reads differently.
    escaped = [_escape(text) if "\\" in text else text for text in args]
    rows = [f"{job}{middle}{text}\n" for job, text in zip(ids, escaped, strict=True)]
    yield Copy(COPY_LOG, "".join(rows))
    return [JobId(job) for job in ids]


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\")


def _in_lane(spec: JobSpec, query: Query) -> Steps[Rows]:
    params = {**query.params, "lane": None}
    rows = yield Query(query.statement, params)
    if not rows:
        [(lane,)] = yield Apart(ensure_lane(spec.queue, spec.priority))
        rows = yield Query(query.statement, {**params, "lane": lane})
    return rows


@operation(Begin.DURABLE)
def ensure_lane(queue: str, priority: int) -> Steps[int]:
    """Make a lane if it is not there, with a cursor at its beginning; its number."""
    params = {"queue": queue, "priority": priority}
    yield ENSURE_QUEUE(queue=queue)
    yield ENSURE_LANE(**params)
    [(lane,)] = yield LANE_LOCK(**params)
    yield CURSOR_BEGIN(lane=lane)
    return int(lane)
