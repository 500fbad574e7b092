"""Rota's tables in PostgreSQL: whether housekeeping frees space, dead rows, sizes.

Users see no rings: a ring that cannot turn is space that housekeeping has not freed.
"""

from collections.abc import Iterator
from itertools import groupby

from rota.doctor.amounts import count, size
from rota.doctor.finding import Finding, Severity
from rota.doctor.work import START
from rota.store.health import PostgresFacts, TableFacts
from rota.store.serving import alive

MIB = 1024**2

LARGE = {"log": 64 * MIB, "cursor": 16 * MIB, "finished": 2048 * MIB, "history": 2048 * MIB}
"""Bytes that a current segment does not reach while its ring turns: twice the size at which upkeep
leaves it, and more for the cursor, which has small segments. The history turns by age alone: a day
of a thousand busy queues is 0.2 GB."""

LARGE_OTHERWISE = 64 * MIB

EXPIRED, EXPIRED_SHARE = 256 * MIB, 0.75
"""Bytes of finished jobs past their retention, and the share of all, beyond which they are named.
Housekeeping leaves no more than this share for long: see `store/postgres/long_kept.py`."""

PIECEMEAL = (
    "Housekeeping frees it piece by piece, within minutes; or within hours, if the last jobs of a "
    "piece are about to expire."
)

DEAD_ROWS = 100_000
"""Dead rows from which on a table of Rota's is named."""


def judge(facts: PostgresFacts) -> list[Finding]:
    """Space that is not freed, then dead rows, then all sizes together."""
    if not facts.tables:
        return []
    return [*_space(facts), *_dead_rows(facts), _sizes(facts)]


def stuck(facts: PostgresFacts) -> int:
    """How many segments hold space that could not be freed in time."""
    return sum(
        not table.current
        for ring, parts in _rings(facts)
        if _stuck(ring, parts, facts)
        for table in parts
    )


def _rings(facts: PostgresFacts) -> Iterator[tuple[str, list[TableFacts]]]:
    """The rings, with their segments."""
    segments = sorted((table for table in facts.tables if table.ring), key=lambda table: table.ring)
    for ring, members in groupby(segments, key=lambda table: table.ring):
        yield ring, list(members)


def _space(facts: PostgresFacts) -> list[Finding]:
    findings, fine = [], []
    for ring, parts in _rings(facts):
        if found := _stuck(ring, parts, facts) or _expired(ring, parts, facts):
            findings.append(found)
        else:
            past = _past(parts)
            of_it = f" ({size(past)} past its retention)" if past >= MIB else ""
            fine.append(f"{ring} {size(sum(table.total for table in parts))}{of_it}")
    if fine:
        title = f"Housekeeping frees space in time: {', '.join(fine)}"
        findings.append(Finding(Severity.OK, "space", title))
    return findings


def _stuck(ring: str, parts: list[TableFacts], facts: PostgresFacts) -> Finding | None:
    left = [table for table in parts if not table.current and table.size]
    current = next((table for table in parts if table.current), None)
    large = LARGE.get(ring, LARGE_OTHERWISE)
    if current is None or len(left) < len(parts) - 1 or current.size < large:
        return None
    severity, why, advice = _reason(ring, left, facts)
    total = size(sum(table.total for table in parts))
    return Finding(
        severity,
        "space",
        f"Housekeeping has not freed space for rota.{ring}, which has grown to {total}",
        f"{size(current.total)} of it in the newest part. Nothing is lost; the space is freed as "
        f"soon as old rows can be removed. {why}",
        advice,
    )


def _past(parts: list[TableFacts]) -> int:
    """Bytes of finished jobs that are past their retention, and still take space."""
    return int(sum((1 - table.kept) * table.total for table in parts if table.kept is not None))


def _expired(ring: str, parts: list[TableFacts], facts: PostgresFacts) -> Finding | None:
    past, total = _past(parts), sum(table.total for table in parts)
    if past < max(EXPIRED, EXPIRED_SHARE * total):
        return None
    left = [table for table in parts if table.kept is not None]
    severity, why, advice = _holding(left, facts) or (Severity.NOTE, PIECEMEAL, "rota doctor")
    return Finding(
        severity,
        "space",
        f"Most of rota.{ring} is past its retention: {size(past)} of {size(total)}",
        f"These jobs can no longer be seen, but still take space. {why}",
        advice,
    )


def _holding(left: list[TableFacts], facts: PostgresFacts) -> tuple[Severity, str, str] | None:
    """What keeps all space from being freed, whatever is in it."""
    names = {table.name for table in left}
    for holder in facts.holders:
        if touched := sorted(names & set(holder.touches)):
            if holder.kind == "prepared":
                locker = f"The prepared transaction {holder.name}"
                advice = "SELECT gid, prepared, owner, database FROM pg_prepared_xacts;"
            else:
                locker = f"Session {holder.pid}"
                advice = f"SELECT pg_terminate_backend({holder.pid});"
            return Severity.WARNING, f"{locker} has locked {', '.join(touched)}.", advice
    if "sessions" not in facts.unseen and not any(map(alive, facts.work.sessions)):
        return Severity.WARNING, "Workers remove old rows, but none is alive.", START
    return None


def _reason(ring: str, left: list[TableFacts], facts: PostgresFacts) -> tuple[Severity, str, str]:
    if holding := _holding(left, facts):
        return holding
    if ring == "log" and all(table.unclaimed for table in left):
        return (
            Severity.NOTE,
            "It is full of jobs that no worker has claimed: a backlog.",
            "rota queues list",
        )
    if ring == "finished":
        return (
            Severity.NOTE,
            "It is full of finished jobs; a shorter retention needs less space.",
            "rota jobs list --state completed",
        )
    return (
        Severity.WARNING,
        "No session has locked it: perhaps thousands of old jobs are still running.",
        "rota jobs list --state running",
    )


def _dead_rows(facts: PostgresFacts) -> list[Finding]:
    findings = []
    held = any(holder.age is not None for holder in facts.holders)
    why = (
        "An old snapshot is held (see horizon), so vacuum cannot remove them."
        if held
        else "Autovacuum has not run yet, or is off."
    )
    for table in facts.tables:
        if table.dead_rows < DEAD_ROWS:
            continue
        findings.append(
            Finding(
                Severity.WARNING,
                "dead rows",
                f"rota.{table.name} has {table.dead_rows:,} dead rows in {size(table.total)}",
                why,
                f"VACUUM (VERBOSE) rota.{table.name};",
            )
        )
    return findings


def _sizes(facts: PostgresFacts) -> Finding:
    total = sum(table.total for table in facts.tables)
    dead = sum(table.dead_rows for table in facts.tables)
    largest = sorted(facts.tables, key=lambda table: -table.total)[:3]
    names = ", ".join(f"{table.name} {size(table.total)}" for table in largest)
    return Finding(
        Severity.OK,
        "tables",
        f"Rota's tables take {size(total)} ({names}), {count(dead, 'dead row')}",
    )
