"""The jobs of one open transaction, for the test kit; see `rota.store.testing`.

SQLite has one writer at a time, so all jobs that were not there before the transaction are its own,
and whatever it locks no other test could have had meanwhile.
"""

import os
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from rota.model.job import ClaimedJob, JobId, SessionId, SessionInfo
from rota.model.states import State
from rota.store.operation import Begin, Operation, Steps, operation, surroundings
from rota.store.sqlite.claim import take
from rota.store.sqlite.claim_lanes import started
from rota.store.sqlite.counters import QUEUE, Bucket, buckets, moved
from rota.store.sqlite.sessions import open_session
from rota.store.sqlite.stage import STAGE
from rota.store.sqlite.statements import json_list, sql
from rota.store.testing import Here, Wanted

T = TypeVar("T")

HERE = sql("testing/here")
BEGIN = sql("testing/begin")
JOURNAL = sql("testing/journal")
OWN_JOBS = sql("testing/own_jobs")
OWN_WAITING = sql("testing/own_waiting")
OWN_NEXT = sql("testing/own_next")
OWN_DUE = sql("testing/own_due")
TRAVEL_JOBS = sql("testing/travel_jobs")
HASTEN = sql("testing/hasten")
TRAVEL_MEMORY = sql("testing/travel_memory")
TRAVEL_KEYS = sql("testing/travel_keys")
TRAVEL_LIMITS = sql("testing/travel_limits")


class SqliteTesting:
    """See `rota.store.testing.Testing`."""

    def __init__(self, path: str) -> None:
        self.home = path

    @staticmethod
    @operation(Begin.NOTHING)
    def here() -> Steps[Here]:
        """Where the connection leads."""
        [(file,)] = yield HERE()
        return Here(file, "open" if (yield from surroundings()).begun else "")

    @staticmethod
    @operation(Begin.NOTHING)
    def transaction() -> Steps[str]:
        """Whether one is open; SQLite has no names for them."""
        return "open" if (yield from surroundings()).begun else ""

    @staticmethod
    @operation(Begin.NOTHING)
    def enter() -> Steps[None]:
        """Begin the transaction, where the driver has not."""
        if not (yield from surroundings()).begun:
            yield BEGIN()

    @staticmethod
    @operation(Begin.NOTHING)
    def shared() -> Steps[bool]:
        """Where there is a write-ahead log, which Rota's own connections make."""
        [(mode,)] = yield JOURNAL()
        return bool(mode == "wal")

    @staticmethod
    @operation(Begin.NOTHING)
    def prepare(lanes: Sequence[tuple[str, int]]) -> Steps[None]:
        """Nothing: plain lanes need no rows, and no other test writes."""
        del lanes
        yield from surroundings()

    @staticmethod
    @operation(Begin.NOTHING)
    def clean() -> Steps[None]:
        """Nothing: what is rolled back was never in the file."""
        yield from surroundings()

    @staticmethod
    @operation(Begin.NOTHING)
    def begin() -> Steps[SessionId]:
        """Begin a session."""
        info = SessionInfo(host="test", pid=os.getpid(), queues=(), timeout=86400.0)
        return (yield from open_session(info).steps)

    @staticmethod
    def unlocked(operation: Operation[T]) -> Operation[T]:
        """The same: there are no such locks."""
        return operation

    @staticmethod
    @operation(Begin.NOTHING)
    def own(after: JobId) -> Steps[list[JobId]]:
        """The transaction's jobs."""
        return [JobId(job) for (job,) in (yield OWN_JOBS(after=after))]

    @staticmethod
    @operation(Begin.NOTHING)
    def waiting(wanted: Wanted, *, due: bool) -> Steps[bool]:
        """Whether there may be something to do."""
        but = json_list(list(wanted.but))
        [(waits,)] = yield OWN_WAITING(due=due, after=wanted.after, but=but)
        return bool(waits)

    @staticmethod
    @operation(Begin.NOTHING)
    def stage(wanted: Wanted, *, due: bool) -> Steps[list[JobId]]:
        """Make waiting jobs available."""
        rows = yield OWN_DUE(due=due, but=json_list(list(wanted.but)), **_params(wanted))
        if rows:
            yield STAGE(jobs=json_list([row[0] for row in rows]))
            left: Counter[Bucket] = Counter((queue, state, None) for _, queue, state in rows)
            yield from moved(left, buckets(map(QUEUE, rows), State.AVAILABLE))
            if not due:
                yield HASTEN(jobs=json_list([row[0] for row in rows]))
        return [JobId(row[0]) for row in rows]

    @staticmethod
    @operation(Begin.NOTHING)
    def claim(session: SessionId, wanted: Wanted, limit: int = 1) -> Steps[list[ClaimedJob]]:
        """Lease available jobs."""
        rows = yield OWN_NEXT(limits=wanted.limits, size=limit, **_params(wanted))
        if not rows:
            return []
        _, taken = yield from take(session, [row[0] for row in rows])
        yield from started(Counter(limit for _, limit, rated in rows if rated))
        return [replace(taken[job], limited=bool(limit)) for job, limit, _ in rows]

    @staticmethod
    @operation(Begin.NOTHING)
    def decide() -> Steps[bool]:
        """Nothing: what ends a job has done it."""
        yield from surroundings()
        return False

    @staticmethod
    @operation(Begin.NOTHING)
    def deliver(job: JobId) -> Steps[None]:
        """Nothing: the signal has done it."""
        del job
        yield from surroundings()

    @staticmethod
    @operation(Begin.NOTHING)
    def travel(jobs: Sequence[JobId], seconds: float) -> Steps[None]:
        """Set times back."""
        yield TRAVEL_JOBS(jobs=json_list(list(jobs)), seconds=seconds)
        yield TRAVEL_MEMORY(jobs=json_list(list(jobs)), seconds=seconds)
        yield TRAVEL_KEYS(jobs=json_list(list(jobs)), seconds=seconds)
        yield TRAVEL_LIMITS(seconds=seconds)


def _params(wanted: Wanted) -> dict[str, object]:
    return {
        "after": wanted.after,
        "jobs": None if wanted.jobs is None else json_list(list(wanted.jobs)),
        "queues": None if wanted.queues is None else json_list(list(wanted.queues)),
        "task": wanted.task,
    }
