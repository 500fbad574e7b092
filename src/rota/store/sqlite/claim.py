"""Handing available jobs to a worker under a lease.

One writer at a time means that nothing changes between the statements of a claim. Jobs start by
priority, then by id. A worker of several queues looks at the next jobs of each queue by itself,
which the index gives in order, and merges these short lists; one statement over all queues would
sort their whole backlog. Jobs with a limit or a fair share lie in key lanes; see `claim_lanes.py`.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice, zip_longest

from msgspec.structs import replace

from rota.model.job import ClaimedJob, SessionId
from rota.store.operation import Apart, Begin, Rows, Steps, operation
from rota.store.sqlite.claim_lanes import Candidate, candidates, note, open_lanes
from rota.store.sqlite.counters import claimed
from rota.store.sqlite.idle import in_use, lanes_in_use
from rota.store.sqlite.rows import claimed_jobs
from rota.store.sqlite.sessions import lost
from rota.store.sqlite.statements import json_list, numbers, sql
from rota.store.sqlite.tasks import known

SESSION_ALIVE = sql("claim/session_alive")
CLAIM_QUEUES = sql("claim/claim_queues")
CLAIM_NEXT = sql("claim/claim_next")
CLAIM_LEASE = sql("claim/claim_lease")
CLAIM = sql("claim/claim")
CLAIM_ROWS = sql("claim/claim_rows")
CLAIM_ARGS = sql("claim/claim_args")
UNIQUE_START = sql("claim/unique_start")

CHUNK = 1000
"""Jobs that come in one row of an answer."""

LONG = 2000
"""Characters of args from which on they come in rows of their own: to quote them would cost more."""


@operation(Begin.NOTHING)
def claim(
    session: SessionId,
    queues: Sequence[str],
    limit: int,
    *,
    woken: bool = False,
    most: Mapping[str, int] | None = None,
    tasks: Collection[str] | None = None,
) -> Steps[list[ClaimedJob]]:
    """Lease up to `limit` available jobs; see `rota.store.protocol.Store.claim`."""
    if not woken and not (yield from available(queues, tasks)):
        return []
    [(jobs,)] = yield Apart(_claim(session, queues, limit, most, known(tasks)))
    return jobs  # type: ignore[no-any-return]


def claim_in_steps(
    session: SessionId, queues: Sequence[str], limit: int, tasks: Collection[str]
) -> Steps[list[ClaimedJob]]:
    """The steps of a claim, as a part of a larger transaction."""
    return (yield from _claim(session, queues, limit, None, known(tasks)).steps)


def available(queues: Sequence[str], tasks: Collection[str] | None = None) -> Steps[bool]:
    """Whether there may be something to claim; reads, so that an idle worker locks nothing."""
    found = yield from _claimable(queues)
    if not all(has_lanes for _, has_lanes in found):
        return True
    used = (yield from lanes_in_use()) if found else None
    for queue, _ in found:
        # Lanes whose limits have no place are nothing to wake up for.
        if (yield from _next(queue, 1)):
            return True
        if (yield from open_lanes(queue, 1, used, known(tasks))):
            return True
    return False


def _claimable(wanted: Sequence[str]) -> Steps[Rows]:
    """Queues of these names and patterns that may have jobs, and whether they have key lanes."""
    return (yield CLAIM_QUEUES(queues=json_list((yield from in_use(wanted)))))


@operation(Begin.HASTY)
def _claim(
    session: SessionId,
    queues: Sequence[str],
    limit: int,
    most: Mapping[str, int] | None,
    tasks: str | None,
) -> Steps[list[ClaimedJob]]:
    if not (yield SESSION_ALIVE(session=session)):
        raise lost(session)
    if limit < 1:
        return []
    rooms: dict[str, int] = {}
    nexts: dict[str, Sequence[tuple[int, int]]] = {}
    with_lanes: list[str] = []
    for queue, has_lanes in (yield from _claimable(queues)):
        rooms[queue] = limit if most is None else min(limit, most.get(queue, limit))
        nexts[queue] = yield from _next(queue, rooms[queue])
        if has_lanes:
            with_lanes.append(queue)
    if with_lanes:
        return (yield from _from_lanes(session, nexts, with_lanes, rooms, limit, tasks=tasks))
    order = [job for _, job in islice(merge(*nexts.values()), limit)]
    if not order:
        return []
    _, taken = yield from take(session, order)
    return [taken[job] for job in order]


def _next(queue: str, size: int) -> Steps[list[tuple[int, int]]]:
    """The next jobs of a queue that have no lane: their priorities and ids."""
    [(priorities, jobs)] = yield CLAIM_NEXT(queue=queue, size=size)
    return [*zip(numbers(priorities), numbers(jobs), strict=True)]


def take(session: SessionId, jobs: Sequence[int]) -> Steps[tuple[int, dict[int, ClaimedJob]]]:
    """Hand these jobs to the session; their lease, and each of them by its id."""
    [(lease,)] = yield CLAIM_LEASE()
    yield CLAIM(jobs=json_list(jobs), session=session, lease=lease)
    taken = yield from _taken(jobs)
    yield from claimed(job.queue for job in taken)
    if unique := [job.id for job in taken if job.unique_key]:
        yield UNIQUE_START(jobs=json_list(unique))
    return lease, {job.id: job for job in taken}


def _taken(jobs: Sequence[int]) -> Steps[list[ClaimedJob]]:
    """Jobs as they are now."""
    chunks = [jobs[start : start + CHUNK] for start in range(0, len(jobs), CHUNK)]
    rows = yield CLAIM_ROWS(chunks=json_list(chunks), size=LONG)
    taken = [job for (row,) in rows for job in claimed_jobs(row)]
    if not (long := [job.id for job in taken if not job.args]):
        return taken
    args: dict[int, str] = dict((yield CLAIM_ARGS(jobs=json_list(long))))
    return [job if job.args else replace(job, args=args[job.id]) for job in taken]


def _from_lanes(
    session: SessionId,
    nexts: Mapping[str, Sequence[tuple[int, int]]],
    queues: Sequence[str],
    rooms: Mapping[str, int],
    limit: int,
    *,
    tasks: str | None,
) -> Steps[list[ClaimedJob]]:
    """Claim from the lanes of these queues, too, up to `limit` jobs and the rooms of the queues."""
    wanted = {queue: rooms[queue] for queue in queues if rooms[queue]}
    found = yield from candidates(wanted, limit, tasks)
    left = dict(rooms)
    order: list[int] = []
    lanes: dict[int, Candidate] = {}
    for job, queue, candidate in _in_turn(found.jobs, nexts):
        if left[queue] > 0 and len(order) < limit:
            left[queue] -= 1
            order.append(job)
            if candidate is not None:
                lanes[job] = candidate
    if not order:
        return []
    lease, taken = yield from take(session, order)
    served = list(lanes.values())
    filled = found.filled(served)
    if served:
        yield from note(served, lease)
    return [
        replace(taken[job], limited=bool(lanes[job].limit), filled=filled.get(job))
        if job in lanes
        else taken[job]
        for job in order
    ]


def _in_turn(
    in_lanes: Mapping[int, Sequence[Candidate]], nexts: Mapping[str, Sequence[tuple[int, int]]]
) -> Iterator[tuple[int, str, Candidate | None]]:
    """Jobs, with their queue: of one priority, those with a lane and those without take turns."""
    plain: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for queue, rows in nexts.items():
        for priority, job in rows:
            plain[priority].append((job, queue))
    for priority in sorted({*in_lanes, *plain}):
        for candidate, row in zip_longest(in_lanes.get(priority, ()), sorted(plain[priority])):
            if row is not None:
                yield *row, None
            if candidate is not None:
                yield candidate.job, candidate.queue, candidate
