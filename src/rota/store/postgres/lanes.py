"""Lanes: the plain one of a queue and priority, and those of keys.

Jobs of one queue and priority whose limits or fair shares have different keys lie in different
lanes. Each has a log order and a cursor of its own, so a job that waits for its limit is a row past
its lane's cursor: it costs nothing and delays no other job.

The first producer of a lane makes it apart, in a transaction of Rota's own that commits at once.
Made in the caller's transaction it would stop every other first producer of that lane until the
caller commits. Only where that transaction has made lanes itself, by `rota.enqueue()` from SQL, are
further ones made in it: another connection would wait for it for ever.
A limit's numbers come with the jobs; where they differ from those that are known, they replace
them.

Known weakness: two releases of an application that say different numbers for the same key replace
each other's for as long as both of them enqueue.
"""

from collections.abc import Sequence
from typing import TypeVar

from rota.model.job import JobSpec, Keys
from rota.store.operation import Apart, Begin, Operation, Steps, operation, surroundings
from rota.store.postgres.statements import sql

ENSURE_QUEUE = sql("enqueue/ensure_queue")
ENSURE_LANE = sql("enqueue/ensure_lane")
LANE_LOCK = sql("enqueue/lane_lock")
CURSOR_BEGIN = sql("enqueue/cursor_begin")
LANES_HERE = sql("enqueue/lanes_here")
LANES_STAY_HERE = sql("enqueue/lanes_stay_here")
LANES_FIND = sql("enqueue/lanes_find")
LANES_ENSURE = sql("enqueue/lanes_ensure")
LIMITS_ENSURE = sql("enqueue/limits_ensure")

T = TypeVar("T")

Pair = tuple[str | None, str | None]
"""The limit's key and the fair key of a job."""


def apart(queue: str, priority: int, making: Operation[T]) -> Steps[T]:
    """Make lanes apart, or in this transaction if it has made some itself."""
    if (yield from surroundings()).inside:
        [(here,)] = yield LANES_HERE(queue=queue, priority=priority)
        if here:
            yield LANES_STAY_HERE()
            return (yield from making.steps)
    [(made,)] = yield Apart(making)
    answer: T = made
    return answer


@operation(Begin.DURABLE)
def ensure_lane(queue: str, priority: int) -> Steps[int]:
    """Make a lane if it is not there, with a cursor at its beginning; its number."""
    params = {"queue": queue, "priority": priority}
    yield ENSURE_QUEUE(queue=queue)
    yield ENSURE_LANE(**params)
    [(lane,)] = yield LANE_LOCK(**params)
    yield CURSOR_BEGIN(lane=lane)
    return int(lane)


def find_lanes(spec: JobSpec, keys: Keys, count: int) -> Steps[list[int]]:
    """The lane of each of `count` jobs with these keys; those that are missing are made apart."""
    nothing: list[str | None] = [None] * count
    pairs = list(zip(keys.limit or nothing, keys.fair or nothing, strict=True))
    distinct = list(dict.fromkeys(pairs))
    rows = yield LANES_FIND(**_params(spec, distinct), exact=True)
    lanes = {pair: row[0] for pair, row in zip(distinct, rows, strict=True)}
    if missing := [pair for pair in distinct if lanes[pair] is None]:
        made = yield from apart(spec.queue, spec.priority, ensure_lanes(spec, missing))
        lanes.update(zip(missing, made, strict=True))
    return [lanes[pair] for pair in pairs]


@operation(Begin.DURABLE)
def ensure_lanes(spec: JobSpec, pairs: Sequence[Pair]) -> Steps[list[int]]:
    """Make the lanes of these keys; their numbers. Without a cursor they are at their beginning.

    The plain lane of the same queue and priority is made as well: it stands for all of them.
    """
    params = _params(spec, pairs)
    where = {"queue": spec.queue, "priority": spec.priority}
    yield ENSURE_QUEUE(queue=spec.queue)
    yield ENSURE_LANE(**where)
    yield LIMITS_ENSURE(**params)
    yield LANES_ENSURE(**params)
    [(plain,)] = yield LANE_LOCK(**where)
    yield CURSOR_BEGIN(lane=plain)
    return [row[0] for row in (yield LANES_FIND(**params, exact=False))]


def _params(spec: JobSpec, pairs: Sequence[Pair]) -> dict[str, object]:
    limit = spec.limit
    count, seconds = limit.rate or (None, None) if limit is not None else (None, None)
    return {
        "queue": spec.queue,
        "priority": spec.priority,
        "limits": [pair[0] for pair in pairs],
        "fairs": [pair[1] for pair in pairs],
        "running": limit.running if limit is not None else None,
        "rate_count": count,
        "rate_seconds": seconds,
    }
