"""Migrations add to the tables beside older code, or say that they take something away."""

from contextlib import closing

import pytest

from rota.store.migrate import read_migrations
from rota.store.protocol import Store
from tests.store.expanding import complaints
from tests.store.schema import contraction, make_old

FIRST = {"sqlite": 11, "postgres": 18}
"""The first migration to which the rules apply."""

DECLARED = [
    pytest.param(name, version, id=f"{name}-{version}")
    for name in ("sqlite", "postgres")
    for version in read_migrations(f"rota.store.{name}")
    if version >= FIRST[name]
]


@pytest.mark.parametrize(("store_url", "version"), DECLARED, indirect=["store_url"])
def test_every_migration(empty_store: Store, version: int) -> None:
    """It says whether older code goes on beside it, which is true, and walks no table."""
    with closing(empty_store.connect()) as connection:
        make_old(empty_store, connection, version - 1)
    sql = read_migrations(f"rota.store.{empty_store.name}")[version]
    assert complaints(empty_store, version, sql) == []


@pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)
def test_the_file_needs_what_the_migrations_need(store: Store) -> None:
    """New and migrated tables go with the same older code: at least the version before's."""
    with closing(store.connect()) as connection:
        oldest = connection.run(store.oldest_code())
        assert FIRST[store.name] - 1 <= oldest < max(store.migrations())


GOOD = {
    "sqlite": [
        "ALTER TABLE rota_queue ADD COLUMN colour TEXT;",
        "ALTER TABLE rota_queue ADD COLUMN colour INTEGER NOT NULL DEFAULT 0;",
        "CREATE TABLE rota_colour (id INTEGER PRIMARY KEY, name TEXT UNIQUE) STRICT;",
        "CREATE INDEX rota_queue_colour ON rota_queue (paused);",
    ],
    "postgres": [
        "ALTER TABLE rota.queue ADD COLUMN colour text;",
        "ALTER TABLE rota.timer ADD COLUMN colour integer NOT NULL DEFAULT 0;",
        """CREATE TABLE rota.colour (
               id    integer PRIMARY KEY,
               name  text UNIQUE CHECK (name <> ''),
               queue text REFERENCES rota.queue ON DELETE CASCADE);
           INSERT INTO rota.colour VALUES (1, 'red');""",
        "CREATE SEQUENCE rota.colour;",
        """CREATE OR REPLACE VIEW rota.lane_few AS
           SELECT last_value <= 2 AS few, 1 AS more FROM rota.lane_id_seq;""",
    ],
}

BAD = {
    "sqlite": [
        ("DROP INDEX rota_job_kept;", "takes away ('index', 'rota_job_kept'"),
        ("DROP VIEW rota_cron;", "takes away ('view', 'rota_cron'"),
        ("DROP TABLE rota_note;", "takes away ('table', 'rota_note'"),
        ("ALTER TABLE rota_schema DROP applied_at;", "takes away ('column', 'rota_schema'"),
        ("ALTER TABLE rota_session RENAME lot TO suspects;", "takes away ('column'"),
        ("ALTER TABLE rota_note RENAME TO rota_told;", "takes away ('table', 'rota_note'"),
        ("CREATE UNIQUE INDEX rota_few ON rota_note (level);", "limits rota_note by rota_few"),
        (
            "CREATE TABLE rota_colour (queue TEXT REFERENCES rota_queue (name));",
            "limits rota_queue by rota_colour",
        ),
        ("UPDATE rota_job SET args = '{}';", "rows of rota_job"),
        ("DELETE FROM rota_job;", "rows of rota_job"),
    ],
    "postgres": [
        ("DROP INDEX rota.timer_xid;", "takes away ('relation', 'rota.timer_xid'"),
        ("DROP VIEW rota.cron;", "takes away ('relation', 'rota.cron'"),
        ("DROP TABLE rota.lot;", "takes away ('relation', 'rota.lot'"),
        ("DROP FUNCTION rota.lock_waiting;", "takes away ('function'"),
        ("ALTER TABLE rota.session DROP COLUMN timeline;", "takes away ('column', 'rota.session'"),
        (
            "ALTER TABLE rota.session RENAME timeline TO line;",
            "takes away ('column', 'rota.session'",
        ),
        ("ALTER TABLE rota.lot RENAME TO lots;", "takes away ('relation', 'rota.lot'"),
        (
            "ALTER TABLE rota.timer ALTER attempt DROP DEFAULT;",
            "takes away ('column', 'rota.timer'",
        ),
        (
            "ALTER TABLE rota.timer ALTER timeout SET NOT NULL;",
            "takes away ('column', 'rota.timer'",
        ),
        ("ALTER TABLE rota.lot ALTER jobs TYPE int[];", "takes away ('relation', 'rota.lot'"),
        ("ALTER TABLE rota.lot DROP CONSTRAINT lot_pkey;", "takes away ('constraint', 'rota.lot'"),
        ("REVOKE ALL ON rota.lot FROM PUBLIC;", "takes away ('relation', 'rota.lot'"),
        ("ALTER TABLE rota.lot ADD colour text NOT NULL;", "limits rota.lot by colour"),
        ("ALTER TABLE rota.lot ADD colour text UNIQUE;", "limits rota.lot by lot_colour_key"),
        ("ALTER TABLE rota.lot ADD CHECK (jobs <> '{}');", "limits rota.lot by lot_jobs_check"),
        ("CREATE TABLE rota.colour (lot bigint REFERENCES rota.lot);", "limits rota.lot by colour"),
        ("ALTER TABLE rota.timer ADD at float8 DEFAULT random();", "rows of rota.timer"),
        ("CREATE INDEX colour ON rota.timer (attempt);", "rows of rota.timer"),
        ("UPDATE rota.queue SET name = name;", "rows of rota.queue"),
        ("DELETE FROM rota.log;", "rows of rota.log"),
        ("INSERT INTO rota.queue VALUES ('red');", "rows of rota.queue"),
    ],
}


@pytest.mark.parametrize(
    ("store_url", "sql"),
    [(name, sql) for name, changes in GOOD.items() for sql in changes],
    indirect=["store_url"],
)
def test_additions(store: Store, sql: str) -> None:
    """What only adds is no contraction."""
    assert complaints(store, 999, f"-- Expands: adds.\n{sql}") == []


@pytest.mark.parametrize(
    ("store_url", "sql", "said"),
    [(name, *change) for name, changes in BAD.items() for change in changes],
    indirect=["store_url"],
)
def test_what_takes_away(store: Store, sql: str, said: str) -> None:
    """A migration that drops, rewrites, limits or walks does not pass as an addition."""
    found = complaints(store, 999, f"-- Expands: so it says.\n{sql}")
    assert [line for line in found if said in line], found


@pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)
def test_declarations(store: Store) -> None:
    """Each migration has its line, and a contraction says from which version on code goes on."""
    assert "header" in complaints(store, 999, "SELECT 1;")[0]
    assert "header" in complaints(store, 999, "-- Expands: a.\n-- Contracts: b.\nSELECT 1;")[0]
    newest = max(store.migrations())
    assert "oldest_code" in complaints(store, 999, "-- Contracts: no.\nSELECT 1;")[0]
    raised = contraction(store, newest)
    assert "oldest_code" in complaints(store, newest, f"-- Contracts: at once.\n{raised}")[0]
    drop = "DROP VIEW rota_cron;" if store.name == "sqlite" else "DROP VIEW rota.cron;"
    assert (
        complaints(store, 999, f"-- Contracts: yes.\n{drop}\n{contraction(store, newest + 1)}")
        == []
    )
    undeclared = f"-- Expands: no.\n{contraction(store, newest + 2)}"
    assert "raises oldest_code" in complaints(store, 999, undeclared)
