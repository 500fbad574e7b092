"""The version of Rota's tables, and how they get there."""

from collections.abc import Mapping

from rota.errors import SchemaMissing
from rota.store.migrate import read_steps
from rota.store.operation import Begin, Statement, Steps, operation
from rota.store.postgres.statements import sql

VERSION = 13
"""The version of the tables in `schema.sql`."""

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


def migrations(version: int = 0) -> Mapping[int, str]:
    """The SQL that leads from a version of the tables to the newest; from 0 it is `schema.sql`."""
    return read_steps("rota.store.postgres", VERSION, version)


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
