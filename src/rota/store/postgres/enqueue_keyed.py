"""Enqueueing jobs that have keys.

Each job may have a lane of its own, hence arrays of lanes beside the args. The ids are taken first,
in the order of the args; the jobs are stored in the order of their unique keys, so that two
producers do not deadlock, and all new ones before any is replaced.

A unique key is a row of `rota.unique_key`. Its insertion decides between two producers: the second
one waits until the first one's transaction has ended, and finds a conflict, or none. What was found is
looked at in a statement of its own, hence with a new snapshot. By then the job may have finished,
and its key is free: then all begins again. A job that runs is never locked for longer than a statement,
so no settlement waits for a producer: see `rota.lock_waiting`.

What can fail: in REPEATABLE READ a key that another transaction has taken or changed since the snapshot
makes PostgreSQL refuse the statement. Two transactions that enqueue the same keys in several calls, in
different orders, can deadlock; PostgreSQL then ends one of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

import msgspec

from rota.errors import JobExists, StoreUnavailable
from rota.model.enqueued import Enqueued, Placed, Placing
from rota.model.job import JobId, JobSpec, Keys, Order
from rota.model.unique import OnConflict, Unique
from rota.store.operation import (
    Begin,
    Operation,
    Rows,
    Stepped,
    Steps,
    operation,
    surroundings,
)
from rota.store.postgres.lanes import apart, ensure_lane, find_lanes
from rota.store.postgres.statements import CHUNK, sql

QUEUE_PRESET = sql("queues/queue_preset")
KEYED_LANE = sql("enqueue/keyed_lane")
KEYED_MARK = sql("enqueue/keyed_mark")
KEYED_IDS = sql("enqueue/keyed_ids")
KEYED_NOW = sql("enqueue/keyed_now")
KEYED_LATER = sql("enqueue/keyed_later")
KEYED_REPLACE_NOW = sql("enqueue/keyed_replace_now")
KEYED_REPLACE_LATER = sql("enqueue/keyed_replace_later")
KEYED_LOCK_WAITING = sql("enqueue/keyed_lock_waiting")
KEYED_FIND = sql("enqueue/keyed_find")
KEYED_UNDO = sql("enqueue/keyed_undo")

ROUNDS = 10
"""How often a key is asked for that was taken and is free again at the next look."""


class Wanted(NamedTuple):
    """One job to be stored. Of several with one key, the one that counts."""

    job: int
    key: str | None
    lane: int
    args: str


def enqueue_keyed(order: Order) -> Operation[Enqueued]:
    """Store the jobs of an order that have keys; see `rota.store.protocol.Store.enqueue`."""
    # Of one job each statement is complete in itself; more are all or nothing.
    begin = Begin.NOTHING if len(order.args) == 1 else Begin.DURABLE
    return Stepped("enqueue", _enqueue(order), begin)


def _enqueue(order: Order) -> Steps[Enqueued]:
    spec, args, keys = order
    if not args or keys is None:
        return Enqueued()
    spec = yield from _with_preset(spec)
    lanes = yield from _lanes(spec, keys, len(args))
    [(ids, now)] = yield KEYED_IDS(count=len(args))
    if spec.at is not None and spec.at.timestamp() <= now:
        spec = replace(spec, at=None)
    if order.unique is None:
        wanted = [
            Wanted(job, None, lane, text) for job, lane, text in zip(ids, lanes, args, strict=True)
        ]
        yield from _insert(spec, wanted, None)
        return Enqueued(map(JobId, ids))
    unique, given = order.unique
    names, until = unique.in_period(given, now)
    wanted = _distinct(unique, ids, names, lanes, args)
    lasting = len(args) > 1 or (yield from surroundings()).inside
    placed = yield from _place(spec, unique, wanted, until, lasting=lasting)
    return Enqueued.of(_answer(unique, ids, names, placed))


def _with_preset(spec: JobSpec) -> Steps[JobSpec]:
    """The spec with what is set for its queue."""
    if spec.max_attempts is not None and spec.timeout is not None:
        return spec
    [(attempts, limit)] = (yield QUEUE_PRESET(queue=spec.queue)) or [(None, None)]
    return replace(spec, max_attempts=spec.attempts(attempts), timeout=spec.time_limit(limit))


def _lanes(spec: JobSpec, keys: Keys, count: int) -> Steps[list[int]]:
    """The lane of each job: those of its keys, or the plain one for all."""
    if keys.limit is not None or keys.fair is not None:
        return (yield from find_lanes(spec, keys, count))
    rows: Rows = yield KEYED_LANE(queue=spec.queue, priority=spec.priority)
    if rows:
        [(lane, keyed)] = rows
    else:
        lane = yield from apart(spec.queue, spec.priority, ensure_lane(spec.queue, spec.priority))
        keyed = False
    if spec.unique is not None and not keyed:
        yield from apart(spec.queue, spec.priority, mark_keyed(lane))
    return [lane] * count


@operation(Begin.DURABLE)
def mark_keyed(lane: int) -> Steps[None]:
    """Let claims know that a lane has unique jobs."""
    yield KEYED_MARK(lane=lane)


def _distinct(
    unique: Unique,
    ids: Sequence[int],
    keys: Sequence[str],
    lanes: Sequence[int],
    args: Sequence[str],
) -> list[Wanted]:
    """One job per key, in the order of the keys: what enqueues one after the other would leave.

    Raises:
        JobExists: Two have the same key, and that is an error.
    """
    found: dict[str, Wanted] = {}
    for job, key, lane, text in zip(ids, keys, lanes, args, strict=True):
        first = found.get(key)
        if first is None:
            found[key] = Wanted(job, key, lane, text)
        elif unique.on_conflict == OnConflict.RAISE:
            message = f"two jobs of one enqueue_many have the key {key!r}; nothing was stored"
            raise JobExists(message)
        elif unique.replaces:
            found[key] = Wanted(first.job, key, lane, text)
    return [found[key] for key in sorted(found)]


def _answer(
    unique: Unique, ids: Sequence[int], keys: Sequence[str], placed: dict[str, Placed]
) -> list[Placed]:
    answer = []
    for job, key in zip(ids, keys, strict=True):
        one = placed[key]
        if one.placing is Placing.CREATED and one.job != job:
            # A second one of a key that was free.
            again = Placing.REPLACED if unique.replaces else Placing.SKIPPED
            one = one._replace(placing=again)
        answer.append(one)
    return answer


def _place(
    spec: JobSpec, unique: Unique, wanted: list[Wanted], until: datetime | None, *, lasting: bool
) -> Steps[dict[str, Placed]]:
    """Store jobs with different keys, in the order of the keys; what became of each.

    `lasting` are locks that stay after the statement that takes them.
    """
    placed: dict[str, Placed] = {}
    for _ in range(ROUNDS):
        created = yield from _insert(spec, wanted, until)
        for each in wanted:
            if each.job in created and each.key is not None:
                placed[each.key] = Placed(JobId(each.job), Placing.CREATED)
        wanted = [each for each in wanted if each.job not in created]
        yield from _meet(spec, unique, wanted, placed, lasting=lasting)
        wanted = [each for each in wanted if each.key not in placed]
        if not wanted:
            return placed
    message = f"the key {wanted[0].key!r} is taken and freed again all the time; try again"
    raise StoreUnavailable(message)


def _meet(
    spec: JobSpec,
    unique: Unique,
    wanted: list[Wanted],
    placed: dict[str, Placed],
    *,
    lasting: bool,
) -> Steps[None]:
    """Find the jobs of the keys that were not free; a key that is free again is not placed."""
    if unique.replaces:
        for chunk in _chunks(wanted):
            waiting = (yield from _lock_waiting(spec, chunk)) if lasting else chunk
            for key, job, _ in (yield from _replace(spec, unique, waiting)):
                placed[key] = Placed(JobId(job), Placing.REPLACED)
    for chunk in _chunks([each for each in wanted if each.key not in placed]):
        for key, job in (yield KEYED_FIND(task=spec.task, keys=_keys(chunk))):
            if unique.on_conflict == OnConflict.RAISE:
                yield from _undo(spec, placed)
                message = f"job {job} of task {spec.task!r} has the key {key!r}; nothing was stored"
                raise JobExists(message, job)
            placed[key] = Placed(JobId(job), Placing.SKIPPED)


def _insert(spec: JobSpec, wanted: list[Wanted], until: datetime | None) -> Steps[set[int]]:
    """Store those whose keys are free; their ids."""
    created: set[int] = set()
    for chunk in _chunks(wanted):
        params = {
            **_options(spec),
            "jobs": _numbers([each.job for each in chunk]),
            **_lists(chunk),
            "until": until,
        }
        if spec.later:
            rows = yield KEYED_LATER(**params, delay=spec.delay, at=spec.at)
        else:
            rows = yield KEYED_NOW(**params)
        created.update(row[0] for row in rows)
    return created


def _lock_waiting(spec: JobSpec, wanted: Sequence[Wanted]) -> Steps[Sequence[Wanted]]:
    """Lock the keys of those whose jobs have not started; these."""
    [(keys,)] = yield KEYED_LOCK_WAITING(task=spec.task, keys=_keys(wanted))
    locked = frozenset(keys)
    return [each for each in wanted if each.key in locked]


def _replace(spec: JobSpec, unique: Unique, wanted: Sequence[Wanted]) -> Steps[Rows]:
    if not wanted:
        return ()
    params = {**_options(spec), **_lists(wanted)}
    if not spec.later:
        return (yield KEYED_REPLACE_NOW(**params))
    return (
        yield KEYED_REPLACE_LATER(**params, delay=spec.delay, at=spec.at, cap=unique.cap_seconds)
    )


def _undo(spec: JobSpec, placed: dict[str, Placed]) -> Steps[None]:
    """Take back what was created: the caller's transaction may go on."""
    created = {key: one.job for key, one in placed.items() if one.placing is Placing.CREATED}
    if created:
        yield KEYED_UNDO(task=spec.task, keys=list(created), jobs=list(created.values()))


def _options(spec: JobSpec) -> dict[str, object]:
    return {
        "task": spec.task,
        "wake": spec.queue if spec.wake else None,
        "max_attempts": spec.max_attempts,
        "timeout": spec.timeout,
        "while_waiting": spec.unique is not None and spec.unique.while_waiting,
    }


def _lists(wanted: Sequence[Wanted]) -> dict[str, object]:
    return {
        "keys": None if wanted[0].key is None else _keys(wanted),
        "lanes": _numbers([each.lane for each in wanted]),
        "args": f"[{','.join([each.args for each in wanted])}]",
    }


def _keys(wanted: Sequence[Wanted]) -> str:
    return msgspec.json.encode([each.key for each in wanted]).decode()


def _numbers(values: Sequence[int]) -> str:
    return f"{{{','.join(map(str, values))}}}"


def _chunks(wanted: Sequence[Wanted]) -> Iterator[Sequence[Wanted]]:
    for start in range(0, len(wanted), CHUNK):
        yield wanted[start : start + CHUNK]
