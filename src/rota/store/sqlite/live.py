"""What goes on just now: for `rota top`, which looks once a second.

Each costs less than a millisecond, whatever the number of jobs.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from rota.model.job import SessionId
from rota.model.limit_record import LimitRecord
from rota.store.health import EVERY, HeldFacts, HorizonFacts, LaneFacts, SessionFacts, TaskFacts
from rota.store.operation import Begin, Steps, operation
from rota.store.sqlite.health import LANES, PASSED_ON, SESSIONS, lane, log_size, passed, session
from rota.store.sqlite.statements import json_list, sql

HELD = sql("health/held")
LIMITS = sql("health/limits")
PRODUCT = sql("health/product")


@operation(Begin.READING)
def product() -> Steps[str]:
    """Such as "SQLite 3.51.3"."""
    [(version,)] = yield PRODUCT()
    return f"SQLite {version}"


@operation(Begin.NOTHING)
def read_only(path: str) -> Steps[bool]:
    """Whether this process may only read the file, or the folder with SQLite's files beside it."""
    yield from ()
    places = [place for place in (Path(path), Path(path).parent) if place.exists()]
    return not all(os.access(place, os.W_OK) for place in places)


@operation(Begin.READING)
def lanes() -> Steps[list[LaneFacts]]:
    """Each queue and priority with available jobs, and how long ago the next one was enqueued."""
    return [lane(row) for row in (yield LANES())]


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
    """What these hold; the times of leases are not noted."""
    rows = yield HELD(size=limit, sessions=None if sessions is None else json_list(sessions))
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
def horizon(path: str) -> Steps[HorizonFacts]:
    """How long the write-ahead log has become: it grows while a reader keeps an old snapshot."""
    yield from ()
    return HorizonFacts(log_size=log_size(path))
