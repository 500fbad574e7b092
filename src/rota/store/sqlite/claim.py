"""Handing available jobs to a worker under a lease.

One writer at a time means that nothing changes between the statements of a claim. Jobs start by
priority, then by id. A worker of several queues looks at the next jobs of each queue by itself,
which the index gives in order, and merges these short lists; one statement over all queues would
sort their whole backlog. Jobs with a limit or a fair share lie in lanes; see `claim_lanes.py`.
"""

from collections.abc import Mapping, Sequence
from heapq import merge
from itertools import islice, zip_longest

from rota.errors import LeaseLost
from rota.job import ClaimedJob, SessionId
from rota.store.operation import Begin, Steps, operation
from rota.store.sqlite.claim_lanes import Candidate, candidates, note
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
    keyed = []
    for queue, has_lanes in (yield CLAIM_QUEUES(queues=json_list([*dict.fromkeys(queues)]))):
        size = limit if most is None else min(limit, most.get(queue, limit))
        nexts.append((yield CLAIM_NEXT(queue=queue, size=size)))
        if has_lanes:
            keyed.append(queue)
    plain = islice(merge(*nexts), limit)
    if keyed:
        return (yield from _with_keyed(session, list(plain), keyed, limit))
    jobs = [job for _, job in plain]
    if not jobs:
        return []
    [(lease,)] = yield CLAIM_LEASE()
    rows = yield CLAIM(jobs=json_list(jobs), session=session, lease=lease)
    taken = [claimed_job(row) for row in rows]
    yield from claimed(job.queue for job in taken)
    if unique := [job.id for job in taken if job.unique_key]:
        yield UNIQUE_START(jobs=json_list(unique))
    return sorted(taken, key=lambda job: (job.priority, job.id))


def _with_keyed(
    session: SessionId, plain: Sequence[tuple[int, int]], queues: Sequence[str], limit: int
) -> Steps[list[ClaimedJob]]:
    """Claim from lanes, too: of one priority, jobs with a lane and those without take turns."""
    found = yield from candidates(queues, limit)
    order: list[int] = []
    lanes: dict[int, Candidate] = {}
    for priority in sorted({*found, *(priority for priority, _ in plain)}):
        keyed = found.get(priority, [])
        others = [job for one, job in plain if one == priority]
        for one, other in zip_longest(keyed, others):
            if other is not None:
                order.append(other)
            if one is not None:
                lanes[one.job] = one
                order.append(one.job)
    order = order[:limit]
    if not order:
        return []
    [(lease,)] = yield CLAIM_LEASE()
    rows = yield CLAIM(jobs=json_list(order), session=session, lease=lease)
    taken = {row[0]: claimed_job(row) for row in rows}
    yield from claimed(job.queue for job in taken.values())
    if unique := [job.id for job in taken.values() if job.unique_key]:
        yield UNIQUE_START(jobs=json_list(unique))
    if served := [lanes[job] for job in order if job in lanes]:
        yield from note(served, lease)
    return [
        taken[job]._replace(limited=bool(lanes[job].limit), filled=lanes[job].filled)
        if job in lanes
        else taken[job]
        for job in order
    ]
