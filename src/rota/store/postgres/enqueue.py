"""Appending jobs: to the log, or to the timer where their time has not come.

A producer takes no lock that another producer waits for. The lane it appends to must exist and be
visible to its snapshot; the first producer of a lane therefore makes it apart, in a transaction of
Rota's own that commits at once: made in the caller's transaction it would stop every other first
producer of that lane until the caller commits.
"""

from collections.abc import Sequence

from rota.job import JobId, JobSpec
from rota.store.operation import Apart, Begin, Copy, Operation, Query, Rows, Steps, operation
from rota.store.postgres.statements import sql

ENQUEUE = sql("enqueue")
ENQUEUE_MANY = sql("enqueue_many")
ENQUEUE_LATER = sql("enqueue_later")
COPY_PREPARE = sql("copy_prepare")
COPY_LOG = sql("copy_log")
ENSURE_QUEUE = sql("ensure_queue")
ENSURE_LANE = sql("ensure_lane")
LANE_LOCK = sql("lane_lock")
CURSOR_BEGIN = sql("cursor_begin")

COPY_FROM = 200
"""From how many jobs on COPY is faster than an INSERT."""

CHUNK = 20_000
"""Jobs per statement, so that memory on both sides stays bounded."""


def enqueue(spec: JobSpec, args: Sequence[str], *, copy: bool) -> Operation[list[JobId]]:
    """Store one job per element of `args`; see `rota.store.protocol.Store.enqueue`."""
    # One job is one statement; more may need several, which must be all or nothing.
    begin = Begin.NOTHING if len(args) == 1 else Begin.DURABLE
    return Operation("enqueue", _enqueue(spec, args, copy=copy), begin)


def _enqueue(spec: JobSpec, args: Sequence[str], *, copy: bool) -> Steps[list[JobId]]:
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
        "priority": spec.priority,
        "max_attempts": spec.max_attempts,
        "timeout": spec.timeout,
        "task": spec.task,
    }
    if spec.later:
        query = Query(
            ENQUEUE_LATER, {**params, "args": list(args), "delay": spec.delay, "at": spec.at}
        )
    elif len(args) == 1:
        query = Query(ENQUEUE, {**params, "args": args[0]})
    else:
        query = Query(ENQUEUE_MANY, {**params, "args": list(args)})
    rows = yield from _in_lane(spec, query)
    return [JobId(row[0]) for row in rows]


def _copy(spec: JobSpec, args: Sequence[str]) -> Steps[list[JobId]]:
    params = {"queue": spec.queue, "priority": spec.priority, "count": len(args)}
    [(lane, segment, ids, _)] = yield from _in_lane(spec, Query(COPY_PREPARE, params))
    timeout = r"\N" if spec.timeout is None else repr(spec.timeout)
    middle = f"\t{lane}\t{segment}\t{spec.max_attempts}\t{timeout}\t{_escape(spec.task)}\t"
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
