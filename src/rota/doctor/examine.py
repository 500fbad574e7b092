"""From a store to findings."""

from dataclasses import dataclass, replace

from rota.doctor import (
    file,
    horizon,
    replication,
    rights,
    schema,
    server,
    settings,
    tables,
    waits,
    work,
)
from rota.doctor.finding import Finding, Severity, worst_first
from rota.errors import RotaError
from rota.store.connections import Connection
from rota.store.health import Facts, PostgresFacts, SqliteFacts
from rota.store.protocol import Store

PROBE = 1.0
"""Seconds a notification may take to come back."""


@dataclass(frozen=True, slots=True)
class Report:
    """The findings, the worst first, and the facts that they judge."""

    findings: list[Finding]
    facts: Facts


def examine(store: Store, connection: Connection, *, thorough: bool = False) -> Report:
    """Look at a database's health.

    Raises:
        StoreUnavailable: The database cannot be reached.
    """
    facts = connection.run(store.health())
    if thorough and isinstance(facts, SqliteFacts):
        facts = replace(facts, damage=connection.run(store.integrity()))
    refused: list[Finding] = []
    hears = None
    try:
        if not (isinstance(facts, PostgresFacts) and facts.server.standby):
            hears = store.hears(PROBE)
    except RotaError as error:
        refused = [
            Finding(
                Severity.WARNING,
                "notify",
                "Whether NOTIFY arrives is unknown: the probe failed",
                f"{str(error.__cause__ or error).strip()}. It needs two more connections to the "
                "primary server.",
                server.LIST_SESSIONS,
            )
        ]
    findings = judge(facts, hears=hears)
    if refused:
        findings = refused + [finding for finding in findings if finding.subject != "notify"]
    return Report(worst_first(findings), facts)


def judge(facts: Facts, *, hears: bool | None) -> list[Finding]:
    """All findings of all subjects."""
    match facts:
        case PostgresFacts():
            found = schema.judge(facts.work, facts.unseen, facts.server.role)
            if "horizon" not in facts.unseen:
                found += horizon.judge(facts)
            if "waits" not in facts.unseen:
                found += waits.judge(facts.waits)
            # Without tables no right can be missing.
            if "rights" not in facts.unseen and (facts.work.schema or "schema" in facts.unseen):
                found += rights.judge(facts)
            found += replication.judge(facts)
            found += tables.judge(facts)
            found += server.judge(facts, hears=hears)
            found += settings.judge(facts.settings)
        case SqliteFacts():
            found = [*schema.judge(facts.work, facts.unseen), *file.judge(facts)]
    if facts.work.schema and "work" not in facts.unseen:
        found += work.judge(facts.work, facts.unseen)
    return found
