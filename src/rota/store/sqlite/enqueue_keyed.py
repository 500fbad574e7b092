"""Storing jobs that have keys.

A unique key is a row of `rota_unique`, and its insertion decides who has it. It is the first
statement, and since SQLite has one writer at a time nothing changes from there to the end of the
transaction. A job that waits is replaced where it is: it keeps its id, hence its place in the
order.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from rota.errors import JobExists, StoreUnavailable
from rota.model.enqueued import Enqueued, Placed, Placing
from rota.model.job import JobId, JobSpec, Keys, Order
from rota.model.states import State
from rota.model.unique import OnConflict, Unique
from rota.store.operation import Rows, Steps
from rota.store.sqlite.counters import BUCKET, added, moved
from rota.store.sqlite.lanes import find_lanes
from rota.store.sqlite.statements import chunks, json_list, sql

QUEUE_PRESET = sql("queues/queue_preset")
KEYED_ENQUEUE = sql("enqueue/keyed_enqueue")
UNIQUE_TAKE = sql("enqueue/unique_take")
UNIQUE_SET = sql("enqueue/unique_set")
UNIQUE_FIND = sql("enqueue/unique_find")
UNIQUE_REPLACE = sql("enqueue/unique_replace")
UNIQUE_KEEP = sql("enqueue/unique_keep")
UNIQUE_UNDO = sql("enqueue/unique_undo")
UNIQUE_END = sql("enqueue/unique_end")
UNIQUE_FREE = sql("enqueue/unique_free")
UNIQUE_LOST = sql("enqueue/unique_lost")
UNIQUE_AGAIN = sql("enqueue/unique_again")

WAITING = {State.SCHEDULED, State.AVAILABLE, State.RETRYABLE}

BATCH = 5_000
"""Keys per statement."""


class KeyTaken(StoreUnavailable):
    """Another producer, without a transaction, has taken a key and is about to store its job."""


def enqueue_keyed(order: Order, keys: Keys) -> Steps[Enqueued]:
    """Store the jobs of an order that have keys."""
    args = order.args
    spec = yield from _with_preset(order.spec)
    lanes = yield from find_lanes(spec, keys, len(args))
    if order.unique is None:
        return Enqueued((yield from _store(spec, args, [None] * len(args), lanes)))
    unique, given = order.unique
    names, until = unique.in_period(given, time.time())
    texts = _distinct(unique, names, list(zip(args, lanes, strict=True)))
    free: set[str] = set()
    for batch in _batches(list(texts)):
        rows = yield UNIQUE_TAKE(
            keys=json_list(batch),
            task=spec.task,
            until=None if until is None else until.timestamp(),
            while_waiting=unique.while_waiting,
        )
        free.update(row[0] for row in rows)
    placed: dict[str, Placed] = {}
    if len(free) < len(texts):
        placed = yield from _meet(spec, unique, [key for key in texts if key not in free], texts)
        if unique.on_conflict == OnConflict.RAISE:
            for batch in _batches(sorted(free)):
                yield UNIQUE_UNDO(keys=json_list(batch), task=spec.task)
            key, one = next(iter(placed.items()))
            message = f"job {one.job} of task {spec.task!r} has the key {key!r}; nothing was stored"
            raise JobExists(message, one.job)
    created = yield from _create(spec, [key for key in texts if key in free], texts)
    again = Placing.REPLACED if unique.replaces else Placing.SKIPPED
    answer = []
    for key in names:
        if key in created:
            placed[key] = Placed(created[key], again)
            answer.append(Placed(created.pop(key), Placing.CREATED))
        else:
            answer.append(placed[key])
    return Enqueued.of(answer)


def _with_preset(spec: JobSpec) -> Steps[JobSpec]:
    """The spec with what is set for its queue."""
    if spec.max_attempts is not None and spec.timeout is not None:
        return spec
    [(attempts, limit)] = (yield QUEUE_PRESET(queue=spec.queue)) or [(None, None)]
    return replace(spec, max_attempts=spec.attempts(attempts), timeout=spec.time_limit(limit))


Wanted = tuple[str, int | None]
"""The args of a job, and its lane."""


def _distinct(unique: Unique, keys: Sequence[str], jobs: Sequence[Wanted]) -> dict[str, Wanted]:
    """The job of each key, in the order of first use: what one enqueue after the other would leave.

    Raises:
        JobExists: Two have the same key, and that is an error.
    """
    texts: dict[str, Wanted] = {}
    for key, job in zip(keys, jobs, strict=True):
        if key in texts and unique.on_conflict == OnConflict.RAISE:
            message = f"two jobs of one enqueue_many have the key {key!r}; nothing was stored"
            raise JobExists(message)
        if key not in texts or unique.replaces:
            texts[key] = job
    return texts


def _create(spec: JobSpec, keys: list[str], texts: dict[str, Wanted]) -> Steps[dict[str, JobId]]:
    """Store jobs whose keys were free; their ids."""
    if not keys:
        return {}
    args, lanes = zip(*(texts[key] for key in keys), strict=True)
    jobs = yield from _store(spec, args, keys, lanes)
    created = dict(zip(keys, jobs, strict=True))
    for batch in _batches(list(created.items())):
        yield UNIQUE_SET(taken=json_list(batch), task=spec.task)
    return created


def _store(
    spec: JobSpec, args: Sequence[str], keys: Sequence[str | None], lanes: Sequence[int | None]
) -> Steps[list[JobId]]:
    """Store jobs with these keys (none: no unique key) and lanes; their ids."""
    state = State.SCHEDULED if spec.later else State.AVAILABLE
    yield from added({(spec.queue, state.value, None): len(args)})
    jobs: list[JobId] = []
    for chunk in chunks(args):
        part = slice(len(jobs), len(jobs) + len(chunk))
        rows = yield KEYED_ENQUEUE(
            jobs=json_list(list(zip(chunk, keys[part], lanes[part], strict=True))),
            **_options(spec),
            task=spec.task,
        )
        jobs.extend(sorted(JobId(row[0]) for row in rows))
    return jobs


def _meet(
    spec: JobSpec, unique: Unique, keys: list[str], texts: dict[str, Wanted]
) -> Steps[dict[str, Placed]]:
    """See who has the keys that were not free, and replace those that wait."""
    placed: dict[str, Placed] = {}
    waiting: dict[str, Any] = {}
    for batch in _batches(keys):
        for key, job, first_at, *place in (
            yield UNIQUE_FIND(keys=json_list(batch), task=spec.task)
        ):
            if job is None:
                message = (
                    f"another producer is about to store a job with the key {key!r}; try again"
                )
                raise KeyTaken(message)
            placed[key] = Placed(JobId(job), Placing.SKIPPED)
            if place[2] in WAITING:
                waiting[key] = (first_at, place)
    if unique.replaces:
        for batch in _batches(list(waiting)):
            new = [
                [placed[key].job, texts[key][0], waiting[key][0], texts[key][1]] for key in batch
            ]
            rows = yield UNIQUE_REPLACE(
                jobs=json_list(new), **_options(spec), cap=unique.cap_seconds
            )
            left = Counter(BUCKET(waiting[key][1]) for key in batch)
            yield from moved(left, Counter(map(BUCKET, rows)))
            yield UNIQUE_KEEP(
                keys=json_list(batch), task=spec.task, while_waiting=unique.while_waiting
            )
            placed |= {key: Placed(placed[key].job, Placing.REPLACED) for key in batch}
        # Only now, since what follows may cancel jobs: these have left their nodes.
        yield from _leave_nodes([place for _, place in waiting.values()])
    return placed


def _leave_nodes(rows: Rows) -> Steps[None]:
    """Replaced jobs, given as they were before, count as cancelled at their former flow nodes."""
    if members := [row for row in rows if row[4] is not None]:
        from rota.store.sqlite.control import tell_nodes  # here: few jobs are of flows

        yield from tell_nodes(members, State.CANCELLED)


def _options(spec: JobSpec) -> dict[str, object]:
    return {
        "queue": spec.queue,
        "priority": spec.priority,
        "headers": spec.headers,
        "state": (State.SCHEDULED if spec.later else State.AVAILABLE).value,
        "max_attempts": spec.max_attempts,
        "timeout": spec.timeout,
        "delay": spec.delay,
        "at": None if spec.at is None else spec.at.timestamp(),
    }


def _batches(values: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(values), BATCH):
        yield values[start : start + BATCH]


def ended(jobs: Sequence[JobId]) -> Steps[None]:
    """Free the unique keys of these jobs, which have ended or are gone.

    One that lost its key when it started finishes without one, and comes back without one.
    """
    if jobs:
        ids = json_list(jobs)
        yield UNIQUE_LOST(jobs=ids)
        yield UNIQUE_FREE(jobs=ids)
        yield UNIQUE_END(jobs=ids)


def came_back(jobs: Sequence[JobId]) -> Steps[None]:
    """Forget the unique keys of these jobs, which wait again, where they were freed at the start."""
    if jobs:
        ids = json_list(jobs)
        yield UNIQUE_LOST(jobs=ids)
        yield UNIQUE_AGAIN(jobs=ids)


def moved_on(rows: Sequence[tuple[Any, ...]]) -> Steps[None]:
    """Either of these, for rows (id, queue, state, keep_until) of jobs that ran."""
    yield from ended([row[0] for row in rows if State(row[2]).finished])
    yield from came_back([row[0] for row in rows if not State(row[2]).finished])
