"""What a database's tables are, as lines that can be compared; and the old way to make them.

`python -m tests.store.schema` prints where `schema.sql` and the migrations of each store differ.
"""

import re
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from difflib import unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rota.measure.servers import PostgresServer
from rota.store.connections import Connection
from rota.store.migrate import migrate, read_migrations
from rota.store.opening import open_store
from rota.store.protocol import Store

# Everything that PostgreSQL knows, but the numbers and sizes that it gives, and with expressions as
# text. Columns are in their order, as views and INSERT without a list of columns see them.
POSTGRES = {
    "schema": """
        SELECT nspname, nspacl, obj_description(oid) FROM pg_namespace WHERE nspname = 'rota'""",
    "relation": """
        SELECT oid::regclass, relkind, relpersistence, reloptions, relreplident, relispartition,
               relrowsecurity, relhastriggers, relacl, pg_get_expr(relpartbound, oid),
               pg_get_partkeydef(oid), obj_description(oid),
               ARRAY(SELECT inhparent::regclass FROM pg_inherits WHERE inhrelid = oid)
        FROM pg_class WHERE relnamespace = 'rota'::regnamespace""",
    "column": """
        SELECT attrelid::regclass, attnum, attname, format_type(atttypid, atttypmod), attnotnull,
               attidentity, attgenerated, attstorage, attcompression, attcollation, attislocal,
               attinhcount, attisdropped, attoptions, attacl, attstattarget,
               pg_get_expr(adbin, adrelid), col_description(attrelid, attnum)
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
        WHERE relnamespace = 'rota'::regnamespace AND attnum > 0""",
    "constraint": """
        SELECT conrelid::regclass, conname, pg_get_constraintdef(oid), condeferrable, convalidated,
               conislocal, coninhcount, connoinherit
        FROM pg_constraint WHERE connamespace = 'rota'::regnamespace""",
    "index": """
        SELECT pg_get_indexdef(indexrelid), indisvalid, indisprimary, indisclustered
        FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
        WHERE relnamespace = 'rota'::regnamespace""",
    "sequence": """
        SELECT seqrelid::regclass, seqtypid::regtype, seqstart, seqincrement, seqmin, seqmax,
               seqcache, seqcycle,
               ARRAY(SELECT (refobjid::regclass, refobjsubid) FROM pg_depend
                     WHERE objid = seqrelid AND deptype IN ('a', 'i'))
        FROM pg_sequence JOIN pg_class ON pg_class.oid = seqrelid
        WHERE relnamespace = 'rota'::regnamespace""",
    "view": """
        SELECT oid::regclass, pg_get_viewdef(oid) FROM pg_class
        WHERE relnamespace = 'rota'::regnamespace AND relkind = 'v'""",
    "function": """
        SELECT pg_get_functiondef(oid), proacl, obj_description(oid) FROM pg_proc
        WHERE pronamespace = 'rota'::regnamespace""",
    "trigger": """
        SELECT pg_get_triggerdef(pg_trigger.oid) FROM pg_trigger
        JOIN pg_class ON pg_class.oid = tgrelid
        WHERE relnamespace = 'rota'::regnamespace AND NOT tgisinternal""",
    "type": """
        SELECT oid::regtype, typtype, typacl FROM pg_type
        WHERE typnamespace = 'rota'::regnamespace AND typtype <> 'b'""",
}

OF_THE_MOMENT = "{applied_at,snapshot,at}"
"""Columns that say when a row was written."""

TABLE = re.compile(r"(?P<head>CREATE TABLE \w+) ?\((?P<body>.*)\)(?P<tail>.*)")
PART = re.compile(r"(?:[^,()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))+")
CONSTRAINT = re.compile(r"CONSTRAINT|PRIMARY KEY|UNIQUE|CHECK|FOREIGN KEY")


def described(store: Store) -> list[str]:
    """The tables, views and functions of a database, a line for each thing there is to say."""
    with driver_of(store) as driver:
        if store.name == "sqlite":
            return sorted(_sqlite(driver))
        return sorted(
            f"{kind}: {row}" for kind, query in POSTGRES.items() for row in driver.execute(query)
        )


@contextmanager
def driver_of(store: Store) -> Iterator[Any]:
    """The driver's connection, in a transaction."""
    transaction = store.transaction()
    try:
        yield transaction.connection
    except BaseException:
        transaction.rollback()
        raise
    transaction.commit()


def _sqlite(driver: sqlite3.Connection) -> Iterable[str]:
    for kind, name, text in driver.execute("SELECT type, name, sql FROM sqlite_master"):
        if name.startswith("sqlite_"):
            continue
        # A column that was added stands after the constraints: a text is compared column by column.
        line = re.sub(r"\s+", " ", re.sub(r"--[^\n]*", "", text)).replace("( ", "(")
        if found := TABLE.fullmatch(line):
            parts = [part.strip() for part in PART.findall(found["body"])]
            assert ", ".join(parts) == re.sub(r"\s*,\s*", ", ", found["body"]).strip()
            constraints = [part for part in parts if CONSTRAINT.match(part)]
            columns = [part for part in parts if part not in constraints]
            line = f"{found['head']} {columns} {constraints} {found['tail']}"
        yield f"{kind}: {line}"
        for pragma in ("table_xinfo", "foreign_key_list", "index_list", "index_xinfo"):
            yield f"{pragma}: {name} {driver.execute(f'PRAGMA {pragma}({name})').fetchall()}"


def rows(store: Store) -> list[str]:
    """What the tables hold from the beginning, but their version."""
    with driver_of(store) as driver:
        if store.name == "sqlite":
            names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'rota_schema'"
            query = "SELECT *"
        else:
            names = (
                "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'p')"
                " AND relnamespace = 'rota'::regnamespace AND relname <> 'schema_version'"
            )
            query = f"SELECT to_jsonb(it) - '{OF_THE_MOMENT}'::text[]"
        return sorted(
            f"{name}: {row}"
            for (name,) in driver.execute(names).fetchall()
            for row in driver.execute(f"{query} FROM {name} AS it").fetchall()
        )


def make_old(store: Store, connection: Connection, version: int) -> None:
    """Make the tables of a version as they were made then: step by step from the first one."""
    for number, sql in read_migrations(f"rota.store.{store.name}").items():
        if number <= version:
            connection.run(store.migrate(number, sql, after=number - 1))


def contraction(store: Store, version: int) -> str:
    """What a migration does that needs code of this version."""
    view = f"AS SELECT {version} AS version;"
    if store.name == "sqlite":
        return f"DROP VIEW rota_oldest_code;\nCREATE VIEW rota_oldest_code {view}"
    return f"CREATE OR REPLACE VIEW rota.oldest_code {view}"


def drop(store: Store) -> None:
    """Take all tables away."""
    with driver_of(store) as driver:
        drops = ["DROP SCHEMA rota CASCADE"]
        if store.name == "sqlite":
            names = "SELECT type, name FROM sqlite_master WHERE name LIKE 'rota%'"
            kinds = driver.execute(f"{names} AND type IN ('table', 'view') ORDER BY 1 DESC")
            drops = [f"DROP {kind} {name}" for kind, name in kinds.fetchall()]
        for statement in drops:
            driver.execute(statement)


def differences(store: Store) -> list[str]:
    """Where the tables made by `schema.sql` differ from those that the migrations lead to.

    The database is empty before, and has the tables of the migrations afterwards.
    """
    with closing(store.connect()) as connection:
        migrate(store, connection)
        made = [*described(store), *rows(store)]
        drop(store)
        make_old(store, connection, max(store.migrations()))
        led = [*described(store), *rows(store)]
    return list(unified_diff(led, made, "migrations", "schema.sql", lineterm="", n=0))


def main() -> int:
    """Compare for both stores; 1 if anything differs."""
    with TemporaryDirectory() as folder, PostgresServer.start() as server:
        found = []
        for url in (f"sqlite:///{Path(folder, 'rota.db')}", server.create_database("rota")):
            with closing(open_store(url)) as store:
                found += differences(store)
    sys.stdout.writelines(f"{line}\n" for line in found or ["schema.sql and the migrations agree"])
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
