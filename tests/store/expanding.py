"""What a migration may do: add to the tables beside older code, or say that it takes something away.

The tables are compared before and after it. Older code relies on all that is there, and on being
allowed to write what it writes. And no migration reads or writes rows of tables that were there
before it: however many there are, it keeps its locks for a moment only.
"""

import re
import sqlite3
from dataclasses import dataclass
from typing import Any

from rota.store.protocol import Store
from rota.store.sqlite.schema import split
from tests.store.schema import driver_of

WALKS = re.compile(r"^-- Walks (\S+): \S", re.MULTILINE)
"""A table whose rows a migration reads all the same, and why that does no harm."""

HEADER = re.compile(r"^-- (Expands|Contracts): \S", re.MULTILINE)

OLDEST_CODE = {
    "postgres": "SELECT to_regclass('rota.oldest_code')",
    "sqlite": "SELECT name FROM sqlite_master WHERE name = 'rota_oldest_code'",
}
"""The name of the view, null or no row before it was there."""

# What older code relies on; a table that is rewritten gets another file.
KEPT = {
    "postgres": """
        SELECT 'relation', oid::regclass::text, relkind::text, relpersistence::text, relreplident::text,
               relacl::text, CASE WHEN relkind <> 'S' THEN relfilenode END::text
        FROM pg_class WHERE relnamespace = 'rota'::regnamespace
        UNION ALL
        SELECT 'column', attrelid::regclass::text, attname, attnum::text,
               format_type(atttypid, atttypmod), attnotnull::text,
               concat(pg_get_expr(adbin, adrelid), attidentity, attgenerated)
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
        WHERE relnamespace = 'rota'::regnamespace AND attnum > 0 AND NOT attisdropped
        UNION ALL
        SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid), '', '', ''
        FROM pg_constraint WHERE connamespace = 'rota'::regnamespace
        UNION ALL
        SELECT 'function', oid::regprocedure::text, pg_get_function_arguments(oid),
               pg_get_function_result(oid), proacl::text, '', ''
        FROM pg_proc WHERE pronamespace = 'rota'::regnamespace
        UNION ALL
        SELECT 'trigger', tgrelid::regclass::text, tgname, '', '', '', ''
        FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
        WHERE relnamespace = 'rota'::regnamespace AND NOT tgisinternal""",
    "sqlite": """
        SELECT type, name, tbl_name, rootpage, '', '' FROM sqlite_master WHERE tbl_name GLOB 'rota*'
        UNION ALL
        SELECT 'column', entry.name, found.name, found.type, found."notnull", found.dflt_value
        FROM sqlite_master AS entry JOIN pragma_table_xinfo(entry.name) AS found
        WHERE entry.name GLOB 'rota*'""",
}

# What they are not allowed to write, the table first. Null in a new column is what older code
# writes there.
LIMITS = {
    "postgres": """
        SELECT conrelid::regclass::text, conname FROM pg_constraint
        WHERE connamespace = 'rota'::regnamespace AND contype <> 'n'
        UNION ALL
        SELECT confrelid::regclass::text, conname FROM pg_constraint
        WHERE connamespace = 'rota'::regnamespace AND contype = 'f' AND confdeltype IN ('a', 'r')
        UNION ALL
        SELECT indrelid::regclass::text, indexrelid::regclass::text
        FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
        WHERE relnamespace = 'rota'::regnamespace AND indisunique
        UNION ALL
        SELECT attrelid::regclass::text, attname
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE relnamespace = 'rota'::regnamespace AND relkind IN ('r', 'p') AND attnum > 0
          AND NOT attisdropped AND attnotnull AND NOT atthasdef AND attidentity = ''""",
    "sqlite": """
        SELECT entry.name, found.name
        FROM sqlite_master AS entry JOIN pragma_index_list(entry.name) AS found
        WHERE entry.name GLOB 'rota*' AND found."unique"
        UNION ALL
        SELECT found."table", entry.name
        FROM sqlite_master AS entry JOIN pragma_foreign_key_list(entry.name) AS found
        WHERE found.on_delete IN ('NO ACTION', 'RESTRICT')""",
}

TOUCHED = """
    SELECT relid::regclass::text FROM pg_stat_xact_user_tables
    WHERE schemaname = 'rota' AND seq_scan + coalesce(idx_scan, 0) + n_tup_ins + n_tup_upd + n_tup_del > 0"""

WRITES = {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}
"""What SQLite says of a statement. One that reads may pass: SQLite makes no index without."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The tables at a moment: what older code relies on, what limits it, and the oldest code."""

    kept: frozenset[tuple[object, ...]]
    limits: frozenset[tuple[str, str]]
    oldest_code: int | None

    @property
    def tables(self) -> set[object]:
        """The names of tables and views."""
        return {row[1] for row in self.kept if row[0] in {"relation", "table"}}


def complaints(store: Store, version: int, sql: str) -> list[str]:
    """Apply a migration to tables of the version before, and say what is wrong with it."""
    if len(headers := HEADER.findall(sql)) != 1:
        return ["its header does not say either 'Expands: …' or 'Contracts: …'"]
    with driver_of(store) as driver:
        before = seen(store, driver)
        touched = apply(store, driver, sql)
        after = seen(store, driver)
    found = [
        f"reads or writes rows of {name}"
        for name in touched & before.tables - set(WALKS.findall(sql))
    ]
    if headers == ["Contracts"]:
        if not (before.oldest_code or 0) < (after.oldest_code or 0) < version:
            found.append("does not raise oldest_code to a version between the last one and its own")
        return found
    if before.oldest_code not in {None, after.oldest_code}:
        found.append("raises oldest_code")
    found += [f"takes away {row}" for row in before.kept - after.kept]
    found += [
        f"limits {table} by {name}"
        for table, name in after.limits - before.limits
        if table in before.tables
    ]
    return sorted(found)


def seen(store: Store, driver: Any) -> Seen:
    """What there is now."""
    view = driver.execute(OLDEST_CODE[store.name]).fetchone()
    oldest = None
    if view and view[0]:
        [oldest] = driver.execute(f"SELECT version FROM {view[0]}").fetchone()
    return Seen(
        frozenset(driver.execute(KEPT[store.name]).fetchall()),
        frozenset(driver.execute(LIMITS[store.name]).fetchall()),
        oldest,
    )


def apply(store: Store, driver: Any, sql: str) -> set[str]:
    """Run a migration; the tables whose rows it has read or written, on SQLite written."""
    if store.name == "postgres":
        driver.execute(sql.encode())
        return {name for (name,) in driver.execute(TOUCHED).fetchall()}
    touched = set()

    def asked(action: int, table: str | None, *_: object) -> int:
        if action in WRITES:
            touched.add(str(table))
        return sqlite3.SQLITE_OK

    driver.set_authorizer(asked)
    for statement in split(sql):
        driver.execute(statement)
    driver.set_authorizer(None)
    return touched
