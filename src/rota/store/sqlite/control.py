"""What people do with jobs: cancel, retry, delete."""

from collections import Counter
from collections.abc import Mapping, Sequence

from rota.model.job import JobId
from rota.model.states import State
from rota.store.operation import Begin, Rows, Steps, Then, operation
from rota.store.sqlite.counters import PLACE, QUEUE, Place, moved, places
from rota.store.sqlite.enqueue_keyed import ended
from rota.store.sqlite.statements import json_list, sql

BEFORE = sql("control/before")
CANCEL_WAITING = sql("control/cancel_waiting")
CANCEL_RUNNING = sql("control/cancel_running")
STATES = sql("control/states")
RETRY = sql("control/retry")
DISCARDED = sql("control/discarded")
DELETE = sql("control/delete")
NOTE_DELETE = sql("notes/note_delete")
UNIQUE_RETAKE = sql("control/unique_retake")


@operation(Begin.DURABLE, then=Then.WAITERS)
def cancel(
    jobs: Sequence[JobId], keep: Mapping[str, float] | None = None
) -> Steps[dict[JobId, State]]:
    """Cancel jobs that have not started, ask running ones to stop; the state of each it found."""
    ids = json_list(jobs)
    before = yield BEFORE(jobs=ids)
    if cancelled := (yield CANCEL_WAITING(jobs=ids, keeps=json_list(list((keep or {}).items())))):
        yield from moved(_left(before, cancelled), Counter(map(PLACE, cancelled)))
        yield from ended([row[0] for row in cancelled])
    yield CANCEL_RUNNING(jobs=ids)
    rows = yield STATES(jobs=ids)
    return {JobId(job): State(state) for job, state in rows}


@operation(Begin.DURABLE, then=Then.WORKERS)
def retry(jobs: Sequence[JobId]) -> Steps[list[JobId]]:
    """Make finished and waiting jobs available now, with all their attempts."""
    return (yield from _retry(json_list(jobs)))


def _retry(ids: str) -> Steps[list[JobId]]:
    before = yield BEFORE(jobs=ids)
    yield UNIQUE_RETAKE(jobs=ids)
    if rows := (yield RETRY(jobs=ids)):
        yield from moved(_left(before, rows), places(map(QUEUE, rows), State.AVAILABLE))
    return sorted(JobId(row[0]) for row in rows)


@operation(Begin.DURABLE, then=Then.WORKERS)
def retry_discarded(queue: str | None, task: str | None) -> Steps[list[JobId]]:
    """Make every discarded job (of a queue, of a task) available again."""
    found = yield DISCARDED(queue=queue, task=task)
    return (yield from _retry(json_list([row[0] for row in found])))


@operation(Begin.DURABLE, then=Then.WAITERS)
def delete(jobs: Sequence[JobId]) -> Steps[list[JobId]]:
    """Remove jobs that are not running."""
    return (yield from delete_steps(jobs))


def delete_steps(jobs: Sequence[JobId]) -> Steps[list[JobId]]:
    """The steps of `delete`, for clearing too."""
    rows = yield DELETE(jobs=json_list(jobs))
    if rows:
        yield NOTE_DELETE(jobs=json_list([row[0] for row in rows]))
        yield from moved(Counter(map(PLACE, rows)), {})
        yield from ended([row[0] for row in rows])
    return sorted(JobId(row[0]) for row in rows)


def _left(before: Rows, changed: Rows) -> Counter[Place]:
    """Where those jobs were that something was done to."""
    ids = {row[0] for row in changed}
    return Counter(PLACE(row) for row in before if row[0] in ids)
