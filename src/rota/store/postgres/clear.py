"""Clearing a queue: deleting its jobs in batches, each in a short transaction of its own.

A batch is found without a lock, by the jobs' ids from where the last one ended, and then deleted as
`delete` does, where the jobs have not changed. The lanes of available jobs are locked for that
moment; between two batches workers claim.
"""

from rota.model.job import Cleared, JobId
from rota.model.states import FINISHED, State
from rota.store.operation import Begin, Steps, operation
from rota.store.postgres.control import (
    AVAILABLE_DELETE,
    DELETE_FINISHED,
    DELETE_TIMER,
    KEY_LOCK,
    NOTE_DELETE,
    free,
    lock_lanes,
)
from rota.store.postgres.listener import tell_if_waited
from rota.store.postgres.statements import sql

LAST_JOB = sql("control/last_job")
CLEAR_TIMER = sql("control/clear_timer")
CLEAR_FINISHED = sql("control/clear_finished")
CLEAR_AVAILABLE = sql("control/clear_available")

WAITING = frozenset({State.SCHEDULED, State.RETRYABLE})


@operation(Begin.READING)
def last_job() -> Steps[JobId]:
    """The id that was given last; 0 before the first one."""
    [(job,)] = yield LAST_JOB()
    return JobId(job)


@operation(Begin.DURABLE)
def clear(queue: str, state: State, *, after: JobId, until: JobId, limit: int) -> Steps[Cleared]:
    """Delete the next jobs of a queue in a state; see `rota.store.protocol.Store.clear`."""
    params = {"queue": queue, "after": after, "until": until, "size": limit}
    if state in WAITING:
        found = yield CLEAR_TIMER(**params, state=state.value)
        yield KEY_LOCK(jobs=[row[0] for row in found])
        gone = yield DELETE_TIMER(jobs=[row[0] for row in found], only=state.value)
        yield from free(gone)
    elif state in FINISHED:
        found = yield CLEAR_FINISHED(**params, state=state.value)
        gone = yield DELETE_FINISHED(jobs=[row[0] for row in found], only=state.value)
    elif state is State.AVAILABLE:
        found = yield CLEAR_AVAILABLE(**params)
        jobs = [JobId(row[0]) for row in found]
        yield KEY_LOCK(jobs=jobs)
        lanes = yield from lock_lanes(jobs)
        gone = yield AVAILABLE_DELETE(jobs=jobs, lanes=lanes)
        yield from free(gone)
    else:
        # Running jobs belong to their workers.
        return Cleared(0, None)
    if gone:
        yield NOTE_DELETE(jobs=[row[0] for row in gone])
        yield from tell_if_waited([JobId(row[0]) for row in gone])
    last = JobId(found[-1][0]) if len(found) == limit else None
    return Cleared(len(gone), last)
