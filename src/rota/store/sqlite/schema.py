"""The version of Rota's tables, and how they get there."""

import sqlite3
from collections.abc import Iterator, Mapping

from rota.store.migrate import read_steps
from rota.store.operation import Begin, Statement, Steps, operation
from rota.store.sqlite import statements

VERSION = 9
"""The version of the tables in `schema.sql`."""

SCHEMA_EXISTS = statements.sql("schema/schema_exists")
SCHEMA_VERSION = statements.sql("schema/schema_version")
SCHEMA_RECORD = statements.sql("schema/schema_record")


@operation(Begin.NOTHING)
def schema_version() -> Steps[int]:
    """The version of Rota's tables; 0 where there are none."""
    return (yield from _version())


def migrations(version: int = 0) -> Mapping[int, str]:
    """The SQL that leads from a version of the tables to the newest; from 0 it is `schema.sql`."""
    return read_steps("rota.store.sqlite", VERSION, version)


@operation(Begin.DURABLE)
def migrate(version: int, sql: str) -> Steps[None]:
    """Apply one migration and record its version; nothing happens if another migrator was quicker."""
    if (yield from _version()) >= version:
        return
    for number, text in enumerate(split(sql), 1):
        yield Statement(f"migration {version}, statement {number}", text)()
    yield SCHEMA_RECORD(version=version)


def _version() -> Steps[int]:
    if not (yield SCHEMA_EXISTS()):
        return 0
    [(version,)] = yield SCHEMA_VERSION()
    return version or 0


def split(script: str) -> Iterator[str]:
    """The statements of a migration: SQLite's driver takes them one by one."""
    text = ""
    for line in script.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            yield text.strip()
            text = ""
