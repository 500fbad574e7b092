"""What goes on just now: for `rota top`, which looks once a second.

Each costs a millisecond or so, whatever the number of jobs: they read ends of indexes and the
server's own lists.
"""

from collections.abc import Sequence

from rota.model.job import SessionId
from rota.model.limit_record import LimitRecord
from rota.store.health import EVERY, HeldFacts, HorizonFacts, LaneFacts, SessionFacts, TaskFacts
from rota.store.operation import Begin, Steps, operation
from rota.store.postgres.health import HOLDERS, LANES, PASSED_ON, SESSIONS, holder, passed, session
from rota.store.postgres.statements import sql

HIDDEN = sql("health/transactions_hidden")
HELD = sql("health/held")
LIMITS = sql("health/limits")
PRODUCT = sql("health/product")
READ_ONLY = sql("health/read_only")


@operation(Begin.READING)
def product() -> Steps[str]:
    """Such as "PostgreSQL 15.4"."""
    [(version,)] = yield PRODUCT()
    return f"PostgreSQL {version.partition(' ')[0]}"


# Not READING: that would be a transaction that only reads.
@operation(Begin.NOTHING)
def read_only() -> Steps[bool]:
    """Whether transactions only read here."""
    [(found,)] = yield READ_ONLY()
    return bool(found)


@operation(Begin.READING)
def lanes() -> Steps[list[LaneFacts]]:
    """Each lane, and how long ago its next job was enqueued."""
    return [LaneFacts(*row) for row in (yield LANES())]


@operation(Begin.READING)
def workers() -> Steps[list[SessionFacts]]:
    """The sessions that are open."""
    return [session(row) for row in (yield SESSIONS())]


@operation(Begin.READING)
def passed_on() -> Steps[list[TaskFacts]]:
    """The jobs that were passed on."""
    return [passed(row) for row in (yield PASSED_ON(most=EVERY))]


@operation(Begin.READING)
def held(limit: int, sessions: Sequence[SessionId] | None) -> Steps[list[HeldFacts]]:
    """What these hold."""
    rows = yield HELD(size=limit, sessions=None if sessions is None else list(sessions))
    return [HeldFacts(*row) for row in rows]


@operation(Begin.READING)
def limits(size: int, after: str) -> Steps[list[LimitRecord]]:
    """The limits that are in use."""
    return [
        LimitRecord(key, running, held, rate, seconds, started, bool(waiting))
        for key, running, held, rate, seconds, started, waiting in (
            yield LIMITS(size=size, after=after)
        )
    ]


@operation(Begin.READING)
def horizon() -> Steps[HorizonFacts]:
    """What keeps vacuum from removing rows."""
    holders = tuple(holder(row) for row in (yield HOLDERS()))
    [(hidden, _)] = yield HIDDEN()
    return HorizonFacts(holders, hidden)
