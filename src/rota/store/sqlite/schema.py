"""The version of Rota's tables, and how they get there."""

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rota.errors import SchemaIncomplete, StoreError
from rota.store.migrate import read_names, read_script, read_steps
from rota.store.operation import Begin, Statement, Steps, operation
from rota.store.sqlite import statements

PACKAGE = "rota.store.sqlite"

VERSION = 17
"""The version of the tables in `schema.sql`."""

SCHEMA_EXISTS = statements.sql("schema/schema_exists")
SCHEMA_VERSION = statements.sql("schema/schema_version")
SCHEMA_RECORD = statements.sql("schema/schema_record")
FILES = statements.sql("schema/files")
OLDEST_CODE = statements.sql("schema/oldest_code")

INCOMPLETE = (
    "the table rota_schema is there, but its version is missing, as after a dump without data; restore "
    "that data, or remove the tables and views whose names begin with rota_, which also deletes jobs, "
    "and run `rota migrate`"
)
NO_TABLES = "SELECT count(*) = 0 FROM sqlite_master WHERE name GLOB 'rota_*'"
OF_VERSION = "SELECT max(version) IS {after} FROM rota_schema"
REFUSAL = (
    "this step needs {needs}, and changed nothing; run `rota migrate`, or print the steps for this "
    "file: rota migrate --dry-run"
)


@operation(Begin.NOTHING)
def schema_version() -> Steps[int]:
    """The version of Rota's tables; 0 where there are none.

    Raises:
        SchemaIncomplete: The table of versions is empty.
    """
    return (yield from found_version())


@operation(Begin.NOTHING)
def oldest_code() -> Steps[int]:
    """The oldest version whose code works with the tables, which are newer than this Rota."""
    return (yield from found_oldest_code())


@operation(Begin.NOTHING)
def check_server() -> Steps[None]:
    """Nothing: there is no server."""
    yield from ()


@operation(Begin.NOTHING)
def elsewhere(path: str) -> Steps[str | None]:
    """The other file a caller's connection leads to; None: it leads to this one, or attaches it."""
    files = [file for _, _, file in (yield FILES())]
    if path in files:
        return None
    for file in filter(None, files):
        with contextlib.suppress(OSError):
            if Path(file).samefile(path):
                return None
    return files[0] or "a database in memory"


@operation(Begin.NOTHING)
def identity() -> Steps[str]:
    """The file, whatever its path."""
    file = next(file for _, name, file in (yield FILES()) if name == "main")
    found = Path(file).stat()
    return f"{found.st_dev}/{found.st_ino}"


def migrations(version: int = 0) -> Mapping[int, str]:
    """The SQL that leads from a version of the tables to the newest; from 0 it is `schema.sql`."""
    return read_steps(PACKAGE, VERSION, version)


@operation(Begin.DURABLE)
def migrate(version: int, sql: str, *, after: int) -> Steps[bool]:
    """Apply one migration and record its version, unless another migrator was quicker."""
    if (there := (yield from found_version())) >= version:
        return True
    if there != after:
        raise StoreError(REFUSAL.format(needs=_needs(after)))
    for number, text in enumerate(split(sql), 1):
        yield Statement(f"migration {version}, statement {number}", text)()
    yield SCHEMA_RECORD(version=version)
    return True


def script(version: int, sql: str, *, after: int) -> str:
    """One migration as a text for any client: it does what `migrate` does, or fails."""
    return read_script(
        PACKAGE,
        version=version,
        sql=sql.strip(),
        fits=OF_VERSION.format(after=after) if after else NO_TABLES,
        refusal=REFUSAL.format(needs=_needs(after)),
    )


def removal() -> Sequence[str]:
    """The statements that remove Rota's tables with all jobs, or do nothing where there are none.

    A table refers to older ones alone, so the newest goes first. Its indexes go with it.
    """
    made = reversed(list(read_names(PACKAGE).items()))
    return [f"DROP {kind} IF EXISTS {name}" for name, kind in made]


def found_version() -> Steps[int]:
    """The steps of `schema_version`."""
    if not (yield SCHEMA_EXISTS()):
        return 0
    [(version,)] = yield SCHEMA_VERSION()
    if version is None:
        raise SchemaIncomplete(INCOMPLETE)
    return int(version)


def found_oldest_code() -> Steps[int]:
    """The steps of `oldest_code`."""
    [(version,)] = yield OLDEST_CODE()
    return int(version)


def split(script: str) -> Iterator[str]:
    """The statements of a migration: SQLite's driver takes them one by one."""
    text = ""
    for line in script.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            yield text.strip()
            text = ""


def _needs(after: int) -> str:
    return f"Rota's tables of version {after}" if after else "a file without Rota's tables"
