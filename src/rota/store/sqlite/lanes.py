"""The lanes of keys: jobs with a limit or a fair share belong to one.

They are made in the transaction that enqueues: with one writer at a time that keeps no
producer waiting longer than any other write.
"""

from rota.model.job import JobSpec, Keys
from rota.store.operation import Steps
from rota.store.sqlite.statements import json_list, sql

LANES_FIND = sql("enqueue/lanes_find")
LIMITS_ENSURE = sql("enqueue/limits_ensure")
LANES_ENSURE = sql("enqueue/lanes_ensure")


def find_lanes(spec: JobSpec, keys: Keys, count: int) -> Steps[list[int | None]]:
    """The lane of each of `count` jobs with these keys; those that are missing are made."""
    if keys.limit is None and keys.fair is None:
        return [None] * count
    nothing: list[str | None] = [None] * count
    pairs = list(zip(keys.limit or nothing, keys.fair or nothing, strict=True))
    distinct = list(dict.fromkeys(pairs))
    limit = spec.limit
    number, seconds = limit.rate or (None, None) if limit is not None else (None, None)
    numbers = {
        "running": limit.running if limit is not None else None,
        "rate_count": number,
        "rate_seconds": seconds,
    }
    where = {"queue": spec.queue, "priority": spec.priority, "pairs": json_list(distinct)}
    rows = yield LANES_FIND(**where, **numbers)
    if any(row[0] is None for row in rows):
        yield LIMITS_ENSURE(pairs=where["pairs"], **numbers)
        yield LANES_ENSURE(**where)
        rows = yield LANES_FIND(**where, **numbers)
    lanes = {pair: row[0] for pair, row in zip(distinct, rows, strict=True)}
    return [lanes[pair] for pair in pairs]
