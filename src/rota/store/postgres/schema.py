"""The version of Rota's tables, and how they get there."""

from collections.abc import Mapping, Sequence

from rota.errors import SchemaIncomplete, SchemaMissing
from rota.store.migrate import read_script, read_steps
from rota.store.operation import Begin, Statement, Steps, operation
from rota.store.postgres.failures import LockTimeout
from rota.store.postgres.statements import sql

PACKAGE = "rota.store.postgres"

VERSION = 27
"""The version of the tables in `schema.sql`."""

INCOMPLETE = (
    "the schema rota is there, but the version of its tables is missing, as after a dump without Rota's "
    "data (pg_dump --schema-only); restore that data, or remove what is left with DROP SCHEMA rota "
    "CASCADE, which also deletes jobs, and run `rota migrate`"
)

SCHEMA_VERSION = sql("schema/schema_version")
IDENTITY = sql("schema/identity")
OLDEST_CODE = sql("schema/oldest_code")
REMOVE = sql("schema/remove")


@operation(Begin.NOTHING)
def schema_version() -> Steps[int]:
    """The version of Rota's tables; 0 where there are none.

    Raises:
        SchemaIncomplete: The table of versions is empty.
        ConfigError: Citus has distributed them.
    """
    try:
        [(version, citus)] = yield SCHEMA_VERSION()
    except SchemaMissing:
        return 0
    if citus:
        from rota.store.postgres.server import check_local

        yield from check_local()
    if version is None:
        raise SchemaIncomplete(INCOMPLETE)
    return int(version)


@operation(Begin.NOTHING)
def oldest_code() -> Steps[int]:
    """The oldest version whose code works with the tables, which are newer than this Rota."""
    [(version,)] = yield OLDEST_CODE()
    return int(version)


@operation(Begin.NOTHING)
def elsewhere() -> Steps[str | None]:
    """Nothing: a pooler may give databases and servers other names than they have."""
    yield from ()
    return None


@operation(Begin.NOTHING)
def identity() -> Steps[str]:
    """The cluster, and the database's name there."""
    [(which,)] = yield IDENTITY()
    return str(which)


def migrations(version: int = 0) -> Mapping[int, str]:
    """The SQL that leads from a version of the tables to the newest; from 0 it is `schema.sql`."""
    return read_steps(PACKAGE, VERSION, version)


@operation(Begin.DURABLE)
def migrate(version: int, sql: str, *, after: int) -> Steps[bool]:
    """Apply one migration, unless another migrator was quicker; false where a lock was not free."""
    try:
        yield Statement(f"migration_{version}", script(version, sql, after=after))()
    except LockTimeout:
        return False
    return True


def script(version: int, sql: str, *, after: int) -> str:
    """One migration as a text for any client, that of `migrate`."""
    return read_script(
        PACKAGE,
        version=version,
        sql=sql.strip(),
        after=after,
        incomplete=INCOMPLETE.replace("'", "''"),
    )


def removal() -> Sequence[str]:
    """The statements that remove Rota's tables with all jobs, or do nothing where there are none."""
    return [REMOVE.text]
