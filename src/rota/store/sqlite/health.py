"""Looking at the file's health: facts for `rota doctor`. Counts no jobs.

The holders of SQLite's locks are in Linux's /proc/locks: in WAL mode a lock is a range of bytes of
the file `-shm` (sqlite.org/walformat.html, "WAL locks"). Asking the kernel for one with fcntl would
need that file opened and closed here, and closing it would drop the locks of this process's own
connections.
"""

import os
import shutil
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec

from rota.errors import RotaError, SchemaIncomplete, SchemaMissing, StoreError, StoreUnavailable
from rota.model.transfer import NEVER
from rota.model.transfer import TASK as TRANSFER
from rota.store.health import (
    MOST_JOBS,
    OPEN,
    STOPPING,
    Facts,
    LaneFacts,
    NodeFacts,
    RescueFacts,
    SessionFacts,
    SqliteFacts,
    StopFacts,
    TaskFacts,
    TransferFacts,
    WorkFacts,
)
from rota.store.operation import Begin, Steps, operation
from rota.store.sqlite.connection import SqliteConnection
from rota.store.sqlite.schema import found_oldest_code, found_version
from rota.store.sqlite.statements import sql

FILE = sql("health/health_file")
JOURNAL = sql("health/health_journal")
CHECK = sql("health/health_check")
TURN = sql("health/health_turn")
SESSIONS = sql("health/health_sessions")
LANES = sql("health/health_lanes")
PASSED_ON = sql("health/health_passed_on")
RESCUED = sql("health/health_rescued")
TRANSFERS = sql("health/health_transfers")
KEYS = sql("health/health_keys")
FLOWS = sql("health/health_flows")
STOPS = sql("health/health_stops")
STAGE_NEXT = sql("stage/stage_next")

TURN_PATIENCE = 1.0
"""Seconds to wait for a turn at writing."""

WRITE_BYTE = 120
READ_BYTES = range(123, 128)
"""The bytes of `-shm` that writers and readers lock."""

LOCKS = Path("/proc/locks")
MOUNTS = Path("/proc/self/mounts")


@operation(Begin.NOTHING)
def health(path: str, newest: int) -> Steps[Facts]:
    """Everything there is to know, but for the integrity of the file.

    Raises:
        StoreError: It is not a database, or cannot be opened.
    """
    unseen: dict[str, str] = {}
    [(version, page_size, pages, free_pages, others)] = yield FILE()
    [(journal,)] = yield JOURNAL()
    work = yield from _work(newest, unseen)
    writing = None
    try:
        writing = _waited(path)
    except SchemaMissing:  # the turn was free, and there is no table to write to yet
        pass
    except RotaError as error:
        unseen["write"] = str(error)
    writers, readers = lock_holders(path + "-shm")
    return SqliteFacts(
        path=path,
        version=version,
        shared=bool(others),
        journal=journal,
        size=_size(path),
        log_size=log_size(path),
        page_size=page_size,
        pages=pages,
        free_pages=free_pages,
        disk_free=shutil.disk_usage(Path(path).parent).free,
        file_system=file_system(path),
        writing=writing,
        writers=writers,
        readers=readers,
        work=work,
        unseen=unseen,
    )


def _work(newest: int, unseen: dict[str, str]) -> Steps[WorkFacts]:
    try:
        found = yield from found_version()
    except SchemaIncomplete as error:
        unseen["version"] = str(error)
        found = 0
    if not found:
        return WorkFacts(0, newest)
    oldest = (yield from found_oldest_code()) if found > newest else 0
    try:
        sessions = yield SESSIONS()
        lanes = yield LANES()
        rescued = yield RESCUED()
        passed_on = yield PASSED_ON(most=MOST_JOBS)
        keys = yield KEYS()
        nodes = yield FLOWS(least=OPEN)
        stops = yield STOPS(least=STOPPING)
        transfers = yield TRANSFERS(never=NEVER.timestamp(), task=TRANSFER)
        [(due,)] = yield STAGE_NEXT()
    except RotaError as error:  # tables of another version
        unseen["work"] = str(error)
        return WorkFacts(found, newest, oldest_code=oldest)
    return WorkFacts(
        schema=found,
        newest=newest,
        lanes=tuple(lane(row) for row in lanes),
        sessions=tuple(session(row) for row in sessions),
        rescued=tuple(RescueFacts(*row) for row in rescued),
        passed_on=tuple(passed(row) for row in passed_on),
        overdue=-due if due is not None and due < 0 else None,
        keys=tuple((queue, count) for queue, count in keys),
        oldest_code=oldest,
        nodes=tuple(
            NodeFacts(*[*facts, bool(passed), bool(gone)]) for *facts, passed, gone in nodes
        ),
        stops=tuple(StopFacts(*row) for row in stops),
        transfers=next((TransferFacts(*row) for row in transfers), None),
    )


@operation(Begin.NOTHING)
def integrity() -> Steps[tuple[str, ...] | None]:
    """Read the whole file; the faults that were found in it."""
    try:
        return tuple(row[0] for row in (yield CHECK()) if row[0] != "ok")
    except StoreError as error:  # so damaged that not even the check comes to its end
        return (str(error.__cause__ or error),)


def lane(row: Sequence[Any]) -> LaneFacts:
    """A row of `health_lanes.sql`."""
    queue, priority, paused, oldest, task = row
    return LaneFacts(queue, priority, bool(paused), oldest, task)


def session(row: Sequence[Any]) -> SessionFacts:
    """A row of `health_sessions.sql`; the times of leases are not noted."""
    number, worker, queues, timeout, silent, leased, opened = row
    names = tuple(msgspec.json.decode(queues))
    return SessionFacts(number, worker, names, timeout, silent, leased, None, opened)


def passed(row: Sequence[Any]) -> TaskFacts:
    """A row of `health_passed_on.sql`."""
    queue, task, jobs, oldest, knowing = row
    return TaskFacts(queue, task, jobs, oldest, tuple(msgspec.json.decode(knowing)))


def log_size(path: str) -> int:
    """Bytes of the write-ahead log."""
    return _size(path + "-wal")


def _waited(path: str) -> float | None:
    """Seconds spent waiting in vain for a turn at writing; None if there was one in time."""
    began = time.monotonic()
    with closing(SqliteConnection(path, patience=TURN_PATIENCE)) as writer:
        try:
            writer.run(_turn())
        except StoreUnavailable:
            return time.monotonic() - began
    return None


@operation(Begin.HASTY)
def _turn() -> Steps[None]:
    yield TURN()


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def lock_holders(path: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The processes that hold a file's write lock and its read locks, where the system tells."""
    writers, readers = set(), set()
    with suppress(OSError, ValueError):
        inode = Path(path).stat().st_ino
        for line in LOCKS.read_text("ascii").splitlines():
            words = line.split()
            # "12: POSIX  ADVISORY  WRITE 4711 fd:01:1234 120 120"; a waiting one has "->".
            if "->" in words or words[5].rpartition(":")[2] != str(inode) or words[7] == "EOF":
                continue
            pid, first, last = int(words[4]), int(words[6]), int(words[7])
            if pid in {0, os.getpid()}:  # 0: of another container
                continue
            if words[3] == "WRITE" and first <= WRITE_BYTE <= last:
                writers.add(pid)
            elif first in READ_BYTES:
                readers.add(pid)
    return tuple(sorted(writers)), tuple(sorted(readers))


def file_system(path: str) -> str | None:
    """The kind of file system that a file is on, such as "ext4" or "nfs4"."""
    try:
        lines = MOUNTS.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    found, longest = None, -1
    for line in lines:
        _, point, kind = line.split(" ")[:3]
        point = point.replace("\\040", " ")
        if Path(path).is_relative_to(point) and len(point) >= longest:
            found, longest = kind, len(point)
    return found
