"""Holders of the oldest snapshot, and what they cost.

Vacuum may not remove rows that the oldest snapshot could still see. Rota's claims do not walk such
rows, and its segments are truncated all the same, unless the holder has locked them. Its small
tables (leases, timers, heartbeats) do keep their dead rows, and the rest of the database suffers.
"""

from rota.doctor.amounts import count, duration, size
from rota.doctor.finding import Finding, Severity, few
from rota.doctor.schema import identifier, literal
from rota.store.health import HolderFacts, PostgresFacts

OPEN_SOME_TIME, OPEN_LONG, OPEN_VERY_LONG = 60.0, 600.0, 86400.0
"""Seconds a transaction may be open: note, warning, critical. A prepared transaction that has
touched Rota's tables is a note at once, and a warning where others are notes: jobs depend on it."""

OLD, VERY_OLD = 1_000_000, 200_000_000
"""Transactions since a snapshot: warning, critical. At the latter PostgreSQL begins to freeze rows,
lest it run out of transaction ids (autovacuum_freeze_max_age); the holder hinders that, too."""

LOG_KEPT, LOG_KEPT_LARGE = 1024**3, 50 * 1024**3
"""Bytes of write-ahead log kept for an unread slot: warning, critical."""

SHOWN = 4
"""How many holders are shown."""


def judge(facts: PostgresFacts) -> list[Finding]:
    """One finding for each holder that matters, the worst first."""
    holders = sorted(
        facts.holders,
        key=lambda holder: (holder.seconds or 0, holder.age or holder.catalog_age or 0),
    )
    found = [
        _finding(holder, severity, facts)
        for holder in reversed(holders)
        if (severity := _severity(holder))
    ]
    findings = few(found, SHOWN, "holders of old snapshots")
    if not findings:
        findings = [Finding(Severity.OK, "horizon", f"No old snapshot is held{_oldest(facts)}")]
    if not facts.server.sees_all:
        findings.append(
            Finding(
                Severity.NOTE,
                "horizon",
                f"Role {facts.server.role} may not see what other roles' sessions do",
                "How long their transactions have been open is unknown.",
                f"GRANT pg_read_all_stats TO {identifier(facts.server.role)};",
            )
        )
    return findings


def _oldest(facts: PostgresFacts) -> str:
    known = [holder.seconds for holder in facts.holders if holder.seconds is not None]
    return f"; the oldest transaction is {duration(max(known))} old" if known else ""


def _severity(holder: HolderFacts) -> Severity:
    age = max(holder.age or 0, holder.catalog_age or 0)
    seconds = holder.seconds or 0.0
    unread = 0 if holder.active else holder.kept_log or 0
    if age >= VERY_OLD or seconds >= OPEN_VERY_LONG or unread >= LOG_KEPT_LARGE:
        return Severity.CRITICAL
    ours = holder.kind == "prepared" and bool(holder.touches)
    long = OPEN_SOME_TIME if ours else OPEN_LONG
    if age >= OLD or seconds >= long or unread >= LOG_KEPT:
        return Severity.WARNING
    if seconds >= OPEN_SOME_TIME or not holder.active or ours:
        return Severity.NOTE
    return Severity.OK


def _finding(holder: HolderFacts, severity: Severity, facts: PostgresFacts) -> Finding:
    before, step = _next(holder, facts)
    detail = " ".join(part for part in (_since(holder), _cost(holder, facts), before) if part)
    return Finding(severity, "horizon", _title(holder), detail, step)


def _title(holder: HolderFacts) -> str:
    match holder.kind:
        case "prepared":
            return (
                f"Prepared transaction {literal(holder.name)} of {holder.role} has been left "
                f"for {duration(holder.seconds)}"
            )
        case "slot":
            unread = "" if holder.active else ", which has no reader,"
            return f"Replication slot {holder.name}{unread} {_holds(holder)}"
        case "standby":
            return f"Standby {holder.name or holder.pid} holds back vacuum by its feedback"
        case "session":
            name = f" ({holder.name})" if holder.name else ""
            doing = f", {holder.state}," if holder.state else ""
            since = "" if holder.seconds is None else f" open for {duration(holder.seconds)}"
            return (
                f"Session {holder.pid} of {holder.role or 'an unknown role'}{name}{doing} "
                f"has a transaction{since}"
            )


def _holds(holder: HolderFacts) -> str:
    kept = f"keeps {size(holder.kept_log or 0)} of write-ahead log"
    if holder.age is not None:
        return f"holds back vacuum and {kept}"
    if holder.catalog_age is not None:
        return f"holds back vacuum of the system's catalogs and {kept}"
    return kept


def _since(holder: HolderFacts) -> str:
    if holder.age is not None:
        return f"{count(holder.age, 'transaction')} since its snapshot."
    if holder.catalog_age is not None:
        return f"{count(holder.catalog_age, 'transaction')} since its snapshot of the catalogs."
    return ""


def _cost(holder: HolderFacts, facts: PostgresFacts) -> str:
    parts = []
    if holder.age is not None:
        ours = sum(table.dead_rows for table in facts.tables)
        others = max(0, facts.dead_rows - ours)
        parts.append(
            f"Until it ends, vacuum keeps dead rows: up to {ours:,} in Rota's tables, where claims "
            f"do not walk them, and up to {others:,} in the others."
        )
    elif holder.catalog_age is not None:
        parts.append("Only dead rows of the system's catalogs stay; Rota is not affected.")
    if holder.touches and holder.kind == "prepared":
        parts.append(
            "Until it is committed or rolled back, jobs that it completes stay running, and jobs "
            "that it enqueues stay invisible."
        )
    if holder.touches:
        parts.append(
            f"It has locked {', '.join(holder.touches)}: no space is freed there before it ends."
        )
    elif holder.age is not None and holder.kind in {"session", "prepared"}:
        parts.append("It does not keep Rota from freeing space.")
    return " ".join(parts)


def _next(holder: HolderFacts, facts: PostgresFacts) -> tuple[str, str]:
    """What to know before the next step, and the step."""
    match holder.kind:
        case "prepared":
            name = literal(holder.name)
            before = (
                f"The program that prepared it may want COMMIT PREPARED {name} instead. Both work "
                f"only in database {facts.server.database}."
            )
            return before, f"ROLLBACK PREPARED {name};"
        case "slot" if holder.active:
            return "Its reader lags behind.", "SELECT * FROM pg_stat_replication;"
        case "slot":
            return (
                "Drop it if its reader will not come back.",
                f"SELECT pg_drop_replication_slot({literal(holder.name)});",
            )
        case "standby":
            return (
                "On the standby itself, end its query or turn off its feedback.",
                "ALTER SYSTEM SET hot_standby_feedback = off; SELECT pg_reload_conf();",
            )
        case "session":
            return "", f"SELECT pg_terminate_backend({holder.pid});"
