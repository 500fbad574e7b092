"""Claiming: the cursor of a lane moves on, and what it passed is leased.

The model is in docs/engine.md. The cursor is `(xid, id, holes)`: every row of the lane at or before
`(xid, id)` has been handed out, except rows of the transactions in `holes`, which were still
running when the cursor passed them. Sequences and transaction ids are handed out in one order and
committed in another; without the holes a job whose transaction commits late would be lost.

A claim first probes without a lock which lanes have something, then takes them one after another
in one transaction until it is full. What can fail: a lane that was probed may be empty by the time
it is locked; the claim then gets less. A paused queue or a dead session gives nothing.

Known weakness: claims of one lane take turns. The turn is short (a few milliseconds for a thousand
jobs), which bounds one lane to some hundred thousand jobs a second.
"""

from collections.abc import Sequence

from rota.errors import LeaseLost
from rota.job import ClaimedJob, JobId, LeaseId, SessionId
from rota.store.operation import Apart, Begin, Steps, operation
from rota.store.postgres.statements import sql

CLAIM_PROBE = sql("claim_probe")
CLAIM_LOCK = sql("claim_lock")
CLAIM_TRY_LOCK = sql("claim_try_lock")
CLAIM = sql("claim")
SESSION_LOCK = sql("session_lock")


@operation(Begin.NOTHING)
def claim(session: SessionId, queues: Sequence[str], limit: int) -> Steps[list[ClaimedJob]]:
    """Lease up to `limit` available jobs; see `rota.store.protocol.Store.claim`."""
    if limit < 1:
        return []
    [(lanes,)] = yield Apart(probe(queues))
    if not lanes:
        return []
    [(jobs,)] = yield Apart(take(session, lanes, limit))
    taken: list[ClaimedJob] = jobs
    return taken


@operation(Begin.READING)
def probe(queues: Sequence[str]) -> Steps[list[int]]:
    """The lanes that have something to claim, in the order of a claim. Writes nothing."""
    rows = yield CLAIM_PROBE(queues=list(queues))
    return [row[0] for row in rows]


@operation(Begin.HASTY)
def take(session: SessionId, lanes: Sequence[int], limit: int) -> Steps[list[ClaimedJob]]:
    """Claim from these lanes until `limit` jobs are leased.

    Raises:
        LeaseLost: The session is not alive any more.
    """
    jobs: list[ClaimedJob] = []
    for number, lane in enumerate(lanes):
        # Only the first lane is waited for: the transaction holds no other one yet.
        locked = yield (CLAIM_TRY_LOCK if number else CLAIM_LOCK)(lane=lane, session=session)
        if not locked and not (yield SESSION_LOCK(session=session)):
            message = f"session {session} was declared dead; its jobs were taken over"
            raise LeaseLost(message)
        for queue, priority in locked:
            rows = yield CLAIM(lane=lane, session=session, size=limit - len(jobs))
            jobs += [
                ClaimedJob(
                    JobId(job),
                    LeaseId(lease),
                    task,
                    args,
                    queue,
                    priority,
                    attempt,
                    max_attempts,
                    timeout,
                    enqueued_at,
                )
                for job, lease, task, args, attempt, max_attempts, timeout, enqueued_at in rows
            ]
        if len(jobs) >= limit:
            break
    return jobs
