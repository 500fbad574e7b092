"""Handing available jobs to a worker under a lease.

One writer at a time means that nothing changes between the statements of a claim. Jobs start by
priority, then by id. A worker of several queues looks at the next jobs of each queue by itself,
which the index gives in order, and merges these short lists; one statement over all queues would
sort their whole backlog.
"""

from collections.abc import Mapping, Sequence
from heapq import merge
from itertools import islice

from rota.errors import LeaseLost
from rota.job import ClaimedJob, SessionId
from rota.store.operation import Begin, Steps, operation
from rota.store.sqlite.counters import claimed
from rota.store.sqlite.rows import claimed_job
from rota.store.sqlite.statements import json_list, sql

SESSION_ALIVE = sql("session_alive")
CLAIM_QUEUES = sql("claim_queues")
CLAIM_NEXT = sql("claim_next")
CLAIM_LEASE = sql("claim_lease")
CLAIM = sql("claim")
UNIQUE_START = sql("unique_start")


@operation(Begin.HASTY)
def claim(
    session: SessionId,
    queues: Sequence[str],
    limit: int,
    *,
    woken: bool = False,  # noqa: ARG001 - looking costs nothing here
    most: Mapping[str, int] | None = None,
) -> Steps[list[ClaimedJob]]:
    """Lease up to `limit` available jobs of queues that are not paused, in their order."""
    if not (yield SESSION_ALIVE(session=session)):
        message = f"session {session} has ended or was rescued; open a new one"
        raise LeaseLost(message)
    if limit < 1:
        return []
    nexts = []
    for (queue,) in (yield CLAIM_QUEUES(queues=json_list([*dict.fromkeys(queues)]))):
        size = limit if most is None else min(limit, most.get(queue, limit))
        nexts.append((yield CLAIM_NEXT(queue=queue, size=size)))
    jobs = [job for _, job in islice(merge(*nexts), limit)]
    if not jobs:
        return []
    [(lease,)] = yield CLAIM_LEASE()
    rows = yield CLAIM(jobs=json_list(jobs), session=session, lease=lease)
    taken = [claimed_job(row) for row in rows]
    yield from claimed(job.queue for job in taken)
    if keyed := [job.id for job in taken if job.unique_key]:
        yield UNIQUE_START(jobs=json_list(keyed))
    return sorted(taken, key=lambda job: (job.priority, job.id))
