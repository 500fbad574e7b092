"""Acting on jobs by hand: cancel, retry, delete."""

from collections import Counter
from collections.abc import Mapping, Sequence

from rota.model.job import JobId
from rota.model.states import State
from rota.store.operation import Begin, Rows, Steps, Then, operation
from rota.store.sqlite.counters import BUCKET, QUEUE, Bucket, buckets, moved
from rota.store.sqlite.enqueue_keyed import ended
from rota.store.sqlite.statements import json_list, sql

BEFORE = sql("control/before")
CANCEL_WAITING = sql("control/cancel_waiting")
CANCEL_RUNNING = sql("control/cancel_running")
STATES = sql("control/states")
RETRY = sql("control/retry")
DELETE = sql("control/delete")
NOTE_DELETE = sql("notes/note_delete")
UNIQUE_RETAKE = sql("control/unique_retake")


@operation(Begin.DURABLE, then=Then.WAITERS)
def cancel(
    jobs: Sequence[JobId],
    keep: Mapping[str, float] | None = None,
    *,
    only: State | None = None,
) -> Steps[dict[JobId, State]]:
    """Cancel jobs that have not started, ask running ones to stop; the state of each it found."""
    ids = json_list(jobs)
    before = yield BEFORE(jobs=ids)
    keeps = json_list(list((keep or {}).items()))
    if cancelled := (yield CANCEL_WAITING(jobs=ids, keeps=keeps, only=only and only.value)):
        yield from moved(_left(before, cancelled), Counter(map(BUCKET, cancelled)))
        yield from ended([row[0] for row in cancelled])
    if only not in {None, State.RUNNING}:
        return {JobId(row[0]): State.CANCELLED for row in cancelled}
    yield CANCEL_RUNNING(jobs=ids)
    rows = yield STATES(jobs=ids)
    found = {JobId(job): State(state) for job, state in rows}
    return {job: state for job, state in found.items() if only in {None, state}}


@operation(Begin.DURABLE, then=Then.WORKERS)
def retry(jobs: Sequence[JobId], *, only: State | None = None) -> Steps[list[JobId]]:
    """Make finished and waiting jobs available now, with all their attempts."""
    params = {"jobs": json_list(jobs), "only": only and only.value}
    before = yield BEFORE(jobs=params["jobs"])
    yield UNIQUE_RETAKE(**params)
    if rows := (yield RETRY(**params)):
        yield from moved(_left(before, rows), buckets(map(QUEUE, rows), State.AVAILABLE))
    return sorted(JobId(row[0]) for row in rows)


@operation(Begin.DURABLE, then=Then.WAITERS)
def delete(jobs: Sequence[JobId], *, only: State | None = None) -> Steps[list[JobId]]:
    """Remove jobs that are not running."""
    return (yield from delete_steps(jobs, only))


def delete_steps(jobs: Sequence[JobId], only: State | None = None) -> Steps[list[JobId]]:
    """The steps of `delete`, for clearing too."""
    rows = yield DELETE(jobs=json_list(jobs), only=only and only.value)
    if rows:
        yield NOTE_DELETE(jobs=json_list([row[0] for row in rows]))
        yield from moved(Counter(map(BUCKET, rows)), {})
        yield from ended([row[0] for row in rows])
    return sorted(JobId(row[0]) for row in rows)


def _left(before: Rows, changed: Rows) -> Counter[Bucket]:
    """The buckets in which the changed jobs were before."""
    ids = {row[0] for row in changed}
    return Counter(BUCKET(row) for row in before if row[0] in ids)
