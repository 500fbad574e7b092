"""What people do with jobs: cancel, retry, delete."""

from collections.abc import Sequence

from rota.job import JobId
from rota.states import State
from rota.store.operation import Begin, Steps, operation
from rota.store.sqlite.statements import json_list, sql

CANCEL_WAITING = sql("cancel_waiting")
CANCEL_RUNNING = sql("cancel_running")
STATES = sql("states")
RETRY = sql("retry")
RETRY_DISCARDED = sql("retry_discarded")
DELETE = sql("delete")


@operation(Begin.DURABLE)
def cancel(jobs: Sequence[JobId]) -> Steps[dict[JobId, State]]:
    """Cancel jobs that have not started, ask running ones to stop; the state of each it found."""
    ids = json_list(jobs)
    yield CANCEL_WAITING(jobs=ids)
    yield CANCEL_RUNNING(jobs=ids)
    rows = yield STATES(jobs=ids)
    return {JobId(job): State(state) for job, state in rows}


@operation(Begin.DURABLE)
def retry(jobs: Sequence[JobId]) -> Steps[list[JobId]]:
    """Make finished and waiting jobs available now, with all their attempts."""
    rows = yield RETRY(jobs=json_list(jobs))
    return sorted(JobId(row[0]) for row in rows)


@operation(Begin.DURABLE)
def retry_discarded(queue: str | None, task: str | None) -> Steps[list[JobId]]:
    """Make every discarded job (of a queue, of a task) available again."""
    rows = yield RETRY_DISCARDED(queue=queue, task=task)
    return sorted(JobId(row[0]) for row in rows)


@operation(Begin.DURABLE)
def delete(jobs: Sequence[JobId]) -> Steps[list[JobId]]:
    """Remove jobs that are not running."""
    rows = yield DELETE(jobs=json_list(jobs))
    return sorted(JobId(row[0]) for row in rows)
