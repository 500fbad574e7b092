"""Rota's tables in PostgreSQL: whether the rings turn, dead rows, sizes."""

from itertools import groupby

from rota.doctor.amounts import count, size
from rota.doctor.finding import Finding, Severity
from rota.doctor.work import START, alive
from rota.store.health import PostgresFacts, TableFacts

MIB = 1024**2

LARGE = {"log": 64 * MIB, "cursor": 16 * MIB, "finished": 2048 * MIB}
"""Bytes a current segment of each ring does not reach while the ring turns: twice those at which it
is left, and more for the cursor, whose segments are small."""

LARGE_OTHERWISE = 64 * MIB

DEAD_ROWS = 100_000
"""So many rows in one of Rota's tables wait for vacuum before it is named."""


def judge(facts: PostgresFacts) -> list[Finding]:
    """The rings, then dead rows, then all sizes together."""
    if not facts.tables:
        return []
    return [*_rings(facts), *_dead_rows(facts), _sizes(facts)]


def _rings(facts: PostgresFacts) -> list[Finding]:
    segments = sorted((one for one in facts.tables if one.ring), key=lambda one: one.ring)
    findings, fine = [], []
    for ring, members in groupby(segments, key=lambda one: one.ring):
        parts = list(members)
        if stuck := _stuck(ring, parts, facts):
            findings.append(stuck)
        else:
            used = [one for one in parts if one.size]
            total = size(sum(one.total for one in parts))
            fine.append(f"{ring} has {len(used)} of {len(parts)} segments in use, {total}")
    if fine:
        findings.append(Finding(Severity.OK, "rings", f"The rings turn: {'; '.join(fine)}"))
    return findings


def _stuck(ring: str, parts: list[TableFacts], facts: PostgresFacts) -> Finding | None:
    left = [one for one in parts if not one.current and one.size]
    current = next((one for one in parts if one.current), None)
    large = LARGE.get(ring, LARGE_OTHERWISE)
    if current is None or len(left) < len(parts) - 1 or current.size < large:
        return None
    severity, why, advice = _reason(ring, left, facts)
    return Finding(
        severity,
        "rings",
        f"The ring {ring} is full and cannot turn; its current segment has grown to "
        f"{size(current.total)}",
        f"Altogether {size(sum(one.total for one in parts))}. Nothing is lost; the space comes "
        f"back when it turns again. {why}",
        advice,
    )


def _reason(ring: str, left: list[TableFacts], facts: PostgresFacts) -> tuple[Severity, str, str]:
    names = {one.name for one in left}
    for holder in facts.holders:
        if touched := sorted(names & set(holder.touches)):
            if holder.kind == "prepared":
                who = f"The prepared transaction {holder.name}"
                advice = "SELECT gid, prepared, owner, database FROM pg_prepared_xacts;"
            else:
                who, advice = f"Session {holder.pid}", f"SELECT pg_terminate_backend({holder.pid});"
            return Severity.WARNING, f"{who} has locked {', '.join(touched)}.", advice
    if "sessions" not in facts.unseen and not any(map(alive, facts.work.sessions)):
        return Severity.WARNING, "No worker is alive, and they turn the rings.", START
    if ring == "log" and all(one.unclaimed for one in left):
        return (
            Severity.NOTE,
            "Every segment holds jobs that no worker has claimed: a backlog.",
            "rota queues list",
        )
    if ring == "finished":
        return (
            Severity.NOTE,
            "Every segment holds finished jobs; a shorter retention needs less space.",
            "rota jobs list --state completed",
        )
    return (
        Severity.WARNING,
        "Nobody has locked a segment: perhaps more than 2,000 running jobs lie in each.",
        "rota jobs list --state running",
    )


def _dead_rows(facts: PostgresFacts) -> list[Finding]:
    findings = []
    held = any(one.age is not None for one in facts.holders)
    why = (
        "Somebody holds an old snapshot (see there), so vacuum cannot remove them."
        if held
        else "Autovacuum has not come by yet, or is off."
    )
    for one in facts.tables:
        if one.dead_rows < DEAD_ROWS:
            continue
        findings.append(
            Finding(
                Severity.WARNING,
                "dead rows",
                f"rota.{one.name} has {one.dead_rows:,} dead rows in {size(one.total)}",
                why,
                f"VACUUM (VERBOSE) rota.{one.name};",
            )
        )
    return findings


def _sizes(facts: PostgresFacts) -> Finding:
    total = sum(one.total for one in facts.tables)
    dead = sum(one.dead_rows for one in facts.tables)
    largest = sorted(facts.tables, key=lambda one: -one.total)[:3]
    names = ", ".join(f"{one.name} {size(one.total)}" for one in largest)
    return Finding(
        Severity.OK,
        "tables",
        f"Rota's tables take {size(total)} ({names}), {count(dead, 'dead row')}",
    )
