"""Statements beside tables of a newer Rota: another column in any table or view changes none."""

import itertools
import re
import sqlite3
from importlib.resources import files
from typing import Any

import pytest
from psycopg.pq import ExecStatus

from rota.store.operation import Statement, statement
from rota.store.protocol import Store
from tests.store.schema import driver_of

ADDITIONS = {
    "sqlite": """
        SELECT 'ALTER TABLE ' || name || ' ADD COLUMN colour INTEGER' FROM sqlite_master
        WHERE type = 'table' AND name GLOB 'rota*'""",
    "postgres": """
        SELECT CASE relkind WHEN 'v'
            THEN format('CREATE OR REPLACE VIEW %s AS SELECT it.*, 1 AS colour FROM (%s) AS it',
                        oid::regclass, rtrim(pg_get_viewdef(oid), ';'))
            ELSE format('ALTER TABLE %s ADD COLUMN colour integer', oid::regclass) END
        FROM pg_class
        WHERE relnamespace = 'rota'::regnamespace AND relkind IN ('r', 'p', 'v')
          AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = oid)""",
}
"""Statements that give each table, and each view of PostgreSQL's, one more column."""

NUMBERS = itertools.count()

CITUS = "CREATE TEMPORARY TABLE pg_dist_partition (logicalrelid regclass, partmethod text, colocationid integer)"
"""What one statement reads where Citus is installed."""


def statements(store: Store) -> list[Statement]:
    """All of a store's statements."""
    package = f"rota.store.{store.name}"
    return [
        statement(package, f"{folder.name}/{file.name.removesuffix('.sql')}")
        for folder in (files(package) / "sql").iterdir()
        for file in folder.iterdir()
    ]


def columns(store: Store, driver: Any, one: Statement) -> object:
    """What a statement gives; one that writes is planned only."""
    if store.name == "sqlite":
        how = "" if one.text.startswith(("SELECT", "WITH")) else "EXPLAIN QUERY PLAN"
        given = dict.fromkeys(re.findall(r":(\w+)", one.text), 0)
        # With another text each time: the driver would take a plan that it has made before.
        cursor = driver.execute(f"/* {next(NUMBERS)} */ {how} {one.text}", given)
        cursor.fetchall()
        return [name for name, *_ in cursor.description or ()]
    prepared = driver.pgconn.prepare(b"", one.numbered.encode())
    assert prepared.status == ExecStatus.COMMAND_OK, (one, prepared.error_message)
    told = driver.pgconn.describe_prepared(b"")
    return [(told.fname(number), told.ftype(number)) for number in range(told.nfields)]


@pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)
def test_every_statement(store: Store) -> None:
    """It can be run, and gives the same columns, so that a prepared one goes on as well."""
    every = statements(store)
    with driver_of(store) as driver:
        if store.name == "postgres":
            driver.execute(CITUS)
        before = [columns(store, driver, one) for one in every]
        additions = driver.execute(ADDITIONS[store.name]).fetchall()
        assert len(additions) > 10
        for (addition,) in additions:
            driver.execute("SAVEPOINT before")
            driver.execute(addition)
            for one, then in zip(every, before, strict=True):
                assert columns(store, driver, one) == then, (addition, one)
            driver.execute("ROLLBACK TO before")


@pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)
def test_the_comparison_sees_a_star(store: Store) -> None:
    """A statement that gives or copies whatever columns there are is not the same with one more."""
    table, both = {
        "sqlite": ("rota_queue", "name, paused"),
        "postgres": ("rota.lot", "session, jobs"),
    }[store.name]
    with driver_of(store) as driver:
        given = Statement("given", f"SELECT * FROM {table}")
        copied = Statement("copied", f"INSERT INTO {table} ({both}) SELECT * FROM {table}")
        before = columns(store, driver, given)
        columns(store, driver, copied)
        driver.execute(f"ALTER TABLE {table} ADD COLUMN colour integer")
        assert columns(store, driver, given) != before
        with pytest.raises((AssertionError, sqlite3.Error)):
            columns(store, driver, copied)
