"""Facts for the tests of the judgement: healthy ones, and ways to make them worse."""

from typing import Any

from rota.doctor.examine import judge
from rota.doctor.finding import Finding, Severity
from rota.store.health import (
    HolderFacts,
    LaneFacts,
    PostgresFacts,
    ServerFacts,
    SessionFacts,
    SqliteFacts,
    TableFacts,
    WorkFacts,
)

SERVER: dict[str, Any] = {
    "version": 150018,
    "version_text": "15.18",
    "database": "shop",
    "role": "rota",
    "standby": False,
    "sees_all": True,
    "ahead": 0.01,
    "round_trip": 0.002,
    "connections": 10,
    "notifications": 0.0,
    "frozen_age": 1000,
}
SETTINGS = {
    "autovacuum": "on",
    "track_counts": "on",
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "idle_in_transaction_session_timeout": "600000",
    "default_transaction_read_only": "off",
    "max_connections": "100",
    "superuser_reserved_connections": "3",
}
FILE: dict[str, Any] = {
    "path": "/srv/rota.db",
    "version": "3.51.3",
    "shared": False,
    "journal": "wal",
    "size": 53248,
    "log_size": 0,
    "page_size": 4096,
    "pages": 13,
    "free_pages": 0,
    "disk_free": 10 * 1024**3,
    "file_system": "ext4",
    "writing": None,
    "writers": (),
    "readers": (),
    "damage": None,
}


def session(**changes: Any) -> SessionFacts:
    """A worker in good health."""
    healthy: dict[str, Any] = {
        "id": 7,
        "worker": "web1:4242",
        "queues": ("default", "mail"),
        "timeout": 15.0,
        "silent": 1.0,
        "leased": 3,
        "oldest_lease": 2.0,
        "open": 3600.0,
    }
    return SessionFacts(**healthy | changes)


def lane(**changes: Any) -> LaneFacts:
    """A lane without jobs."""
    empty: dict[str, Any] = {"queue": "mail", "priority": 0, "paused": False, "oldest": None}
    return LaneFacts(**empty | changes)


def work(**changes: Any) -> WorkFacts:
    """One worker, and nothing to do."""
    healthy: dict[str, Any] = {"schema": 1, "newest": 1, "sessions": (session(),)}
    return WorkFacts(**healthy | changes)


def table(name: str, **changes: Any) -> TableFacts:
    """An empty table; names such as log_0 are segments of a ring."""
    ring, _, number = name.rpartition("_")
    empty: dict[str, Any] = {
        "ring": ring if number.isdigit() else "",
        "current": number == "0",
        "size": 0,
        "total": 8192,
        "dead_rows": 0,
    }
    return TableFacts(name=name, **empty | changes)


TABLES = (
    *(table(f"log_{number}") for number in range(4)),
    *(table(f"cursor_{number}") for number in range(2)),
    *(table(f"finished_{number}") for number in range(6)),
    table("lease"),
    table("timer"),
)


def postgres(server: dict[str, Any] | None = None, **changes: Any) -> PostgresFacts:
    """A PostgreSQL database in good health."""
    healthy: dict[str, Any] = {"work": work(), "settings": SETTINGS, "tables": TABLES}
    return PostgresFacts(server=ServerFacts(**SERVER | (server or {})), **healthy | changes)


def holder(**changes: Any) -> HolderFacts:
    """A session that has forgotten to commit an hour ago."""
    forgotten: dict[str, Any] = {
        "kind": "session",
        "pid": 4711,
        "name": "psql",
        "role": "ann",
        "state": "idle in transaction",
        "seconds": 3600.0,
        "age": 5000,
    }
    return HolderFacts(**forgotten | changes)


def sqlite(**changes: Any) -> SqliteFacts:
    """A SQLite file in good health."""
    return SqliteFacts(**FILE | {"work": work()} | changes)


def wrong(facts: PostgresFacts | SqliteFacts, *, hears: bool | None = True) -> list[Finding]:
    """The findings that are not in order."""
    return [found for found in judge(facts, hears=hears) if found.severity > Severity.OK]


def only(facts: PostgresFacts | SqliteFacts, *, hears: bool | None = True) -> Finding:
    """The only finding that is not in order."""
    [found] = wrong(facts, hears=hears)
    return found
