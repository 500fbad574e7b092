"""Whether the role that looks could work here, too."""

from collections.abc import Iterable

from rota.doctor.finding import Finding, Severity
from rota.doctor.schema import identifier
from rota.store.health import MissingRights, PostgresFacts

GRANTS = {
    "schema": "GRANT USAGE ON SCHEMA rota TO {role};",
    "table": "GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA rota TO {role};",
    "sequence": "GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA rota TO {role};",
}
"""What gives a role all it needs of each kind, as docs/operations.md has it; views are tables here."""

READING = {"table": {"INSERT", "UPDATE", "DELETE", "TRUNCATE"}, "sequence": {"USAGE", "UPDATE"}}
"""What a role lacks of each table and sequence that may read them and nothing else."""

SHOWN = 4
"""So many names are shown for the same rights."""


def judge(facts: PostgresFacts) -> list[Finding]:
    """Which rights of a worker are missing, and what gives them."""
    role, lacks = facts.server.role, facts.rights
    if not lacks:
        return [Finding(Severity.OK, "rights", f"Role {role} has the rights that a worker needs")]
    kinds = {"table" if one.kind == "view" else one.kind for one in lacks}
    step = " ".join(
        grant.format(role=identifier(role)) for kind, grant in GRANTS.items() if kind in kinds
    )
    if _reads(facts):
        return [
            Finding(
                Severity.NOTE,
                "rights",
                f"Role {role} may only read",
                "That is enough to look on. A worker of this role would be refused.",
                step,
            )
        ]
    return [
        Finding(
            Severity.WARNING,
            "rights",
            f"Role {role} lacks rights that a worker needs",
            f"Missing: {_missing(lacks)}. If it has nothing to do but to look on, it does not need "
            "them.",
            step,
        )
    ]


def _reads(facts: PostgresFacts) -> bool:
    """Whether the role may read everything, and write nothing."""
    written = {one.name for one in facts.rights if one.kind == "table"}
    return all(set(one.missing) == READING.get(one.kind) for one in facts.rights) and all(
        table.name in written for table in facts.tables
    )


def _missing(lacks: Iterable[MissingRights]) -> str:
    """Such as "DELETE on lease_0, lease_1; USAGE, UPDATE on sequence job_id"."""
    names: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for one in lacks:
        names.setdefault((one.kind, one.missing), []).append(one.name)
    return "; ".join(
        f"{', '.join(missing)} on {kind} {', '.join(found[:SHOWN])}"
        + (f" and {len(found) - SHOWN} more" if len(found) > SHOWN else "")
        for (kind, missing), found in names.items()
    )
