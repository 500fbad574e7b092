"""Rota's tables: which version is there, and how the next one is made."""

from collections.abc import Mapping

from rota.errors import SchemaMissing
from rota.store.migrate import read_migrations
from rota.store.operation import Begin, Statement, Steps, operation
from rota.store.postgres.statements import sql

SCHEMA_VERSION = sql("schema/schema_version")
SCHEMA_KNOWN = sql("schema/schema_known")
SCHEMA_RECORD = sql("schema/schema_record")
SCHEMA_LOCK = sql("schema/schema_lock")


@operation(Begin.NOTHING)
def schema_version() -> Steps[int]:
    """The version of Rota's tables; 0 where there are none."""
    try:
        [(version,)] = yield SCHEMA_VERSION()
    except SchemaMissing:
        return 0
    return int(version or 0)


def migrations() -> Mapping[int, str]:
    """The SQL that leads to each version."""
    return read_migrations("rota.store.postgres")


@operation(Begin.DURABLE)
def migrate(version: int, sql: str) -> Steps[None]:
    """Apply one migration; nothing happens if another migrator was quicker."""
    yield SCHEMA_LOCK()
    [(known,)] = yield SCHEMA_KNOWN()
    if known:
        [(there,)] = yield SCHEMA_VERSION()
        if there >= version:
            return
    yield Statement(f"migration_{version}", sql)()
    yield SCHEMA_RECORD(version=version)
