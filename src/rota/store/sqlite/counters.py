"""How many jobs are in each state, kept up to date by every operation that changes it.

One writer at a time makes this exact and cheap: an operation adds its differences to the totals in
the transaction that makes them. Only running jobs have no total, since workers hold few at a time:
these are counted. What is available is what was ever appended, less what was claimed or removed.

Jobs are kept a little longer than they must be (at most 1/32 of their retention), so that many of
them expire together and the totals need no row for every moment.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from operator import itemgetter

from rota.model.states import State
from rota.store.operation import Query, Steps
from rota.store.sqlite.statements import sql

COUNT = sql("counters/count")

APPENDED = "appended"
"""How often jobs became available: a total that only grows."""

CLAIMED = "claimed"
"""How often jobs were claimed: a total that only grows."""

REMOVED = "removed"
"""How often available jobs were cancelled or deleted: a total that only grows."""

ENDED = frozenset({State.COMPLETED, State.DISCARDED})
"""The states of which a total is kept that only grows: how many jobs ever ended so."""

EVER = float("-inf")
"""The expiry under which such a total stands: what is counted as long as it is there comes after it."""

Bucket = tuple[str, str, float | None]
"""Where a job is counted: its queue, its state, and the moment from which on it is not seen."""

BUCKET = itemgetter(1, 2, 3)
"""The bucket of a row (id, queue, state, keep_until)."""

QUEUE = itemgetter(1)
"""The queue in a row that begins so."""


def added(came: Mapping[Bucket, int]) -> Steps[None]:
    """Count jobs that are in these buckets now and were in none, or running, before."""
    yield from _count(_came(came))


def one_more(queue: str, state: State) -> Query:
    """Count a job that is in this state, which does not expire, and was in none before."""
    counted = APPENDED if state is State.AVAILABLE else state.value
    return COUNT(queue=queue, state=counted, expires=None, jobs=1)


def gone(ended: Mapping[str, int], state: State) -> Steps[None]:
    """Count jobs that ended in this state and left nothing behind, by their queues."""
    if state in ENDED:
        yield from _count({(queue, state.value, EVER): jobs for queue, jobs in ended.items()})


def moved(left: Mapping[Bucket, int], came: Mapping[Bucket, int]) -> Steps[None]:
    """Count jobs that were in the buckets `left` and are in the buckets `came` now."""
    changes = _came(came)
    for bucket, jobs in left.items():
        total = _total(bucket, REMOVED)
        changes[total] += jobs if total[1] == REMOVED else -jobs
    yield from _count(changes)


def claimed(queues: Iterable[str]) -> Steps[None]:
    """Count one claimed job of each of these queues, which may repeat."""
    yield from _count({(queue, CLAIMED, None): jobs for queue, jobs in Counter(queues).items()})


def buckets(queues: Iterable[str], state: State) -> dict[Bucket, int]:
    """A job for each of these queues, all of them in one state that does not expire."""
    return {(queue, state.value, None): jobs for queue, jobs in Counter(queues).items()}


def _came(came: Mapping[Bucket, int]) -> Counter[Bucket]:
    changes: Counter[Bucket] = Counter()
    for bucket, jobs in came.items():
        changes[_total(bucket, APPENDED)] += jobs
        if bucket[1] in ENDED:
            changes[bucket[0], bucket[1], EVER] += jobs
    return changes


def _total(bucket: Bucket, available: str) -> Bucket:
    queue, state, expires = bucket
    return (queue, available, None) if state == State.AVAILABLE else (queue, state, expires)


def _count(changes: Mapping[Bucket, int]) -> Steps[None]:
    for (queue, state, expires), jobs in changes.items():
        yield COUNT(queue=queue, state=state, expires=expires, jobs=jobs)
