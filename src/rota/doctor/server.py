"""PostgreSQL itself: its version, its clock, its connections and notifications."""

from collections.abc import Mapping

from rota.doctor.amounts import duration
from rota.doctor.finding import Finding, Severity
from rota.store.health import PostgresFacts, ServerFacts

OLDEST, NEWEST = 140000, 190000
"""The first version that Rota supports, and the first that it was not tested with."""

CLOCK = 5.0
"""Seconds by which clocks may differ, plus half of the round trip."""

CONNECTIONS = 0.9
"""Share of all connections that may be taken."""

NOTIFICATIONS, NOTIFICATIONS_FULL = 0.5, 0.9
"""How full the queue of notifications may be: warning, critical."""

FROZEN_AGE, FROZEN_AGE_LARGE = 1_000_000_000, 1_800_000_000
"""Transactions since the oldest unfrozen row: warning, critical. PostgreSQL stops at 2**31."""


LIST_SESSIONS = (
    "SELECT usename, application_name, state, count(*) FROM pg_stat_activity "
    "GROUP BY 1, 2, 3 ORDER BY 4 DESC;"
)


def judge(facts: PostgresFacts, *, hears: bool | None) -> list[Finding]:
    """The server and this connection to it."""
    server = facts.server
    found = [
        _version(server),
        _clock(server),
        _connections(server, facts.settings),
        _notifications(server),
        _frozen(server),
        None if server.standby else notify(hears=hears),  # there is no LISTEN on a standby
    ]
    if server.standby:
        found.append(
            Finding(
                Severity.CRITICAL,
                "server",
                "This server is a standby and takes no writes",
                "Jobs cannot be enqueued or claimed here. Give the URL of the primary.",
                "rota doctor --url URL",
            )
        )
    if facts.foreign:
        found.append(
            Finding(
                Severity.WARNING,
                "origin",
                "Rota's tables were restored here from a dump",
                "The transaction ids in them mean nothing here. The first worker to start repairs that; "
                "until then jobs may stay unclaimed.",
                "rota worker MODULE:APP",
            )
        )
    return [finding for finding in found if finding is not None]


def _version(server: ServerFacts) -> Finding:
    name = f"PostgreSQL {server.version_text}"
    if server.version < OLDEST:
        return Finding(
            Severity.CRITICAL,
            "server",
            f"{name} is too old",
            "Rota needs PostgreSQL 14 or later: upgrade the server.",
            "SELECT version();",
        )
    if server.version >= NEWEST:
        return Finding(
            Severity.NOTE, "server", f"{name} is newer than the versions Rota was tested with"
        )  # fmt: skip
    return Finding(
        Severity.OK, "server", f"{name}, database {server.database}, as {server.role}"
    )  # fmt: skip


def _clock(server: ServerFacts) -> Finding:
    off = abs(server.ahead)
    way = "ahead of" if server.ahead > 0 else "behind"
    if off <= CLOCK + server.round_trip / 2:
        return Finding(
            Severity.OK, "clock", f"The server's clock is {duration(off)} {way} this machine's"
        )
    return Finding(
        Severity.WARNING,
        "clock",
        f"The server's clock is {duration(off)} {way} this machine's",
        "Rota uses the server's time; a time that a program here computes for a delayed job "
        "is off by as much. Is the time synchronised? Look on both machines.",
        "timedatectl status",
    )


def _connections(server: ServerFacts, settings: Mapping[str, str]) -> Finding | None:
    limit = int(settings.get("max_connections", 0))
    limit -= int(settings.get("superuser_reserved_connections", 0))
    limit -= int(settings.get("reserved_connections", 0))
    if limit <= 0:
        return None
    taken = f"{server.connections} of {limit} connections are in use"
    if server.connections < CONNECTIONS * limit:
        return Finding(Severity.OK, "connections", taken)
    return Finding(
        Severity.WARNING,
        "connections",
        taken,
        "Soon the server will refuse new connections. Each worker has five.",
        LIST_SESSIONS,
    )


def _notifications(server: ServerFacts) -> Finding | None:
    if server.notifications < NOTIFICATIONS:
        return None
    return Finding(
        Severity.CRITICAL if server.notifications >= NOTIFICATIONS_FULL else Severity.WARNING,
        "notifications",
        f"The server's queue of notifications is {server.notifications:.0%} full",
        "A session that listens is in a long transaction. When the queue is full, commits that "
        "notify fail, and enqueueing with them. The server's log names that session.",
        "SELECT pid, usename, xact_start, query FROM pg_stat_activity WHERE xact_start IS NOT "
        "NULL ORDER BY xact_start;",
    )


def _frozen(server: ServerFacts) -> Finding | None:
    if server.frozen_age < FROZEN_AGE:
        return None
    return Finding(
        Severity.CRITICAL if server.frozen_age >= FROZEN_AGE_LARGE else Severity.WARNING,
        "freeze",
        f"The oldest unfrozen transaction id of this database is {server.frozen_age:,} old",
        "At about 2,147,000,000 the server takes no more writes. Vacuum freezes old ids, unless "
        "an old snapshot is held. The owner of this database can run it by hand.",
        "VACUUM (FREEZE);",
    )


def notify(*, hears: bool | None) -> Finding:
    """Whether notifications come through."""
    if hears:
        return Finding(Severity.OK, "notify", "NOTIFY arrives through this connection")
    if hears is None:
        return Finding(
            Severity.NOTE,
            "notify",
            "Workers with this URL poll once a second and do not listen",
            "The URL says pooler=transaction. A job on an idle worker starts up to a second late.",
        )
    return Finding(
        Severity.WARNING,
        "notify",
        "NOTIFY does not arrive through this connection",
        "LISTEN succeeded, but no notification came within a second: a pooler swallows it. "
        "Jobs on an idle worker start up to a second late, and other settings may leak, too. Give "
        "workers the server's own address, or add pooler=transaction to the URL.",
        "rota doctor --url URL",
    )
