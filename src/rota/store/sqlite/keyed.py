"""Storing jobs that have keys."""

from collections.abc import Sequence

from rota.job import JobId, JobSpec, Keys
from rota.placed import Placed, Placing
from rota.states import State
from rota.store.operation import Begin, Steps, operation
from rota.store.sqlite.counters import added
from rota.store.sqlite.enqueue import chunks
from rota.store.sqlite.lanes import find_lanes
from rota.store.sqlite.statements import json_list, sql

ENQUEUE_LANES = sql("enqueue_lanes")


@operation(Begin.DURABLE)
def enqueue_keyed(spec: JobSpec, args: Sequence[str], keys: Keys) -> Steps[list[Placed]]:
    """Store one job per element of `args`; see `rota.store.protocol.Store.enqueue_keyed`."""
    if not args:
        return []
    lanes = yield from find_lanes(spec, keys, len(args))
    state = State.SCHEDULED if spec.later else State.AVAILABLE
    yield from added({(spec.queue, state.value, None): len(args)})
    options = {
        "task": spec.task,
        "queue": spec.queue,
        "priority": spec.priority,
        "state": state.value,
        "max_attempts": spec.max_attempts,
        "timeout": spec.timeout,
        "delay": spec.delay,
        "at": None if spec.at is None else spec.at.timestamp(),
    }
    jobs: list[JobId] = []
    for chunk in chunks(args):
        given = list(zip(chunk, lanes[len(jobs) :], strict=False))
        rows = yield ENQUEUE_LANES(jobs=json_list(given), **options)
        jobs.extend(sorted(JobId(row[0]) for row in rows))
    return [Placed(job, Placing.CREATED) for job in jobs]
