"""What a store can tell about its health: facts alone, which `rota.doctor` judges.

Durations are in seconds, sizes in bytes, ages of transactions in transaction ids. `None` is what
the database does not know, or does not show to this role.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from rota.model.job import JobId

Unseen = Mapping[str, str]
"""The parts that could not be looked at, by their name, and why."""

MOST_JOBS = 1000
"""Up to how many jobs of a task in a queue are counted."""

EVERY = 2**62
"""The same where all of them are."""

OPEN, STOPPING = 60.0, 600.0
"""Seconds for which a flow's node is open, or a flow is being cancelled, before a look into it."""


@dataclass(frozen=True, slots=True)
class LaneFacts:
    """One queue and priority, and how long ago the next job in it was enqueued.

    Attributes:
        task: The task of these jobs, where a worker that did not know it has passed them on.
    """

    queue: str
    priority: int
    paused: bool
    oldest: float | None
    task: str | None = None


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """Jobs of one task that wait in a queue, passed on by workers that did not know the task.

    Attributes:
        jobs: How many they are; from `MOST_JOBS` on there may be more.
        oldest: Seconds since the first of them was enqueued.
        knowing: The sessions that know the task, or do not say which tasks they know.
    """

    queue: str
    task: str
    jobs: int
    oldest: float
    knowing: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """A worker that has not closed its session: when it was last heard of, and what it holds.

    Attributes:
        open: Seconds since it began.
    """

    id: int
    worker: str
    queues: tuple[str, ...]
    timeout: float
    silent: float
    leased: int
    oldest_lease: float | None
    open: float = 0.0


class HeldFacts(NamedTuple):
    """A job that a worker holds: which attempt it is, and for how many seconds, if that is noted."""

    session: int
    job: JobId
    task: str
    queue: str
    attempt: int
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class RescueFacts:
    """Jobs of one task that were alone when their worker died, within the last hour.

    `last` is how many seconds ago that happened last, `job` the newest of them.
    """

    task: str
    jobs: int
    last: float
    job: JobId


class TransferFacts(NamedTuple):
    """Transfers that no mover finished: how many, how many seconds the first waits, and its job."""

    transfers: int
    oldest: float
    job: JobId


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node of a running flow that was released some time ago and has not ended.

    Attributes:
        seconds: Since it was released.
        left: How many of its jobs have not said that they ended.
        passed_by: Whether all have, and workers have looked since then without deciding that it has
            ended.
        gone: Whether some have not, and none of its jobs is there any more.
    """

    flow: int
    flow_name: str
    node: str
    task: str
    queue: str
    seconds: float
    left: int
    passed_by: bool = False
    gone: bool = False


class StopFacts(NamedTuple):
    """A flow that has been cancelled for so many seconds and has not ended."""

    flow: int
    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class WorkFacts:
    """What every store knows: its version, its queues, its workers.

    Attributes:
        schema: Version of Rota's tables; 0 where there are none.
        newest: The version that this Rota needs.
        oldest_code: The oldest version whose code works with the tables, where they are newer than
            this Rota.
        overdue: For how long the first job in the timer has been due; None if none is.
        passed_on: Jobs of tasks that some worker did not know.
        keys: How many keys of limits and fair shares each queue has in use: with jobs that wait, on
            PostgreSQL also with those that run or have just ended.
        nodes: Nodes of flows that have not ended for `OPEN` seconds, the oldest first, up to a
            bound.
        stops: Flows that do not stop.
        transfers: Of jobs that are on their way to another database; None if there are none.
    """

    schema: int
    newest: int
    lanes: tuple[LaneFacts, ...] = ()
    sessions: tuple[SessionFacts, ...] = ()
    rescued: tuple[RescueFacts, ...] = ()
    overdue: float | None = None
    passed_on: tuple[TaskFacts, ...] = ()
    keys: tuple[tuple[str, int], ...] = ()
    oldest_code: int = 0
    nodes: tuple[NodeFacts, ...] = ()
    stops: tuple[StopFacts, ...] = ()
    transfers: TransferFacts | None = None


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """A PostgreSQL server, and this connection to it.

    Attributes:
        sees_all: Whether the role may see what other roles' sessions do.
        ahead: Seconds by which the server's clock is ahead of this machine's.
        round_trip: Seconds one statement took; `ahead` is no more exact than half of it.
        notifications: How full the server's queue of notifications is, from 0 to 1.
        frozen_age: Transactions since the oldest one that is not frozen yet in this database.
    """

    version: int
    version_text: str
    database: str
    role: str
    standby: bool
    sees_all: bool
    ahead: float
    round_trip: float
    connections: int
    notifications: float
    frozen_age: int


HolderKind = Literal["session", "prepared", "slot", "standby"]


@dataclass(frozen=True, slots=True)
class HolderFacts:
    """What keeps vacuum from removing rows, or a segment from being truncated.

    Attributes:
        kind: `session`, `prepared` (a prepared transaction), `slot` (a replication slot) or
            `standby` (the feedback of one without a slot).
        name: The prepared transaction's identifier, the slot's name, else the application's.
        seconds: How long its transaction is open.
        age: Transactions since its snapshot; None if it holds no rows back.
        catalog_age: The same for the system's catalogs alone (logical slots).
        touches: Tables of Rota's rings that it has locked; they cannot be truncated.
        active: Whether a client is connected to the slot.
        kept_log: Bytes of write-ahead log that are kept for the slot.
    """

    kind: HolderKind
    pid: int | None = None
    name: str = ""
    role: str = ""
    state: str = ""
    seconds: float | None = None
    age: int | None = None
    catalog_age: int | None = None
    writes: bool = False
    touches: tuple[str, ...] = ()
    active: bool = True
    kept_log: int | None = None


@dataclass(frozen=True, slots=True)
class HorizonFacts:
    """What keeps old rows from being removed, as far as this role may see.

    Attributes:
        holders: In no order; none on SQLite.
        hidden: How many sessions this role may not look into.
        log_size: Bytes of SQLite's write-ahead log; None on PostgreSQL.
    """

    holders: tuple[HolderFacts, ...] = ()
    hidden: int = 0
    log_size: int | None = None


@dataclass(frozen=True, slots=True)
class TableFacts:
    """One of Rota's tables.

    Attributes:
        ring: The partitioned table it is a segment of, if that is a ring; else "".
        current: Whether new rows go to this segment.
        size: Bytes without indexes.
        total: Bytes with indexes.
        unclaimed: Whether a segment of the job log has jobs that no worker has claimed.
        kept: The share of a segment of finished jobs that is within its retention, estimated.
    """

    name: str
    ring: str
    current: bool
    size: int
    total: int
    dead_rows: int
    unclaimed: bool | None = None
    kept: float | None = None


@dataclass(frozen=True, slots=True)
class MissingRights:
    """Rights on Rota's schema, or on an object in it, that a worker needs and this role lacks."""

    kind: Literal["schema", "table", "view", "sequence"]
    name: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReplicationFacts:
    """A publication or a subscription that has tables of Rota's.

    Attributes:
        all_tables: Whether a publication is for all tables.
        tables: Those that a publication names itself; none where it has the whole schema.
    """

    kind: Literal["publication", "subscription"]
    name: str
    all_tables: bool
    tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WaitFacts:
    """A session that waits for a lock while it uses Rota's tables, and what blocks it."""

    pid: int
    application: str
    seconds: float | None
    blockers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PostgresFacts:
    """A PostgreSQL database.

    Attributes:
        settings: The server's settings as a new session of this role has them, in base units.
        rights: What a worker needs and this role lacks.
        replication: Logical replication of Rota's tables.
        dead_rows: Rows that were updated or deleted and wait for vacuum, in all tables here.
        foreign: Whether the tables came here from another cluster, by dump and restore.
    """

    server: ServerFacts
    work: WorkFacts
    settings: Mapping[str, str] = field(default_factory=dict)
    holders: tuple[HolderFacts, ...] = ()
    tables: tuple[TableFacts, ...] = ()
    waits: tuple[WaitFacts, ...] = ()
    rights: tuple[MissingRights, ...] = ()
    replication: tuple[ReplicationFacts, ...] = ()
    dead_rows: int = 0
    foreign: bool = False
    unseen: Unseen = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SqliteFacts:
    """A SQLite file.

    Attributes:
        shared: Whether there are other tables than Rota's in it.
        file_system: Of the folder, such as "ext4"; None where the system does not tell.
        free_pages: Of `pages`: they are used again before the file grows.
        disk_free: Bytes left on the disk.
        writing: Seconds spent waiting in vain for the write lock; None if it was free in time.
        writers: Processes that hold the write lock, where the system tells.
        readers: Processes that were reading the write-ahead log at that moment.
        damage: What the integrity check found; None if it was not asked for.
    """

    path: str
    version: str
    shared: bool
    journal: str
    size: int
    log_size: int
    page_size: int
    pages: int
    free_pages: int
    disk_free: int
    file_system: str | None
    writing: float | None
    writers: tuple[int, ...]
    readers: tuple[int, ...]
    work: WorkFacts
    unseen: Unseen = field(default_factory=dict)
    damage: tuple[str, ...] | None = None


Facts = PostgresFacts | SqliteFacts
