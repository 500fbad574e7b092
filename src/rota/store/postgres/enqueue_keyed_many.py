"""Many jobs with unique keys at once, in a transaction of Rota's own.

A COPY cannot leave a row out, so there is a look first: which keys are taken. Those that look free
are taken by one COPY, and their jobs appended by another one; jobs that wait and are to be replaced
are locked and changed in one statement. Where another transaction came between the look and such an
attempt, it is taken back to its savepoint, and what is left goes the way of a few jobs, which waits
and looks for each: see `enqueue_keyed`.
"""

from datetime import datetime

from rota.model.enqueued import Placing
from rota.model.job import JobSpec
from rota.model.unique import OnConflict, Unique
from rota.store.operation import Copy, Steps
from rota.store.postgres.copying import key_blocks, keyed_blocks, middle
from rota.store.postgres.failures import AlreadyThere
from rota.store.postgres.statements import sql
from rota.store.postgres.wanted import Found, Wanted, json_keys, numbers

KEYED_HELD = sql("enqueue/keyed_held")
KEYED_PLACE = sql("enqueue/keyed_place")
KEYED_REPLACE_MANY = sql("enqueue/keyed_replace_many")
COPY_KEYS = sql("enqueue/copy_keys")
COPY_LOG_KEYED = sql("enqueue/copy_log_keyed")
COPY_LOG_REPLACED = sql("enqueue/copy_log_replaced")
ATTEMPT_BEGIN = sql("enqueue/attempt_begin")
ATTEMPT_KEEP = sql("enqueue/attempt_keep")
ATTEMPT_UNDO = sql("enqueue/attempt_undo")


def place_many(
    spec: JobSpec, unique: Unique, wanted: Wanted, until: datetime | None, found: Found
) -> Steps[None]:
    """Store jobs with different keys, as far as nobody comes in between.

    What became of these is in `found` then.
    """
    held = found if unique.on_conflict == OnConflict.SKIP else Found(found.jobs)
    for chunk in wanted.chunks():
        [(keys, jobs)] = yield KEYED_HELD(task=spec.task, keys=json_keys(chunk))
        held.add(chunk.having(keys), jobs, Placing.SKIPPED)
    new = held.others(wanted)
    if len(new.jobs) < len(wanted.jobs) and unique.on_conflict == OnConflict.RAISE:
        return
    # All new ones before any is replaced, as everywhere.
    if new.jobs:
        if not (yield from _take(spec, new.by_key(), until)):
            return
        yield from _append(spec, new)
        found.add(new.places, new.jobs, Placing.CREATED)
    for chunk in found.others(wanted).by_key().chunks():
        if not (yield from _replace(spec, chunk, found)):
            return


def _take(spec: JobSpec, wanted: Wanted, until: datetime | None) -> Steps[bool]:
    """Take the keys of these jobs, if all of them are free; whether they were."""
    same = middle((0, until, _while_waiting(spec), "available", spec.task))
    yield ATTEMPT_BEGIN()
    try:
        yield Copy(COPY_KEYS, key_blocks(wanted.jobs, wanted.lanes, same, wanted.unique_keys))
    except AlreadyThere:
        yield ATTEMPT_UNDO()
        return False
    yield ATTEMPT_KEEP()
    return True


def _append(spec: JobSpec, wanted: Wanted) -> Steps[None]:
    """Append these jobs to the log, in the order of their ids."""
    [(segment, _)] = yield KEYED_PLACE(wake=_wake(spec))
    same = _same(spec, segment)
    jobs, lanes, keys, args = wanted.jobs, wanted.lanes, wanted.unique_keys, wanted.args
    yield Copy(COPY_LOG_KEYED, keyed_blocks(jobs, lanes, same, keys, args))


def _replace(spec: JobSpec, wanted: Wanted, found: Found) -> Steps[bool]:
    """Replace these keys' jobs that have not started, if all stay as seen; whether they did."""
    yield ATTEMPT_BEGIN()
    [(places, jobs, entries, segment, changed, _)] = yield KEYED_REPLACE_MANY(
        task=spec.task,
        wake=_wake(spec),
        while_waiting=_while_waiting(spec),
        keys=json_keys(wanted),
        lanes=numbers(wanted.lanes),
    )
    if changed:
        yield ATTEMPT_UNDO()
        return False
    yield ATTEMPT_KEEP()
    wanted = wanted.at([place - 1 for place in places])
    lanes = [f"{lane}\t{entry}" for lane, entry in zip(wanted.lanes, entries, strict=True)]
    same, keys = _same(spec, segment), wanted.unique_keys
    yield Copy(COPY_LOG_REPLACED, keyed_blocks(jobs, lanes, same, keys, wanted.args))
    found.add(wanted.places, jobs, Placing.REPLACED)
    return True


def _same(spec: JobSpec, segment: int) -> str:
    return middle((segment, spec.max_attempts, spec.timeout, spec.task, spec.headers))


def _wake(spec: JobSpec) -> str | None:
    return spec.queue if spec.wake else None


def _while_waiting(spec: JobSpec) -> bool:
    return spec.unique is not None and spec.unique.while_waiting
