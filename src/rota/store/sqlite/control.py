"""Acting on jobs by hand: cancel, retry, delete."""

from collections import Counter
from collections.abc import Mapping, Sequence

from rota.model.headers import NodeId
from rota.model.job import JobId
from rota.model.states import State
from rota.store.membership import PLACES, listed
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
MEMORY_DELETE = sql("memory/memory_delete")
UNIQUE_RETAKE = sql("control/unique_retake")
RUNS_AGAIN = sql("flows/runs_again")


@operation(Begin.DURABLE, then=Then.WAITERS)
def cancel(
    jobs: Sequence[JobId],
    keep: Mapping[str, float] | None = None,
    *,
    only: State | None = None,
) -> Steps[dict[JobId, State]]:
    """Cancel jobs that have not started, ask running ones to stop; the state of each it found."""
    return (yield from cancel_steps(jobs, keep or {}, only))


def cancel_steps(
    jobs: Sequence[JobId], keep: Mapping[str, float], only: State | None
) -> Steps[dict[JobId, State]]:
    """The steps of `cancel`, for flows too."""
    ids = json_list(jobs)
    before = yield BEFORE(jobs=ids)
    keeps = json_list(list(keep.items()))
    if cancelled := (yield CANCEL_WAITING(jobs=ids, keeps=keeps, only=only and only.value)):
        yield from moved(_left(before, cancelled), Counter(map(BUCKET, cancelled)))
        yield from ended([row[0] for row in cancelled])
        yield from tell_nodes(cancelled)
    if only not in {None, State.RUNNING}:
        return {JobId(row[0]): State.CANCELLED for row in cancelled}
    yield CANCEL_RUNNING(jobs=ids)
    rows = yield STATES(jobs=ids)
    found = {JobId(job): State(state) for job, state in rows}
    return {job: state for job, state in found.items() if only in {None, state}}


@operation(Begin.DURABLE, then=Then.WORKERS)
def retry(
    jobs: Sequence[JobId], *, only: State | None = None, alone: bool = False
) -> Steps[list[JobId]]:
    """Make finished and waiting jobs available now, with all their attempts."""
    return (yield from retry_steps(jobs, only, alone=alone))


def retry_steps(
    jobs: Sequence[JobId], only: State | None = None, *, alone: bool
) -> Steps[list[JobId]]:
    """The steps of `retry`, for flows too."""
    before = yield BEFORE(jobs=json_list(jobs))
    if not alone:
        before = yield from _without_kept(before)
    params = {"jobs": json_list([row[0] for row in before]), "only": only and only.value}
    yield UNIQUE_RETAKE(**params)
    if rows := (yield RETRY(**params)):
        yield from moved(_left(before, rows), buckets(map(QUEUE, rows), State.AVAILABLE))
        back = {row[0] for row in rows}
        members = [row for row in before if row[0] in back and row[4] is not None]
        if members := [row for row in members if State(row[2]).finished]:
            from rota.store.sqlite.flows import came_back  # here: few jobs are of flows

            yield from came_back(members)
    return sorted(JobId(row[0]) for row in rows)


@operation(Begin.DURABLE, then=Then.WAITERS)
def delete(jobs: Sequence[JobId], *, only: State | None = None) -> Steps[list[JobId]]:
    """Remove jobs that are not running."""
    return (yield from delete_steps(jobs, only))


def delete_steps(jobs: Sequence[JobId], only: State | None = None) -> Steps[list[JobId]]:
    """The steps of `delete`, for clearing too."""
    rows = yield DELETE(jobs=json_list(jobs), only=only and only.value)
    if rows:
        gone = json_list([row[0] for row in rows])
        yield NOTE_DELETE(jobs=gone)
        yield MEMORY_DELETE(jobs=gone)
        yield from moved(Counter(map(BUCKET, rows)), {})
        yield from ended([row[0] for row in rows])
        # What had not ended ends so.
        yield from tell_nodes([row for row in rows if not State(row[2]).finished], State.CANCELLED)
    return sorted(JobId(row[0]) for row in rows)


def tell_nodes(rows: Rows, state: State | None = None) -> Steps[None]:
    """Tell flows' nodes of ended jobs, given as rows of id, queue, state, `keep_until` and node.

    Those count that have ended; or all, in this state.
    """
    counts: dict[NodeId, list[int]] = {}
    for _, _, found, _, node in rows:
        place = PLACES.get(state or State(found))
        if node is not None and place is not None:
            counts.setdefault(NodeId(int(node)), [0, 0, 0])[place] += 1
    if counts:
        from rota.store.sqlite.flows import arrived  # here: few jobs are of flows

        yield from arrived(listed(counts))


def _without_kept(rows: Rows) -> Steps[Rows]:
    """These jobs without those that a retry of their flow runs again.

    They are rows of id, queue, state, `keep_until` and node.
    """
    ended = [
        row for row in rows if row[4] is not None and row[2] in {State.DISCARDED, State.CANCELLED}
    ]
    if not ended:
        return rows
    again = {
        node for (node,) in (yield RUNS_AGAIN(nodes=json_list([int(row[4]) for row in ended])))
    }
    kept = {row[0] for row in ended if int(row[4]) in again}
    return [row for row in rows if row[0] not in kept]


def _left(before: Rows, changed: Rows) -> Counter[Bucket]:
    """The buckets in which the changed jobs were before."""
    ids = {row[0] for row in changed}
    return Counter(BUCKET(row) for row in before if row[0] in ids)
