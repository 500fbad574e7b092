"""Claiming from key lanes: limits that are exact, and fair shares.

All claims of key lanes in a database take turns, by an advisory lock that is held for the one
statement after it. So the count of what runs includes everything that was handed out before, and a
limit may reach over tasks, queues and priorities. A limit's places are taken by jobs in leases: a
place is free again when its job has left its lease, by a settlement, a release or a rescue.

A claim goes round the lanes of one queue and priority, beginning after the lane that was served
last, and takes an equal share from each; a lane whose limit has no place costs one look at a map.
How many lanes have jobs is not known before, so the claim looks at as many jobs of each as were
right last time, and again if those were too few. The jobs come back in the order in which a worker
shall run them: the first job of every lane, then the second.

A claim commits without waiting for the disk, like every other. Undone by a crash of the server, it
would set places free while their jobs run. So it is made durable before its jobs are handed out,
but after the turn is given back: no other claim waits for the disk. Where the last claim had such
jobs, the flush goes along with the next one.

Known weakness: one turn for all key lanes of a database. It lasts a millisecond and some
microseconds for each lane that gives jobs.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from rota.model.job import ClaimedJob, SessionId
from rota.store.operation import Apart, Begin, Rows, Steps, Together, operation
from rota.store.postgres.at_once import FLUSH
from rota.store.postgres.statements import sql

KEYED_LOCK = sql("claim/keyed_lock")
KEYED_TRY_LOCK = sql("claim/keyed_try_lock")
CLAIM_LANES = sql("claim/claim_lanes")

LANES = 200
"""About how many lanes give jobs to one claim: it bounds how long others wait for their turn."""


class Claimed(NamedTuple):
    """What a claim of key lanes gave; `passed`: only void entries of unique jobs."""

    jobs: list[ClaimedJob]
    limited: bool
    lanes: list[int]
    passed: bool = False


class KeyLaneClaims:
    """Claims from key lanes; remembers where it got to, and how many lanes gave something."""

    def __init__(self) -> None:
        self._after: dict[int, int] = {}
        self._giving: dict[int, int] = {}
        self._limited: set[int] = set()

    def take(
        self,
        session: SessionId,
        lane: int,
        limit: int,
        *,
        wait: bool,
        tasks: Sequence[str] | None = None,
    ) -> Steps[list[ClaimedJob] | None]:
        """Claim up to `limit` jobs of the key lanes beside a plain one; `None` without the turn.

        Of the lanes of single tasks only those of these `tasks`; `None`: of all.
        """
        jobs: list[ClaimedJob] = []
        limited = more = False
        lasting = lane in self._limited
        self._limited.discard(lane)
        while not jobs or (more and len(jobs) < limit):
            left = limit - len(jobs)
            share = -(-left // self._giving.get(lane, LANES))
            query = CLAIM_LANES(
                lane=lane,
                session=session,
                size=left,
                after=self._after.get(lane, 0),
                share=share,
                most=left + share,
                tasks=tasks,
            )
            lock = KEYED_LOCK if wait else KEYED_TRY_LOCK
            queries = (lock(lane=lane, session=session), query)
            [(claimed,)] = yield Apart(Together("take_key_lanes", queries, _claimed, lasting))
            if claimed is None:
                if jobs:
                    break
                return None
            if claimed.passed:
                continue
            if not claimed.jobs:
                break
            given = Counter(claimed.lanes)
            self._after[lane] = last_served(claimed.lanes)
            self._giving[lane] = min(len(given), LANES)
            # A lane that gave its whole share may have more, and no other lane has the rest.
            more = max(given.values()) >= share
            limited = limited or claimed.limited
            jobs += claimed.jobs
        if limited:
            self._limited.add(lane)
            if not lasting:
                yield Apart(flush())
        return jobs


def _claimed(found: Sequence[Rows]) -> Claimed | None:
    locked, rows = found
    if not locked:
        return None
    [(queue, priority, _)] = locked
    if rows and rows[0][0] is None:
        return Claimed([], False, [], passed=True)
    jobs = [
        ClaimedJob(
            job, lease, task, args, queue, priority, attempt, max_attempts, timeout, enqueued_at,
            suspects, headers, key, limited, filled,
        )
        for (
            job, lease, task, args, attempt, max_attempts, timeout, enqueued_at,
            suspects, headers, key, limited, filled, _,
        ) in rows
    ]  # fmt: skip
    return Claimed(jobs, any(job.limited for job in jobs), [row[-1] for row in rows])


def last_served(lanes: Sequence[int]) -> int:
    """The lane after which the next claim begins, from the lanes of the jobs in their order.

    Among few lanes it is the last job's: a lane that gave one job more than the others comes last
    next time. Among many it is the last lane that was reached, so that the round goes on.
    """
    reached = len(set(lanes))
    return lanes[-1] if reached < LANES // 2 else lanes[reached - 1]


@operation(Begin.NOTHING)
def flush() -> Steps[None]:
    """Return when everything that was committed before is on disk."""
    yield FLUSH()
