"""The version of Rota's tables, and the parts that could not be looked at."""

from collections.abc import Mapping

from rota.doctor.finding import Finding, Severity
from rota.store.health import WorkFacts

DENIED = "permission denied"
"""How PostgreSQL's message begins where a right is missing."""


def judge(work: WorkFacts, unseen: Mapping[str, str], role: str = "") -> list[Finding]:
    """Whether this Rota and the tables fit together, and which parts are unknown."""
    if "schema" in unseen:
        return [_unreadable(unseen["schema"], role)]
    if "version" in unseen:
        return [_incomplete(unseen["version"])]
    found = [_version(work)]
    reasons: dict[str, list[str]] = {}
    for part, reason in unseen.items():
        reasons.setdefault(reason, []).append(part)
    found += [_unseen(parts, reason, role) for reason, parts in reasons.items()]
    return found


def _version(work: WorkFacts) -> Finding:
    if work.schema == 0:
        return Finding(
            Severity.CRITICAL,
            "schema",
            "The database has no Rota tables",
            "No job can be enqueued here. Is it the right database?",
            "rota migrate",
        )
    if work.schema < work.newest:
        return Finding(
            Severity.CRITICAL,
            "schema",
            f"Rota's tables have version {work.schema}; this Rota needs {work.newest}",
            "Programs with this Rota refuse to work until the tables are up to date.",
            "rota migrate",
        )
    if work.oldest_code > work.newest:
        return Finding(
            Severity.CRITICAL,
            "schema",
            f"Rota's tables have version {work.schema}; this Rota knows {work.newest}",
            f"A newer Rota has migrated them. They need a Rota that knows version {work.oldest_code}: this one "
            "refuses to work with them.",
            "pip install --upgrade rota",
        )
    if work.schema > work.newest:
        return Finding(
            Severity.NOTE,
            "schema",
            f"Rota's tables have version {work.schema}; this Rota knows {work.newest} and works with them",
            "A newer Rota has migrated them, as in the middle of a deploy. Upgrade this one by the end of it.",
        )
    return Finding(Severity.OK, "schema", f"Rota's tables are up to date (version {work.schema})")


def _incomplete(reason: str) -> Finding:
    return Finding(
        Severity.CRITICAL,
        "schema",
        "Rota's tables have no version: programs with Rota refuse to work",
        reason,
        "rota migrate",
    )


def _unreadable(reason: str, role: str) -> Finding:
    return Finding(
        Severity.WARNING,
        "schema",
        "Rota's tables cannot be read, so queues, workers and timers are unknown",
        reason,
        _grant(role) if reason.startswith(DENIED) else "",
    )


def _unseen(parts: list[str], reason: str, role: str) -> Finding:
    denied = reason.startswith(DENIED)
    return Finding(
        Severity.NOTE if denied else Severity.WARNING,
        "unseen",
        f"Not looked at: {', '.join(parts)}",
        reason,
        _grant(role) if denied and role else "",
    )


def _grant(role: str) -> str:
    name = identifier(role)
    return (
        f"GRANT USAGE ON SCHEMA rota TO {name}; "
        f"GRANT SELECT ON ALL TABLES IN SCHEMA rota TO {name}; "
        f"GRANT SELECT ON ALL SEQUENCES IN SCHEMA rota TO {name};"
    )


def identifier(name: str) -> str:
    """A name, quoted for SQL that users copy."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text, quoted for SQL that users copy."""
    return "'" + text.replace("'", "''") + "'"
