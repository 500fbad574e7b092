"""Claiming: the cursor of a lane moves on, and what it passed is leased.

The model is in docs/engine.md. The cursor is `(xid, id, holes)`: every row of the lane at or before
`(xid, id)` has been handed out, except rows of the transactions in `holes`, which were still
running when the cursor passed them. Sequences and transaction ids are handed out in one order and
committed in another; without the holes a job whose transaction commits late would be lost.

A claim first probes without a lock which lanes have something, then takes them one after another
in one transaction until it is full. A claim that a producer has just woken goes to the lanes at
once, if they are few, and probes only if it finds nothing there. What can fail: a lane that was probed may be empty by the time
it is locked; the claim then gets less. A paused queue or a dead session gives nothing.

Known weakness: claims of one lane take turns. The turn is short (a few milliseconds for a thousand
jobs), which bounds one lane to some hundred thousand jobs a second.
"""

from collections.abc import Sequence

from rota.errors import LeaseLost
from rota.job import ClaimedJob, SessionId
from rota.store.operation import Apart, Begin, Operation, Stepped, Steps, operation
from rota.store.postgres.statements import sql

CLAIM_PROBE = sql("claim_probe")
CLAIM_LOCK = sql("claim_lock")
CLAIM_TRY_LOCK = sql("claim_try_lock")
CLAIM = sql("claim")
SESSION_LOCK = sql("session_lock")


FEW_LANES = 4
"""Of queues with no more lanes than this a claim that was woken does without the probe."""


class Claims:
    """Claims jobs, and remembers the lanes of the queues that it last looked at."""

    def __init__(self) -> None:
        self._lanes: dict[frozenset[str], list[int]] = {}

    def claim(
        self, session: SessionId, queues: Sequence[str], limit: int, *, woken: bool = False
    ) -> Operation[list[ClaimedJob]]:
        """Lease up to `limit` available jobs; see `rota.store.protocol.Store.claim`."""
        return Stepped("claim", self._claim(session, queues, limit, woken=woken), Begin.NOTHING)

    def _claim(
        self, session: SessionId, queues: Sequence[str], limit: int, *, woken: bool
    ) -> Steps[list[ClaimedJob]]:
        if limit < 1:
            return []
        jobs: list[ClaimedJob] = []
        known = self._lanes.get(frozenset(queues))
        if woken and known:
            [(jobs,)] = yield Apart(take(session, known, limit))
        if not jobs:
            [(lanes,)] = yield Apart(probe(queues))
            every = [lane for lane, _ in lanes]
            self._lanes = {frozenset(queues): every if len(every) <= FEW_LANES else []}
            if ready := [lane for lane, ready in lanes if ready]:
                [(jobs,)] = yield Apart(take(session, ready, limit))
        return jobs


@operation(Begin.READING)
def probe(queues: Sequence[str]) -> Steps[list[tuple[int, bool]]]:
    """The lanes of these queues in the order of a claim, and whether they have something."""
    rows = yield CLAIM_PROBE(queues=list(queues))
    return [(lane, ready) for lane, ready in rows]


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
                    job,
                    lease,
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
