"""Enqueueing jobs that have keys.

Each job may have a lane of its own, hence arrays of lanes beside the args. The ids are taken first,
in the order of the args; the jobs are stored in the order of their unique keys, so that two
producers do not deadlock, and all new ones before any is replaced.

A unique key is a row of `rota.unique_key`. Its insertion decides between two producers: the second
one waits until the first one's transaction has ended, and finds a conflict, or none. What was found
is looked at in a statement of its own, hence with a new snapshot. By then the job may have
finished, and its key is free: then all begins again. A job that runs is never locked for longer
than a statement, so no settlement waits for a producer: see `rota.lock_waiting`.

What can fail: in REPEATABLE READ a key that another transaction has taken or changed since the
snapshot makes PostgreSQL refuse the statement. Two transactions that enqueue the same keys in
several calls, in different orders, can deadlock; PostgreSQL then ends one of them.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import compress

from rota.errors import JobExists, StoreUnavailable
from rota.model.enqueued import Enqueued, Placing
from rota.model.job import JobSpec, Keys, Order
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
from rota.store.postgres.copying import COPY_FROM
from rota.store.postgres.enqueue_keyed_many import place_many
from rota.store.postgres.ids import taken
from rota.store.postgres.lanes import apart, ensure_lane, find_lanes
from rota.store.postgres.statements import sql
from rota.store.postgres.wanted import Found, Wanted, json_keys, numbers

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


def enqueue_keyed(order: Order, *, among: bool = False) -> Operation[Enqueued]:
    """Store the jobs of an order that have keys; see `rota.store.protocol.Store.enqueue`.

    `among`: the steps are a part of a larger transaction of Rota's own.
    """
    # Of one job each statement is complete in itself; more are all or nothing.
    begin = Begin.NOTHING if len(order.args) == 1 else Begin.DURABLE
    return Stepped("enqueue", _enqueue(order, among=among), begin)


def _enqueue(order: Order, *, among: bool) -> Steps[Enqueued]:
    spec, args, keys = order
    if not args or keys is None:
        return Enqueued()
    spec = yield from _with_preset(spec)
    lanes = yield from _lanes(spec, keys, len(args))
    [(run, now)] = yield KEYED_IDS(count=len(args))
    ids, places = taken(run, len(args)), range(len(args))
    if spec.at is not None and spec.at.timestamp() <= now:
        spec = replace(spec, at=None)
    if order.unique is None:
        yield from _insert(spec, Wanted(places, ids, None, lanes, args), None)
        return Enqueued(ids)
    unique, given = order.unique
    names, until = unique.in_period(given, now)
    wanted = _distinct(unique, Wanted(places, ids, names, lanes, args), names)
    where = yield from surroundings()
    lasting = len(args) > 1 or where.inside or among
    # A caller's transaction may be one for each statement: a key would stay without its job.
    copy = where.copy and not where.inside and not spec.later and len(args) >= COPY_FROM
    found = Found(ids)
    if copy:
        yield from place_many(spec, unique, wanted, until, found)
    yield from _place(spec, unique, wanted, until, found, lasting=lasting)
    return _answer(unique, names, found)


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


def _distinct(unique: Unique, given: Wanted, keys: Sequence[str]) -> Wanted:
    """One job per key: what enqueues one after the other would leave.

    Raises:
        JobExists: Two have the same key, and that is an error.
    """
    if len(set(keys)) == len(keys):
        return given
    lanes, args = list(given.lanes), list(given.args)
    first: dict[str, int] = {}
    for place, key in enumerate(keys):
        if first.setdefault(key, place) == place:
            continue
        if unique.on_conflict == OnConflict.RAISE:
            message = f"two jobs of one enqueue_many have the key {key!r}; nothing was stored"
            raise JobExists(message)
        if unique.replaces:
            lanes[first[key]], args[first[key]] = lanes[place], args[place]
    return given._replace(lanes=lanes, args=args).at(list(first.values()))


def _answer(unique: Unique, keys: Sequence[str], found: Found) -> Enqueued:
    if not all(found.known):
        # Some have the key of one before them.
        again = Placing.REPLACED if unique.replaces else Placing.SKIPPED
        first: dict[str, int] = {}
        for place, key in enumerate(keys):
            before = first.setdefault(key, place)
            if before < place:
                placing = found.placings[before]
                placing = again if placing is Placing.CREATED else placing
                found.add([place], [found.jobs[before]], placing)
    return Enqueued(found.jobs, found.placings)


def _place(
    spec: JobSpec,
    unique: Unique,
    wanted: Wanted,
    until: datetime | None,
    found: Found,
    *,
    lasting: bool,
) -> Steps[None]:
    """Store jobs with different keys, in the order of the keys; what became of each is in `found` then.

    `lasting` are locks that stay after the statement that takes them.
    """
    given, wanted = wanted, found.others(wanted).by_key()
    for _ in range(ROUNDS):
        if not wanted.jobs:
            return
        created = yield from _insert(spec, wanted, until)
        new = wanted.only([job in created for job in wanted.jobs])
        found.add(new.places, new.jobs, Placing.CREATED)
        wanted = found.others(wanted)
        try:
            yield from _meet(spec, unique, wanted, found, lasting=lasting)
        except JobExists:
            yield from _undo(spec, given, found)
            raise
        wanted = found.others(wanted)
    message = f"the key {wanted.unique_keys[0]!r} keeps being taken and freed; try again"
    raise StoreUnavailable(message)


def _meet(
    spec: JobSpec, unique: Unique, wanted: Wanted, found: Found, *, lasting: bool
) -> Steps[None]:
    """Find the jobs of the keys that were not free; a key that is free again is not found."""
    if unique.replaces:
        for chunk in wanted.chunks():
            waiting = (yield from _lock_waiting(spec, chunk)) if lasting else chunk
            yield from _replace(spec, unique, waiting, found)
    for chunk in found.others(wanted).chunks():
        [(jobs,)] = yield KEYED_FIND(task=spec.task, keys=json_keys(chunk))
        there = [job is not None for job in jobs]
        held, jobs = chunk.only(there), list(compress(jobs, there))
        if jobs and unique.on_conflict == OnConflict.RAISE:
            key, job = held.unique_keys[0], jobs[0]
            message = f"job {job} of task {spec.task!r} has the key {key!r}; nothing was stored"
            raise JobExists(message, job)
        found.add(held.places, jobs, Placing.SKIPPED)


def _insert(spec: JobSpec, wanted: Wanted, until: datetime | None) -> Steps[set[int]]:
    """Store those whose keys are free; their ids."""
    created: set[int] = set()
    for chunk in wanted.chunks():
        params = {**_options(spec), "jobs": numbers(chunk.jobs), **_lists(chunk), "until": until}
        if spec.later:
            [(ids, _)] = yield KEYED_LATER(**params, delay=spec.delay, at=spec.at)
        else:
            [(ids, _)] = yield KEYED_NOW(**params)
        created.update(ids)
    return created


def _lock_waiting(spec: JobSpec, wanted: Wanted) -> Steps[Wanted]:
    """Lock the keys of those whose jobs have not started; these."""
    [(keys,)] = yield KEYED_LOCK_WAITING(task=spec.task, keys=json_keys(wanted))
    locked = frozenset(keys)
    return wanted.only([key in locked for key in wanted.unique_keys])


def _replace(spec: JobSpec, unique: Unique, wanted: Wanted, found: Found) -> Steps[None]:
    """Give the jobs of these keys that have not started new args."""
    while wanted.jobs:
        params = {**_options(spec), **_lists(wanted)}
        if spec.later:
            times = {"delay": spec.delay, "at": spec.at, "cap": unique.cap_seconds}
            [(keys, jobs, changed, _)] = yield KEYED_REPLACE_LATER(**params, **times)
        else:
            [(keys, jobs, changed, _)] = yield KEYED_REPLACE_NOW(**params)
        found.add(wanted.having(keys), jobs, Placing.REPLACED)
        if not changed:
            return
        wanted = found.others(wanted)


def _undo(spec: JobSpec, given: Wanted, found: Found) -> Steps[None]:
    """Take back what was created: the caller's transaction may go on."""
    created = given.only(
        [found.known[place] and found.placings[place] is Placing.CREATED for place in given.places]
    )
    if created.jobs:
        yield KEYED_UNDO(task=spec.task, keys=created.keys, jobs=created.jobs)


def _options(spec: JobSpec) -> dict[str, object]:
    return {
        "task": spec.task,
        "headers": spec.headers,
        "wake": spec.queue if spec.wake else None,
        "max_attempts": spec.max_attempts,
        "timeout": spec.timeout,
        "while_waiting": spec.unique is not None and spec.unique.while_waiting,
    }


def _lists(wanted: Wanted) -> dict[str, object]:
    return {
        "keys": None if wanted.keys is None else json_keys(wanted),
        "lanes": numbers(wanted.lanes),
        "args": f"[{','.join(wanted.args)}]",
    }
