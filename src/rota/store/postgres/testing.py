"""The jobs of one open transaction, for the test kit; see `rota.store.testing`.

A row of the log tells by its `xid` to which transaction it belongs, in savepoints too. So a claim
finds its own transaction's jobs without the lanes' cursors, and since no other transaction sees
them, without the lanes' locks. docs/how/engine.md has the log order that this relies on.
"""

import os
from collections.abc import Sequence
from typing import TypeVar

from rota.model.headers import NodeId
from rota.model.job import ClaimedJob, JobId, SessionId
from rota.store import deciding
from rota.store.operation import (
    Begin,
    Operation,
    Query,
    Rows,
    Stepped,
    Steps,
    operation,
    surroundings,
)
from rota.store.postgres.control import KEYED_TURN, WAITING_LANES_LOCK
from rota.store.postgres.lanes import ensure_lane
from rota.store.postgres.statements import sql
from rota.store.testing import Here, Wanted

T = TypeVar("T")

HERE = sql("testing/here")
TRANSACTION = sql("testing/transaction")
LANES_MISSING = sql("testing/lanes_missing")
WAITING_LANES = sql("testing/waiting_lanes")
VACUUM = sql("testing/vacuum")
OWN_SESSION = sql("testing/own_session")
OWN_JOBS = sql("testing/own_jobs")
OWN_SHUT = sql("testing/own_shut")
OWN_WAITING = sql("testing/own_waiting")
OWN_STAGE = sql("testing/own_stage")
OWN_CLAIM = sql("testing/own_claim")
TRAVEL_JOBS = sql("testing/travel_jobs")
HASTEN = sql("testing/hasten")
OWN_ARRIVED = sql("testing/own_arrived")
OWN_DELIVER = sql("testing/own_deliver")
TRAVEL_MEMORY = sql("testing/travel_memory")
TRAVEL_LIMITS = sql("testing/travel_limits")


class PostgresTesting:
    """See `rota.store.testing.Testing`."""

    home = ""

    @staticmethod
    @operation(Begin.NOTHING)
    def here() -> Steps[Here]:
        """Where the connection leads."""
        [(database, transaction)] = yield HERE()
        [(again,)] = yield TRANSACTION()
        return Here(database, transaction if again == transaction else "")

    @staticmethod
    @operation(Begin.NOTHING)
    def transaction() -> Steps[str]:
        """Which transaction is open."""
        [(transaction,)] = yield TRANSACTION()
        return str(transaction)

    @staticmethod
    @operation(Begin.NOTHING)
    def enter() -> Steps[None]:
        """Nothing: its drivers begin with whatever comes first."""
        yield from surroundings()

    @staticmethod
    @operation(Begin.NOTHING)
    def shared() -> Steps[bool]:
        """Always."""
        yield from surroundings()
        return True

    @staticmethod
    @operation(Begin.DURABLE)
    def prepare(lanes: Sequence[tuple[str, int]]) -> Steps[None]:
        """Make lanes, in their order."""
        queues, priorities = [queue for queue, _ in lanes], [priority for _, priority in lanes]
        for queue, priority in (yield LANES_MISSING(queues=queues, priorities=priorities)):
            yield from ensure_lane(queue, priority).steps

    @staticmethod
    @operation(Begin.NOTHING)
    def clean() -> Steps[None]:
        """Vacuum."""
        yield VACUUM()

    @staticmethod
    @operation(Begin.NOTHING)
    def begin() -> Steps[SessionId]:
        """Begin a session."""
        [(session,)] = yield OWN_SESSION(pid=os.getpid())
        return SessionId(session)

    @staticmethod
    def unlocked(operation: Operation[T]) -> Operation[T]:
        """Without the turn of the key lanes, and without locked lanes."""
        return Stepped(operation.name, _unlocked(operation.steps), operation.begin, operation.then)

    @staticmethod
    @operation(Begin.NOTHING)
    def own(after: JobId) -> Steps[list[JobId]]:
        """The transaction's jobs."""
        del after  # the rows say whose they are
        return [JobId(job) for (job,) in (yield OWN_JOBS())]

    @staticmethod
    @operation(Begin.NOTHING)
    def waiting(wanted: Wanted, *, due: bool) -> Steps[bool]:
        """Whether there may be something to do."""
        [(waits,)] = yield OWN_WAITING(due=due, but=list(wanted.but))
        return bool(waits)

    @staticmethod
    @operation(Begin.NOTHING)
    def stage(wanted: Wanted, *, due: bool) -> Steps[list[JobId]]:
        """Make waiting jobs available."""
        rows = yield OWN_STAGE(due=due, but=list(wanted.but), **_params(wanted))
        if rows and not due:
            yield HASTEN(jobs=[job for (job,) in rows])
        return [JobId(job) for (job,) in rows]

    @staticmethod
    @operation(Begin.NOTHING)
    def claim(session: SessionId, wanted: Wanted, limit: int = 1) -> Steps[list[ClaimedJob]]:
        """Lease available jobs."""
        shut = [lane for (lane,) in (yield OWN_SHUT())] if wanted.limits else []
        rows = yield OWN_CLAIM(session=session, size=limit, shut=shut, **_params(wanted))
        return [ClaimedJob(*row) for row in rows]

    @staticmethod
    @operation(Begin.NOTHING)
    def decide() -> Steps[bool]:
        """Decide of all nodes at which jobs have arrived in this transaction."""
        nodes = [NodeId(node) for (node,) in (yield OWN_ARRIVED())]
        if not nodes:
            return False
        from rota.store.postgres.deciding import PostgresGround  # here: few tests have flows

        decided = yield from deciding.decide(PostgresGround({}, inside=True), nodes)
        return bool(decided.released)

    @staticmethod
    @operation(Begin.NOTHING)
    def deliver(job: JobId) -> Steps[None]:
        """Compare the job's own wait and its signals."""
        yield OWN_DELIVER(job=job)

    @staticmethod
    @operation(Begin.NOTHING)
    def travel(jobs: Sequence[JobId], seconds: float) -> Steps[None]:
        """Set times back."""
        yield TRAVEL_JOBS(jobs=list(jobs), seconds=seconds)
        yield TRAVEL_MEMORY(jobs=list(jobs), seconds=seconds)
        yield TRAVEL_LIMITS(seconds=seconds)


def _unlocked(steps: Steps[T]) -> Steps[T]:
    try:
        request = next(steps)
        while True:
            given: Rows = ()
            match request:
                case Query(statement, _) if statement is KEYED_TURN:
                    pass
                case Query(statement, params) if statement is WAITING_LANES_LOCK:
                    given = yield Query(WAITING_LANES, params)
                case _:
                    given = yield request
            request = steps.send(given)
    except StopIteration as end:
        result: T = end.value
        return result


def _params(wanted: Wanted) -> dict[str, object]:
    return {
        "jobs": None if wanted.jobs is None else list(wanted.jobs),
        "queues": None if wanted.queues is None else list(wanted.queues),
        "task": wanted.task,
    }
