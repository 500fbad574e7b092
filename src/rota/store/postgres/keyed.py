"""Enqueueing jobs that have keys.

Each job may have a lane of its own, hence arrays of lanes beside the args. The ids are taken first,
in the order of the args; what follows may store the jobs in another order.
"""

from collections.abc import Sequence

from rota.job import JobId, JobSpec, Keys
from rota.placed import Placed, Placing
from rota.store.operation import Begin, Operation, Query, Stepped, Steps
from rota.store.postgres.enqueue import CHUNK
from rota.store.postgres.lanes import find_lanes
from rota.store.postgres.statements import sql

KEYED_IDS = sql("keyed_ids")
KEYED_NOW = sql("keyed_now")
KEYED_LATER = sql("keyed_later")


def enqueue_keyed(spec: JobSpec, args: Sequence[str], keys: Keys) -> Operation[list[Placed]]:
    """Store one job per element of `args`; see `rota.store.protocol.Store.enqueue_keyed`."""
    return Stepped("enqueue_keyed", _enqueue(spec, args, keys), Begin.DURABLE)


def _enqueue(spec: JobSpec, args: Sequence[str], keys: Keys) -> Steps[list[Placed]]:
    if not args:
        return []
    lanes = yield from find_lanes(spec, keys, len(args))
    [(ids,)] = yield KEYED_IDS(count=len(args))
    for start in range(0, len(args), CHUNK):
        part = slice(start, start + CHUNK)
        yield _insert(spec, ids[part], lanes[part], args[part])
    return [Placed(JobId(job), Placing.CREATED) for job in ids]


def _insert(spec: JobSpec, jobs: Sequence[int], lanes: Sequence[int], args: Sequence[str]) -> Query:
    params = {
        "jobs": list(jobs),
        "lanes": list(lanes),
        "args": list(args),
        "wake": spec.queue if spec.wake else None,
        "max_attempts": spec.max_attempts,
        "timeout": spec.timeout,
        "task": spec.task,
    }
    if spec.later:
        return Query(KEYED_LATER, {**params, "delay": spec.delay, "at": spec.at})
    return Query(KEYED_NOW, params)
