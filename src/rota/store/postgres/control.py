"""Acting on jobs by hand: cancel, retry, delete, pause.

These are off the normal path and lock accordingly: jobs that lie in the log are changed under
their lanes' locks, in short transactions of Rota's own. A job may move on between two statements
(be staged, claimed, settled), so `cancel` looks again until every job has finished or is running.
"""

from collections.abc import Mapping, Sequence

from rota.model.job import JobId
from rota.model.states import State
from rota.store.operation import Begin, Rows, Steps, operation
from rota.store.postgres.jobs import GET
from rota.store.postgres.lanes import ENSURE_QUEUE
from rota.store.postgres.listener import tell_if_waited
from rota.store.postgres.settle_write import came_back, cancelled_by_hand, keys_end
from rota.store.postgres.statements import sql

CANCEL_TIMER = sql("control/cancel_timer")
CANCEL_ASK = sql("control/cancel_ask")
WAITING_LANES_LOCK = sql("control/waiting_lanes_lock")
KEYED_TURN = sql("rings/keyed_turn")
AVAILABLE_CANCEL = sql("control/available_cancel")
AVAILABLE_DELETE = sql("control/available_delete")
RETRY_TIMER = sql("control/retry_timer")
RETRY_FINISHED = sql("control/retry_finished")
TOUCH = sql("flows/touch")
RUNS_AGAIN = sql("flows/runs_again")
DELETE_TIMER = sql("control/delete_timer")
DELETE_FINISHED = sql("control/delete_finished")
NOTE_BACK = sql("notes/note_back")
NOTE_DELETE = sql("notes/note_delete")
MEMORY_BACK = sql("memory/memory_back")
MEMORY_DELETE = sql("memory/memory_delete")
KEY_LOCK = sql("control/key_lock")
KEY_AVAILABLE = sql("control/key_available")
QUEUE_PAUSE = sql("queues/queue_pause")
WAKE = sql("wake/wake")

LOOKS = 5
"""How often `cancel` looks for a job that keeps moving: at most one move between two looks."""


@operation(Begin.DURABLE)
def cancel(
    jobs: Sequence[JobId],
    keep: Mapping[str, float] | None = None,
    *,
    only: State | None = None,
) -> Steps[dict[JobId, State]]:
    """Cancel jobs that have not started, ask running ones to stop."""
    if only is None:
        states = yield from cancel_steps(jobs, keep or {})
    else:
        states = yield from _cancel_only(jobs, keep or {}, only)
    if State.RUNNING in states.values():
        yield WAKE()
    return states


def cancel_steps(jobs: Sequence[JobId], keep: Mapping[str, float]) -> Steps[dict[JobId, State]]:
    """The steps of `cancel`, for housekeeping too."""
    kept = {"queues": list(keep), "keeps": list(keep.values())}
    states: dict[JobId, State] = {}
    moving = list(jobs)
    yield KEY_LOCK(jobs=moving)
    for _ in range(LOOKS):
        yield from free((yield CANCEL_TIMER(jobs=moving, **kept, only=None)))
        lanes = yield from lock_lanes(moving)
        yield from free((yield AVAILABLE_CANCEL(jobs=moving, lanes=lanes, **kept)))
        yield CANCEL_ASK(jobs=moving)
        rows = yield GET(jobs=moving)
        states.update({JobId(row[0]): State(row[5]) for row in rows})
        settled = {job for job, state in states.items() if state.finished}
        settled |= {job for job, state in states.items() if state is State.RUNNING}
        moving = [job for job in states if job not in settled]
        if not moving:
            break
    yield from tell_if_waited(job for job, state in states.items() if state.finished)
    return states


def _cancel_only(
    jobs: Sequence[JobId], keep: Mapping[str, float], only: State
) -> Steps[dict[JobId, State]]:
    """Cancel those that are in one state; what has moved on is left alone."""
    if only is State.RUNNING:
        yield CANCEL_ASK(jobs=list(jobs))
        found = yield GET(jobs=list(jobs))
        return {JobId(row[0]): State.RUNNING for row in found if row[5] == State.RUNNING}
    kept = {"queues": list(keep), "keeps": list(keep.values())}
    yield KEY_LOCK(jobs=list(jobs))
    rows = list((yield CANCEL_TIMER(jobs=list(jobs), **kept, only=only.value)))
    if only is State.AVAILABLE:
        lanes = yield from lock_lanes(jobs)
        rows += yield AVAILABLE_CANCEL(jobs=list(jobs), lanes=lanes, **kept)
    yield from free(rows)
    yield from tell_if_waited([JobId(row[0]) for row in rows])
    return {JobId(row[0]): State.CANCELLED for row in rows}


def lock_lanes(jobs: Sequence[JobId]) -> Steps[list[int]]:
    """Keep claims from the lanes in which these jobs lie."""
    yield KEYED_TURN()
    return [row[0] for row in (yield WAITING_LANES_LOCK(jobs=list(jobs)))]


@operation(Begin.DURABLE)
def retry(
    jobs: Sequence[JobId], *, only: State | None = None, alone: bool = False
) -> Steps[list[JobId]]:
    """Make finished and waiting jobs available now, with all their attempts."""
    back = yield from retry_steps(jobs, only, alone=alone)
    if back:
        yield WAKE()
    return back


def retry_steps(
    jobs: Sequence[JobId], only: State | None = None, *, alone: bool
) -> Steps[list[JobId]]:
    """The steps of `retry`, for flows too."""
    params = {"jobs": list(jobs), "only": only and only.value}
    yield KEY_LOCK(jobs=list(jobs))
    # Before anything is read of the nodes that these jobs count for. No node ends, and no flow is
    # retried, from here on.
    touched = [node for (node,) in (yield TOUCH(jobs=list(jobs)))]
    kept: list[int] = []
    if touched and not alone:
        kept = [node for (node,) in (yield RUNS_AGAIN(nodes=touched))]
    waited = yield RETRY_TIMER(**params)
    if unique := [(job, key) for job, key in waited if key is not None]:
        yield KEY_AVAILABLE(jobs=[job for job, _ in unique], keys=[key for _, key in unique])
    finished = yield RETRY_FINISHED(**params, touched=touched, kept=kept)
    yield from came_back((state, node) for _, node, state in finished if node is not None)
    back = [JobId(row[0]) for row in (*waited, *finished)]
    if back:
        yield NOTE_BACK(jobs=back)
        yield MEMORY_BACK(jobs=back)
    return back


@operation(Begin.DURABLE)
def delete(jobs: Sequence[JobId], *, only: State | None = None) -> Steps[list[JobId]]:
    """Remove jobs that are not running."""
    params = {"jobs": list(jobs), "only": only and only.value}
    yield KEY_LOCK(jobs=list(jobs))
    waiting = list((yield DELETE_TIMER(**params)))
    if only in {None, State.AVAILABLE}:
        lanes = yield from lock_lanes(jobs)
        waiting += yield AVAILABLE_DELETE(jobs=list(jobs), lanes=lanes)
    yield from free(waiting)
    finished = yield DELETE_FINISHED(**params)
    gone = [JobId(row[0]) for row in [*waiting, *finished]]
    if gone:
        yield NOTE_DELETE(jobs=gone)
        yield MEMORY_DELETE(jobs=gone)
        yield from tell_if_waited(gone)
    return gone


def free(rows: Rows) -> Steps[None]:
    """Free the unique keys of jobs that were removed or cancelled, and tell the nodes of flows.

    Given as rows of an id, a key or null, and a node or null.
    """
    yield from keys_end([(JobId(job), key) for job, key, _ in rows if key is not None])
    yield from cancelled_by_hand(node for _, _, node in rows)


@operation(Begin.DURABLE)
def pause(queue: str) -> Steps[bool]:
    """Stop claims from a queue; false if it was already paused."""
    yield ENSURE_QUEUE(queue=queue)
    return bool((yield QUEUE_PAUSE(queue=queue, paused=True)))


@operation(Begin.DURABLE)
def resume(queue: str) -> Steps[bool]:
    """Allow claims from a queue again; false if it was not paused."""
    rows = yield QUEUE_PAUSE(queue=queue, paused=False)
    yield WAKE()
    return bool(rows)
