"""Clearing a queue: deleting its jobs in batches, each in a short transaction of its own."""

from rota.model.job import Cleared, JobId
from rota.model.states import State
from rota.store.operation import Begin, Steps, operation
from rota.store.sqlite.control import delete_steps
from rota.store.sqlite.statements import sql

LAST_JOB = sql("control/last_job")
CLEAR_NEXT = sql("control/clear_next")


@operation(Begin.NOTHING)
def last_job() -> Steps[JobId]:
    """The id that was given last; 0 before the first one."""
    rows = yield LAST_JOB()
    return JobId(rows[0][0] if rows else 0)


@operation(Begin.DURABLE)
def clear(queue: str, state: State, *, after: JobId, until: JobId, limit: int) -> Steps[Cleared]:
    """Delete the next jobs of a queue in a state; see `rota.store.protocol.Store.clear`."""
    rows = yield CLEAR_NEXT(queue=queue, state=state.value, after=after, until=until, size=limit)
    found = [JobId(row[0]) for row in rows]
    gone = yield from delete_steps(found)
    return Cleared(len(gone), found[-1] if len(found) == limit else None)
