"""A SQLite file: its version's bugs, its disk, its locks."""

from shlex import quote

from rota.doctor.amounts import count, duration, size
from rota.doctor.finding import Finding, Severity
from rota.store.health import SqliteFacts

WAL_RESET_FIXED = ((3, 51, 3), (3, 50, 7), (3, 44, 6))
"""Versions that cure the "WAL-reset bug" (sqlite.org/wal.html), and their own later patches."""

NETWORK = frozenset(
    {"9p", "afs", "ceph", "cifs", "fuse.sshfs", "glusterfs", "fuse.glusterfs", "lustre", "ncpfs",
     "nfs", "nfs4", "smb3", "smbfs"}
)  # fmt: skip
"""File systems on which SQLite's locks and shared memory cannot be trusted."""

LOG_LARGE, LOG_VERY_LARGE = 256 * 1024**2, 2 * 1024**3
"""Bytes of write-ahead log: warning, critical. Rota's upkeep keeps it below 64 MB."""

DISK_LOW, DISK_VERY_LOW = 1024**3, 100 * 1024**2
"""Bytes left on the disk: warning, critical."""

FREE_PART, FREE_SIZE = 0.5, 64 * 1024**2
"""Part of the file, and bytes, in free pages from which on the file could be smaller."""


def judge(facts: SqliteFacts) -> list[Finding]:
    """Everything about the file."""
    found = [
        _version(facts),
        _journal(facts),
        _file_system(facts),
        _disk(facts),
        _writing(facts),
        _log(facts),
        _pages(facts),
        _damage(facts),
    ]
    return [finding for finding in found if finding is not None]


def affected(version: str) -> bool:
    """Whether a version of SQLite has the WAL-reset bug: it came with 3.7.0."""
    parts = tuple(int(part) for part in version.split(".")[:3])
    if parts < (3, 7, 0) or parts >= WAL_RESET_FIXED[0]:
        return False
    return not any(parts[:2] == fixed[:2] and parts >= fixed for fixed in WAL_RESET_FIXED)


def _version(facts: SqliteFacts) -> Finding:
    if not affected(facts.version):
        return Finding(Severity.OK, "version", f"SQLite {facts.version}")
    own = (
        "There are other tables in the file, too: if other connections write to them, give Rota "
        "a file of its own, or this Python a newer SQLite."
        if facts.shared
        else "The file has only Rota's tables, so other programs hardly write to it."
    )
    return Finding(
        Severity.WARNING if facts.shared else Severity.NOTE,
        "version",
        f"SQLite {facts.version} has the WAL-reset bug (sqlite.org/wal.html)",
        "When two connections write and make a checkpoint at the same instant, a commit can be "
        f"lost. Rota's own connections avoid that, other connections do not. {own} "
        "It is fixed in versions 3.51.3, 3.50.7 and 3.44.6.",
        "python -c 'import sqlite3; print(sqlite3.sqlite_version)'",
    )


def _journal(facts: SqliteFacts) -> Finding | None:
    if facts.journal == "wal":
        return None
    return Finding(
        Severity.WARNING,
        "journal",
        f"The file is in journal mode {facts.journal}, not wal",
        "Readers and writers wait for each other. Change it while no worker runs.",
        f"sqlite3 {quote(facts.path)} 'PRAGMA journal_mode = wal'",
    )


def _file_system(facts: SqliteFacts) -> Finding | None:
    if facts.file_system not in NETWORK:
        return None
    return Finding(
        Severity.CRITICAL,
        "file system",
        f"The file is on a network file system ({facts.file_system})",
        "SQLite's locks do not hold there, and the file can be damaged. Use a local disk and one "
        "machine; several machines need PostgreSQL. Stop all workers before you move the file.",
        f"sqlite3 {quote(facts.path)} \"VACUUM INTO '/a/local/disk/rota.db'\"",
    )


def _disk(facts: SqliteFacts) -> Finding:
    left = f"{size(facts.disk_free)} are free on the disk"
    if facts.disk_free >= DISK_LOW:
        shown = f"The file is {size(facts.size)}, its log {size(facts.log_size)}; {left}"
        return Finding(Severity.OK, "disk", shown)
    return Finding(
        Severity.CRITICAL if facts.disk_free < DISK_VERY_LOW else Severity.WARNING,
        "disk",
        f"The disk is nearly full: {left}",
        f"The file is {size(facts.size)}, its log {size(facts.log_size)}. Without space no job "
        "can be enqueued or settled.",
        "df -h .",
    )


def _writing(facts: SqliteFacts) -> Finding | None:
    if facts.writing is None:
        if "write" not in facts.unseen:
            return Finding(Severity.OK, "lock", "The file can be written")
        return None
    writer = _processes(facts.writers) or "a process that the system does not name"
    return Finding(
        Severity.CRITICAL,
        "lock",
        f"{writer[0].upper()}{writer[1:]} has kept the write lock for more than "
        f"{duration(facts.writing)}",
        "Meanwhile no job can be enqueued, claimed or settled. A transaction was left open, or the "
        "process was stopped.",
        f"ps -fp {','.join(map(str, facts.writers))}"
        if facts.writers
        else f"fuser -v {quote(facts.path)}",
    )


def _log(facts: SqliteFacts) -> Finding | None:
    if facts.log_size < LOG_LARGE:
        return None
    readers = _processes(facts.readers)
    return Finding(
        Severity.CRITICAL if facts.log_size >= LOG_VERY_LARGE else Severity.WARNING,
        "log",
        f"The write-ahead log has grown to {size(facts.log_size)}",
        "SQLite cannot reuse its space: a read transaction stays open, or no worker is "
        "alive to make checkpoints." + (f" Reading at the moment: {readers}." if readers else ""),
        f"ps -fp {','.join(map(str, facts.readers))}"
        if facts.readers
        else f"sqlite3 {quote(facts.path)} 'PRAGMA wal_checkpoint(TRUNCATE)'",
    )


def _pages(facts: SqliteFacts) -> Finding | None:
    free = facts.free_pages * facts.page_size
    if free < FREE_SIZE or facts.free_pages < FREE_PART * facts.pages:
        return None
    return Finding(
        Severity.NOTE,
        "pages",
        f"{size(free)} of the file's {size(facts.size)} are free pages",
        "They are reused before the file grows. To free the space now, stop the workers; VACUUM "
        "needs as much space again while it runs.",
        f"sqlite3 {quote(facts.path)} VACUUM",
    )


def _damage(facts: SqliteFacts) -> Finding | None:
    if facts.damage is None:
        return None
    if not facts.damage:
        return Finding(Severity.OK, "integrity", "The quick check found no damage")
    return Finding(
        Severity.CRITICAL,
        "integrity",
        f"The file is damaged: {count(len(facts.damage), 'fault')} (at least)",
        f"{'; '.join(facts.damage[:3])}. Stop all workers and make a copy before you recover what "
        "is left.",
        f"sqlite3 {quote(facts.path)} .recover > recovered.sql",
    )


def _processes(pids: tuple[int, ...]) -> str:
    if not pids:
        return ""
    return f"process {pids[0]}" if len(pids) == 1 else f"processes {', '.join(map(str, pids))}"
