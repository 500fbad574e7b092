"""Databases that speak PostgreSQL's language and cannot carry the log.

None of them is to be had for tests. So a PostgreSQL says what they say of themselves, by what
stands before the catalog in the search path.
"""

from contextlib import closing

import psycopg
import pytest
from psycopg import sql

from rota.errors import ConfigError
from rota.store.migrate import migrate, version_of
from rota.store.opening import open_store
from tests.cli.calling import refused, rota
from tests.store.postgres.database import Database

COCKROACH = "CockroachDB CCL v25.4.1 (x86_64-pc-linux-gnu, built 2026/01/12 10:00:00, go1.23)"
YUGABYTE = "PostgreSQL 15.12-YB-2025.2.3.0-b1 on x86_64-pc-linux-gnu, compiled by clang 17, 64-bit"


def saying(url: str, version: str) -> str:
    """The URL of a database whose server claims to be of that version."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA other")
        connection.execute(
            sql.SQL(
                "CREATE FUNCTION other.version() RETURNS text LANGUAGE sql AS $$ SELECT {}::text $$"
            ).format(sql.Literal(version))
        )
        connection.execute(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = other, pg_catalog',"
            " current_database()); END $$"
        )
    return url


@pytest.mark.parametrize(
    ("version", "product"),
    [
        pytest.param(COCKROACH, "CockroachDB", id="CockroachDB"),
        pytest.param(YUGABYTE, "YugabyteDB", id="YugabyteDB"),
    ],
)
def test_by_its_version(postgres_url: str, version: str, product: str) -> None:
    """`rota migrate` refuses what cannot hold the tables, in one sentence, and makes nothing."""
    refused(
        rota("migrate", url=saying(postgres_url, version)),
        2,
        f"{product} cannot hold Rota's tables: ",
    )
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute("SELECT to_regnamespace('rota')").fetchone()
    assert found == (None,)


@pytest.mark.parametrize(
    ("schema", "table", "product"),
    [
        ("sys", "iam_pg_role_mappings", "Aurora DSQL"),
        ("rds_aurora", "limitless_subclusters", "Aurora Limitless"),
    ],
)
def test_by_what_only_it_has(postgres_url: str, schema: str, table: str, product: str) -> None:
    """So are services that say that they are PostgreSQL, by their own tables."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"CREATE TABLE {schema}.{table} (id integer)")
    refused(rota("migrate", url=postgres_url), 2, f"{product} cannot hold")


def test_tables_that_would_be_sharded(postgres_url: str) -> None:
    """And a Citus that would give Rota's schema to one of its servers."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET citus.enable_schema_based_sharding = on',"
            " current_database()); END $$"
        )
    refused(rota("migrate", url=postgres_url), 2, "SET that setting to off")


@pytest.mark.parametrize(
    ("method", "group", "local"), [("h", 3, False), ("n", 4, False), ("n", 0, True)]
)
def test_tables_that_were_distributed(
    db: Database, method: str, group: int, *, local: bool
) -> None:
    """Tables that Citus has distributed are refused; those that it only knows are not."""
    db.sql(
        "CREATE TABLE pg_dist_partition (logicalrelid regclass, partmethod text, colocationid int)"
    )
    db.sql("INSERT INTO pg_dist_partition VALUES ('rota.lane', %s, %s)", method, group)
    store = open_store(db.url)
    with closing(store), closing(store.connect()) as connection:
        if local:
            assert version_of(store, connection) == max(store.migrations())
            return
        with pytest.raises(ConfigError, match=r"undistribute_table\('rota.lane'\)"):
            migrate(store, connection)
