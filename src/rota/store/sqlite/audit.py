"""The audit on SQLite."""

from datetime import UTC, datetime

from rota.store.audit import Audit, Dialect
from rota.store.sqlite.statements import sql


def _read(moment: float) -> datetime:
    return datetime.fromtimestamp(moment, UTC)


AUDIT = Audit(
    Dialect(
        add=sql("audit/audit_add"),
        trim=sql("audit/audit_trim"),
        list=sql("audit/audit_list"),
        find=sql("audit/audit_find"),
        move=sql("audit/audit_move"),
        count=sql("audit/audit_count"),
        read=_read,
    )
)
"""The operations on the audit."""
