"""Harmful settings of PostgreSQL, as a new session of this role would have them."""

from collections.abc import Mapping
from typing import NamedTuple

from rota.doctor.finding import Finding, Severity


class Harm(NamedTuple):
    """The harm of a setting's value, and its cure."""

    setting: str
    value: str
    severity: Severity
    what: str
    cure: str


RELOAD = "; SELECT pg_reload_conf();"

HARMS = (
    Harm(
        "default_transaction_read_only", "on", Severity.CRITICAL,
        "No job can be enqueued. Some providers set it when the disk is full.",
        "ALTER SYSTEM SET default_transaction_read_only = off" + RELOAD,
    ),
    Harm(
        "fsync", "off", Severity.CRITICAL,
        "A crash of the machine can damage the whole database.",
        "ALTER SYSTEM SET fsync = on" + RELOAD,
    ),
    Harm(
        "full_page_writes", "off", Severity.WARNING,
        "A crash of the machine can leave half-written pages.",
        "ALTER SYSTEM SET full_page_writes = on" + RELOAD,
    ),
    Harm(
        "synchronous_commit", "off", Severity.WARNING,
        "A crash of the server can lose the last jobs that were acknowledged.",
        "ALTER SYSTEM SET synchronous_commit = on" + RELOAD,
    ),
    Harm(
        "autovacuum", "off", Severity.WARNING,
        "Dead rows are never removed: Rota's small tables and all of yours grow.",
        "ALTER SYSTEM SET autovacuum = on" + RELOAD,
    ),
    Harm(
        "track_counts", "off", Severity.WARNING,
        "Autovacuum does not see dead rows, and neither does this command.",
        "ALTER SYSTEM SET track_counts = on" + RELOAD,
    ),
    Harm(
        "idle_in_transaction_session_timeout", "0", Severity.NOTE,
        "A program that forgets to commit holds its snapshot forever. Rota copes with that, your "
        "other tables do not. (Rota's own connections have 5 s.)",
        "ALTER SYSTEM SET idle_in_transaction_session_timeout = '10min'" + RELOAD,
    ),
)  # fmt: skip
"""Also set elsewhere? `SELECT * FROM pg_db_role_setting` shows what roles and databases have."""


def judge(settings: Mapping[str, str]) -> list[Finding]:
    """One finding for each harmful setting."""
    if not settings:
        return []
    found = [
        Finding(harm.severity, "settings", _title(harm), harm.what, harm.cure)
        for harm in HARMS
        if settings.get(harm.setting) == harm.value
    ]
    return found or [Finding(Severity.OK, "settings", "No setting of the server is harmful")]


def _title(harm: Harm) -> str:
    if harm.value == "0":
        return f"{harm.setting} is not set"
    return f"{harm.setting} is {harm.value}"
