"""Whether the role could be a worker's."""

from collections.abc import Iterable

from rota.doctor.finding import Finding, Severity
from rota.doctor.schema import identifier
from rota.store.health import MissingRights, PostgresFacts

GRANTS = {
    "schema": "GRANT USAGE ON SCHEMA rota TO {role};",
    "table": "GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA rota TO {role};",
    "sequence": "GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA rota TO {role};",
}
"""By kind, the SQL that gives a role all rights, as in docs/operate/tables.md; views are tables."""

READING = {"table": {"INSERT", "UPDATE", "DELETE", "TRUNCATE"}, "sequence": {"USAGE", "UPDATE"}}
"""The rights that a role lacks if it may only read."""

SHOWN = 4
"""How many names are shown for the same rights."""


def judge(facts: PostgresFacts) -> list[Finding]:
    """Which rights of a worker are missing, and the statements that grant them."""
    role, lacks = facts.server.role, facts.rights
    if not lacks:
        return [Finding(Severity.OK, "rights", f"Role {role} has the rights that a worker needs")]
    kinds = {"table" if right.kind == "view" else right.kind for right in lacks}
    step = " ".join(
        grant.format(role=identifier(role)) for kind, grant in GRANTS.items() if kind in kinds
    )
    if _reads(facts):
        return [
            Finding(
                Severity.NOTE,
                "rights",
                f"Role {role} may only read",
                "That is enough to look at jobs, but not for a worker.",
                step,
            )
        ]
    return [
        Finding(
            Severity.WARNING,
            "rights",
            f"Role {role} lacks rights that a worker needs",
            f"Missing: {_missing(lacks)}. A role that only reads does not need them.",
            step,
        )
    ]


def _reads(facts: PostgresFacts) -> bool:
    """Whether the role may read everything, and write nothing."""
    written = {right.name for right in facts.rights if right.kind == "table"}
    return all(set(right.missing) == READING.get(right.kind) for right in facts.rights) and all(
        table.name in written for table in facts.tables
    )


def _missing(lacks: Iterable[MissingRights]) -> str:
    """Such as "DELETE on lease_0, lease_1; USAGE, UPDATE on sequence job_id"."""
    names: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for right in lacks:
        names.setdefault((right.kind, right.missing), []).append(right.name)
    return "; ".join(
        f"{', '.join(missing)} on {kind} {', '.join(found[:SHOWN])}"
        + (f" and {len(found) - SHOWN} more" if len(found) > SHOWN else "")
        for (kind, missing), found in names.items()
    )
