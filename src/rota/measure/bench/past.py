"""A database with a past: jobs in all states, in the numbers of a shop that has run for days.

Of ten jobs eight have finished, one is available and one waits for its time; two in a thousand were
discarded. What waits is enqueued as apps do it, in bulk, some of it with unique keys and limits,
and a worker's session holds some. What has finished is written by one statement for each sixth of
it, as settling would have left it: in its segment of the ring, counted for its queue, state and
expiry, and taken in and given out before that. A week of minutes is in the history. Then the totals
are squeezed and the planner has its statistics, as upkeep and autovacuum see to that.
"""

import contextlib
import sqlite3
from dataclasses import dataclass, replace

import msgspec

from rota.app.app import Rota
from rota.config import DAY
from rota.cron.entry import CronEntry
from rota.measure.bench.past_sql import (
    AFTERWARDS,
    FINISHED,
    HISTORY,
    SQLITE_FINISHED,
    SQLITE_HISTORY,
)
from rota.model.job import ClaimedJob, JobId, JobSpec, Keys, Order, SessionId, SessionInfo
from rota.model.limit import Limit
from rota.model.settlement import Settlement
from rota.model.states import Move, State
from rota.model.unique import Unique
from rota.terminal.progress import Progress

PARTS = 6
"""It is made in parts, to mix ids of all states: one per segment of the ring of finished jobs."""

QUEUES = 8
TASKS = 5
LIMITS = 100
ENTRIES = 50

HELD = 200
"""Jobs that a worker holds."""

CHUNK = 50_000
"""Jobs of one enqueue."""

DISCARDED, CANCELLED = 500, 100
"""One job of so many."""

TRACEBACK = "Traceback (most recent call last):\n" + "".join(
    f'  File "/srv/shop/{name}.py", line {line}, in {name}\n    {name}(order, attempt=attempt, session=session)\n'
    for line, name in enumerate(("pay", "charge", "request", "send", "connect") * 3, start=40)
)
"""Of a failed attempt: about 1.5 kB."""

CAUSE = "shop.errors.Failed0 in shop/connect.py:54 connect"
"""Of the discarded jobs of the first part, as the dashboard groups them."""

WEEK = 10_079
"""Minutes of history."""


@dataclass(frozen=True, slots=True)
class Past:
    """A job of each kind, for the pages of single jobs."""

    jobs: dict[State, JobId]
    last: JobId


def fill(app: Rota, size: int, progress: Progress) -> Past:
    """Make about `size` jobs in an empty database."""
    store, run = app.database.store, app.database.run
    held = min(HELD, max(size // 100, 1))
    progress.begin(f"make {size:,} jobs", PARTS)
    for part in range(PARTS):
        _waiting(app, size // 10 // PARTS, part, delay=None)
        if part == 0:
            session = run(store.open_session(SessionInfo("shop", 1, _queues(), 6 * 3600.0)))
            _hold(app, session, held)
        _waiting(app, size // 10 // PARTS, part, delay=7 * DAY)
        _finished(app, size * 8 // 10 // PARTS, part)
        progress.at(part + 1)
    for number in range(min(ENTRIES, size)):
        run(store.cron.add(CronEntry(f"report {number}", f"{number} * * * *", "shop.task_1")))
    run(store.squeeze())
    _history(app, min(WEEK, size))
    _afterwards(app)
    found = {}
    for state in State:
        jobs = app.jobs.list(state=state, limit=1)
        if jobs:
            found[state] = jobs[0].id
    return Past(found, run(store.last_job()))


def _queues() -> tuple[str, ...]:
    return tuple(f"shop-{number}" for number in range(QUEUES))


def _waiting(app: Rota, count: int, part: int, *, delay: float | None) -> None:
    """Jobs that have not begun: of twenty two have a unique key, and one has a limit."""
    for start in range(0, count, CHUNK):
        numbers = range(part * count + start, part * count + min(start + CHUNK, count))
        for queue in range(QUEUES):
            of_queue = numbers[queue::QUEUES]
            edge, limited = len(of_queue) // 10, len(of_queue) // 20
            spec = JobSpec(f"shop.task_{queue % TASKS}", f"shop-{queue}", delay=delay, wake=False)
            for some, kind in (
                (of_queue[:edge], "unique"),
                (of_queue[edge : edge + limited], "limit"),
                (of_queue[edge + limited :], ""),
            ):
                if some:
                    app.database.run(app.database.store.enqueue(_order(spec, some, kind, delay)))


def _order(spec: JobSpec, numbers: range, kind: str, delay: float | None) -> Order:
    args = [f'{{"order_id":{n},"user":{{"name":"user {n % 1000}"}}}}' for n in numbers]
    when = "later" if delay else "order"
    keys: Keys | None = None
    if kind == "unique":
        keys = Keys(unique=[f"{when}:{n}" for n in numbers])
        spec = replace(spec, unique=Unique(key="order:{order_id}"))
    elif kind == "limit":
        keys = Keys(limit=[f"tenant:{n % LIMITS}" for n in numbers])
        spec = replace(spec, limit=Limit(key="tenant:{tenant}", running=2))
    return Order(spec, args, keys)


def _hold(app: Rota, session: SessionId, held: int) -> None:
    """Let a session hold jobs; some of them fail, and are to be tried again."""
    store, run = app.database.store, app.database.run
    claimed: list[ClaimedJob] = []
    while len(claimed) < 2 * held and (more := run(store.claim(session, _queues(), held))):
        claimed += more
    error = _error(0)
    failed = [
        Settlement(job.id, job.lease, Move.RETRY, 7 * DAY, None, None, error)
        for job in claimed[held:]
    ]
    run(store.settle(session, failed))


def _error(number: int) -> str:
    return msgspec.json.encode(
        {
            "attempt": 1,
            "at": "2026-01-01T00:00:00Z",
            "exception": f"shop.errors.Failed{number}",
            "message": f"order {number} was refused by the bank",
            "traceback": TRACEBACK,
        }
    ).decode()


def _finished(app: Rota, count: int, part: int) -> None:
    """Jobs that have ended, hours ago: those of the first part the longest."""
    values = {
        "count": count, "part": part, "hours": PARTS - part, "queues": QUEUES, "tasks": TASKS, "turn": PARTS - 1,
        "discarded": DISCARDED, "cancelled": CANCELLED, "error": f"[{_error(part)}]",
    }  # fmt: skip
    if app.database.store.name == "sqlite":
        path = app.database.url.partition("///")[2]
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as file:
            file.execute("BEGIN IMMEDIATE")
            for statement in SQLITE_FINISHED:
                file.execute(statement, values)
            file.execute("COMMIT")
        return
    import psycopg

    with psycopg.connect(app.database.url) as connection:
        connection.execute(FINISHED, values)
        connection.execute("SELECT setval('rota.finished_turn', %(turn)s)", values)


def _history(app: Rota, minutes: int) -> None:
    """What happened in each minute, in each queue and in all together."""
    values = {"minutes": minutes, "queues": msgspec.json.encode(["", *_queues()]).decode()}
    if app.database.store.name == "sqlite":
        path = app.database.url.partition("///")[2]
        with contextlib.closing(sqlite3.connect(path)) as file, file:
            file.execute(SQLITE_HISTORY, values)
        return
    import psycopg

    with psycopg.connect(app.database.url) as connection:
        connection.execute(HISTORY, values)


def _afterwards(app: Rota) -> None:
    if app.database.store.name == "sqlite":
        return
    import psycopg

    with psycopg.connect(app.database.url, autocommit=True) as connection:
        connection.execute(AFTERWARDS)
