"""Looking at the database's health: facts for `rota doctor`, gathered part by part.

Each part is a statement of its own that reads ends of indexes, catalogs and statistics; none counts
jobs. A part that fails (a missing right, a missing table, a lock that is not free within a second)
is noted as unseen, and the others go on: a doctor that needs a healthy database is of no use.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from rota.errors import RotaError, SchemaIncomplete
from rota.model.transfer import NEVER
from rota.model.transfer import TASK as TRANSFER
from rota.store.health import (
    MOST_JOBS,
    OPEN,
    STOPPING,
    Facts,
    HolderFacts,
    LaneFacts,
    MissingRights,
    NodeFacts,
    PostgresFacts,
    ReplicationFacts,
    RescueFacts,
    ServerFacts,
    SessionFacts,
    StopFacts,
    TableFacts,
    TaskFacts,
    TransferFacts,
    WaitFacts,
    WorkFacts,
)
from rota.store.operation import Apart, Begin, Operation, Statement, Steps, operation
from rota.store.postgres.schema import migrations, oldest_code, schema_version
from rota.store.postgres.statements import sql

T = TypeVar("T")

LIMITS = sql("health/health_limits")
TRANSFERS = sql("health/health_transfers")
KEYS = sql("health/health_keys")
FLOWS = sql("health/health_flows")
STOPS = sql("health/health_stops")
SERVER = sql("health/health_server")
SETTINGS = sql("health/health_settings")
HOLDERS = sql("health/health_holders")
TABLES = sql("health/health_tables")
WAITS = sql("health/health_waits")
DEAD_ROWS = sql("health/health_dead_rows")
RIGHTS = sql("health/health_rights")
REPLICATION = sql("health/health_replication")
SESSIONS = sql("health/health_sessions")
LANES = sql("health/health_lanes")
PASSED_ON = sql("health/health_passed_on")
OVERDUE = sql("health/health_overdue")
RESCUED = sql("health/health_rescued")
ORIGIN_CHECK = sql("origin/origin_check")
UNCLAIMED = sql("rings/segment_unclaimed")
FINISHED_SHARE = sql("rings/finished_share")


@operation(Begin.NOTHING)
def integrity() -> Steps[tuple[str, ...] | None]:
    """Nothing: PostgreSQL has no check of its own that reads everything."""
    yield from ()
    return None


@operation(Begin.NOTHING)
def health(*, pooled: bool) -> Steps[Facts]:
    """Everything there is to know; `unseen` says what could not be looked at, and why.

    Raises:
        StoreUnavailable: The server cannot be reached.
    """
    if not pooled:
        yield LIMITS()
    [(server,)] = yield Apart(_server())
    unseen: dict[str, str] = {}
    settings = yield from _part(unseen, "settings", _rows(SETTINGS))
    holders = yield from _part(unseen, "horizon", _rows(HOLDERS))
    waits = yield from _part(unseen, "waits", _rows(WAITS))
    tables = yield from _part(unseen, "tables", _rows(TABLES))
    rights = yield from _part(unseen, "rights", _rows(RIGHTS))
    replication = yield from _part(unseen, "replication", _rows(REPLICATION))
    dead = yield from _part(unseen, "dead rows", _rows(DEAD_ROWS))
    work = yield from _work(unseen)
    foreign = False
    segments: Sequence[TableFacts] = [TableFacts(*row) for row in tables]
    if work.schema:
        foreign = any(row[0] for row in (yield from _part(unseen, "origin", _rows(ORIGIN_CHECK))))
        if "schema" not in unseen:
            segments = yield from _part(unseen, "segments", _segments(segments), otherwise=segments)
    return PostgresFacts(
        server=server,
        work=work,
        settings=dict(settings),
        holders=tuple(holder(row) for row in holders),
        tables=tuple(segments),
        waits=tuple(
            WaitFacts(pid, application, seconds, tuple(blockers))
            for pid, application, seconds, blockers in waits
        ),
        rights=tuple(MissingRights(kind, name, tuple(missing)) for kind, name, missing in rights),
        replication=tuple(
            ReplicationFacts(kind, name, all_tables, tuple(named))
            for kind, name, all_tables, named in replication
        ),
        dead_rows=sum(row[0] for row in dead),
        foreign=foreign,
        unseen=unseen,
    )


def _work(unseen: dict[str, str]) -> Steps[WorkFacts]:
    newest = max(migrations())
    found = oldest = 0
    try:
        [(found,)] = yield Apart(schema_version())
        if found > newest:
            [(oldest,)] = yield Apart(oldest_code())
    except SchemaIncomplete as error:
        unseen["version"] = str(error)
    except RotaError as error:
        unseen["schema"] = _reason(error)
    if not found:
        return WorkFacts(found, newest)
    sessions = yield from _part(unseen, "sessions", _rows(SESSIONS))
    lanes = yield from _part(unseen, "queues", _rows(LANES))
    overdue = yield from _part(unseen, "timers", _rows(OVERDUE))
    rescued = yield from _part(unseen, "rescued", _rows(RESCUED))
    passed_on = yield from _part(unseen, "tasks", _rows(PASSED_ON, most=MOST_JOBS))
    keys = yield from _part(unseen, "keys", _rows(KEYS))
    nodes = yield from _part(unseen, "flows", _rows(FLOWS, least=OPEN))
    stops = yield from _part(unseen, "flows", _rows(STOPS, least=STOPPING))
    transfers = yield from _part(unseen, "transfers", _rows(TRANSFERS, never=NEVER, task=TRANSFER))
    late = next((seconds for (seconds,) in overdue if seconds is not None), None)
    return WorkFacts(
        schema=found,
        newest=newest,
        lanes=tuple(LaneFacts(*row) for row in lanes),
        sessions=tuple(session(row) for row in sessions),
        rescued=tuple(RescueFacts(*row) for row in rescued),
        passed_on=tuple(passed(row) for row in passed_on),
        overdue=late if late is not None and late > 0 else None,
        keys=tuple((queue, count) for queue, count in keys),
        oldest_code=oldest,
        nodes=tuple(NodeFacts(*row) for row in nodes),
        stops=tuple(StopFacts(*row) for row in stops),
        transfers=next((TransferFacts(*row) for row in transfers), None),
    )


def session(row: Sequence[Any]) -> SessionFacts:
    """A row of `health_sessions.sql`."""
    number, worker, queues, *rest = row
    return SessionFacts(number, worker, tuple(queues), *rest)


def passed(row: Sequence[Any]) -> TaskFacts:
    """A row of `health_passed_on.sql`."""
    queue, task, jobs, oldest, knowing = row
    return TaskFacts(queue, task, jobs, oldest, tuple(knowing))


def holder(row: Sequence[Any]) -> HolderFacts:
    """A row of `health_holders.sql`."""
    kind, pid, name, role, state, seconds, age, catalog_age, writes, touches, active, kept = row
    return HolderFacts(
        kind=kind,
        pid=pid,
        name=name or "",
        role=role or "",
        state=state or "",
        seconds=seconds,
        age=age,
        catalog_age=catalog_age,
        writes=writes,
        touches=tuple(sorted(touches or ())),
        active=active,
        kept_log=kept,
    )


def _part(
    unseen: dict[str, str],
    name: str,
    part: Operation[Sequence[T]],
    otherwise: Sequence[T] = (),
) -> Steps[Sequence[T]]:
    try:
        [(rows,)] = yield Apart(part)
    except RotaError as error:
        unseen[name] = _reason(error)
        return otherwise
    found: Sequence[T] = rows
    return found


def _reason(error: RotaError) -> str:
    """What the database itself said, without the advice that Rota gives its users."""
    said = str(error.__cause__ or error).strip().splitlines()
    return said[0] if said else type(error).__name__


# Reading, so that behind a pooler they have a transaction with Rota's settings for the planner.


@operation(Begin.READING)
def _rows(statement: Statement, **params: object) -> Steps[Sequence[Any]]:
    return (yield statement(**params))


@operation(Begin.READING)
def _server() -> Steps[ServerFacts]:
    before = time.time(), time.monotonic()
    [row] = yield SERVER()
    round_trip = time.monotonic() - before[1]
    version, text, database, role, standby, sees_all, clock, *rest = row
    ahead = clock - (before[0] + round_trip / 2)
    return ServerFacts(
        version, text, database, role, standby, sees_all, ahead, round_trip, *rest
    )  # fmt: skip


@operation(Begin.READING)
def _segments(tables: Sequence[TableFacts]) -> Steps[Sequence[TableFacts]]:
    """The same tables, with `unclaimed` and `kept` for the segments that are not current."""
    told = []
    for table in tables:
        unclaimed = kept = None
        if table.ring in {"log", "finished"} and table.size and not table.current:
            segment = int(table.name.rpartition("_")[2])
            if table.ring == "log":
                [(unclaimed,)] = yield UNCLAIMED(segment=segment)
            else:
                [(kept, _)] = yield FINISHED_SHARE(segment=segment)
        told.append(replace(table, unclaimed=unclaimed, kept=kept))
    return told
