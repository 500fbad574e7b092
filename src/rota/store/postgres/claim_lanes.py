"""Claiming from the lanes of keys: limits that are exact, and fair shares.

The claims of keyed lanes take turns, all of a database in one row: an advisory lock, held for the one
statement that follows it. So whoever counts what runs sees everything that was handed out before, and
a limit may reach over tasks, queues and priorities. A limit's places are those in leases: a place is
free again when its job has left its lease, be it by a settlement, a release or a rescue.

A claim goes round the lanes of one queue and priority, from the one after the last one served, and
takes from each an equal share of what it wants; a lane whose limit has no place costs it one look at a
map. How many lanes have something it does not know before, so it looks at as many jobs of each as were
right last time, and once more if that was too few. The jobs come back as a worker shall run them: the first one of every lane, then the second one.

A claim commits without waiting for the disk, like every other. Undone by a crash of the server, it would
set places free while their jobs run. So it is made durable before anybody is told of its jobs, with
the turn given back already: nobody waits for a disk under it. Where the last claim had such jobs, that
goes along with the next one.

Known weakness: one turn for all keyed lanes of a database. It lasts a millisecond and some
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
"""So many lanes give jobs to one claim, about: it bounds how long others wait for their turn."""


class Taken(NamedTuple):
    """What a claim of keyed lanes gave; `passed`: only entries of unique jobs that are void."""

    jobs: list[ClaimedJob]
    limited: bool
    lanes: list[int]
    passed: bool = False


class KeyedClaims:
    """Claims from keyed lanes; remembers where it got to, and how many lanes gave something."""

    def __init__(self) -> None:
        self._after: dict[int, int] = {}
        self._giving: dict[int, int] = {}
        self._limited: set[int] = set()

    def take(
        self, session: SessionId, lane: int, limit: int, *, wait: bool
    ) -> Steps[list[ClaimedJob] | None]:
        """Claim up to `limit` jobs of the keyed lanes beside a plain one; `None`: not our turn."""
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
            )
            lock = KEYED_LOCK if wait else KEYED_TRY_LOCK
            queries = (lock(lane=lane, session=session), query)
            [(taken,)] = yield Apart(Together("take_keyed", queries, _taken, lasting))
            if taken is None:
                if jobs:
                    break
                return None
            if taken.passed:
                continue
            if not taken.jobs:
                break
            given = Counter(taken.lanes)
            self._after[lane] = last_served(taken.lanes)
            self._giving[lane] = min(len(given), LANES)
            # A lane that gave its whole share may have more, and nobody else wants the rest.
            more = max(given.values()) >= share
            limited = limited or taken.limited
            jobs += taken.jobs
        if limited:
            self._limited.add(lane)
            if not lasting:
                yield Apart(flush())
        return jobs


def _taken(found: Sequence[Rows]) -> Taken | None:
    locked, rows = found
    if not locked:
        return None
    [(queue, priority, _)] = locked
    if rows and rows[0][0] is None:
        return Taken([], False, [], passed=True)
    jobs = [
        ClaimedJob(
            job, lease, task, args, queue, priority, attempt, max_attempts, timeout, enqueued_at,
            key, limited, filled,
        )
        for (
            job, lease, task, args, attempt, max_attempts, timeout, enqueued_at,
            key, limited, filled, _,
        ) in rows
    ]  # fmt: skip
    return Taken(jobs, any(job.limited for job in jobs), [row[-1] for row in rows])


def last_served(lanes: Sequence[int]) -> int:
    """The lane after which the next claim begins, from those of the jobs in their order.

    Among few lanes it is that of the last job: whoever got one more than the others comes last next
    time. Among many it is the last lane that was reached, so that the round goes on.
    """
    reached = len(set(lanes))
    return lanes[-1] if reached < LANES // 2 else lanes[reached - 1]


@operation(Begin.NOTHING)
def flush() -> Steps[None]:
    """Return when everything that was committed before is on disk."""
    yield FLUSH()
