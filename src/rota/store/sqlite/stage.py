"""Due jobs become available."""

from collections import Counter

from rota.model.look import Staging
from rota.model.states import State
from rota.store.operation import Begin, Steps, operation
from rota.store.sqlite.counters import QUEUE, Bucket, buckets, moved
from rota.store.sqlite.statements import json_list, sql

STAGE_DUE = sql("stage/stage_due")
STAGE = sql("stage/stage")
STAGE_NEXT = sql("stage/stage_next")


@operation(Begin.NOTHING)
def due() -> Steps[float | None]:
    """In how many seconds the next job is due; `None` if none waits for its time."""
    [(seconds,)] = yield STAGE_NEXT()
    return None if seconds is None else max(seconds, 0.0)


@operation(Begin.HASTY)
def stage(limit: int) -> Steps[Staging]:
    """Make due jobs available, in the order of their time, at most `limit` of them."""
    due = yield STAGE_DUE(size=max(limit, 0))
    if due:
        yield STAGE(jobs=json_list([row[0] for row in due]))
        left: Counter[Bucket] = Counter((queue, state, None) for _, queue, state in due)
        yield from moved(left, buckets(map(QUEUE, due), State.AVAILABLE))
    [(seconds,)] = yield STAGE_NEXT()
    return Staging(len(due), None if seconds is None else max(seconds, 0.0))
