"""`rota.alembic`: Rota's tables in a project that migrates with Alembic."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy.ext.asyncio import create_async_engine

import rota.alembic
from rota import Rota
from rota.errors import ConfigError, RotaError, SchemaIncomplete, SchemaTooNew, StoreUnavailable
from rota.store.opening import open_store
from tests.cli.calling import rota as command
from tests.contrib.project import Project
from tests.store.schema import described, make_old

pytestmark = pytest.mark.both


def alchemys(url: str) -> str:
    """The URL as SQLAlchemy wants it."""
    return url.replace("postgresql://", "postgresql+psycopg://")


def versions(url: str) -> tuple[int, list[int]]:
    """The version of Rota's tables, and all that this Rota knows."""
    store = open_store(url)
    with closing(store), closing(store.connect()) as connection:
        steps = {*store.migrations(1), *store.migrations()}
        return connection.run(store.schema_version()), sorted(steps)


def shape(url: str) -> list[str]:
    """What Rota's tables are, without what is the project's own."""
    with closing(open_store(url)) as store:
        with closing(store.connect()) as connection:
            if connection.run(store.schema_version()) == 0:
                return []
        own = ("orders", "alembic_version", "rota_shifts")
        return [line for line in described(store) if not any(name in line for name in own)]


@contextmanager
def migrating(url: str, **options: Any) -> Iterator[tuple[Operations, sa.Connection]]:
    """What a migration gets, in a transaction that is committed at the end."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        yield Operations(MigrationContext.configure(connection, opts=options)), connection
    engine.dispose()


@pytest.fixture
def project(tmp_path: Path, store_url: str) -> Project:
    """A project on an empty database."""
    made = tmp_path / "project"
    made.mkdir()
    url = alchemys(store_url)
    return Project(made, url, include_name="rota.alembic.include_name", schemas=True)


def first(project: Project, url: str) -> None:
    """The revision that makes Rota's tables."""
    [*_, newest] = versions(url)[1]
    project.revise(
        "aa", f"rota.alembic.upgrade(op, to={newest})", "rota.alembic.downgrade(op, to=0)"
    )


def test_the_commands(project: Project, store_url: str) -> None:
    """Upgrade makes what `rota migrate` makes, autogenerate leaves it alone, downgrade removes it."""
    first(project, store_url)
    project.alembic("upgrade", "head")
    made = shape(store_url)
    assert versions(store_url)[0] == versions(store_url)[1][-1]
    findings = json.loads(command("doctor", "--json", url=store_url).stdout)["findings"]
    assert ("ok", "schema") in [(found["severity"], found["subject"]) for found in findings]
    with Rota(store_url) as app:
        app.task(name="probe")(print).enqueue()

    upgrade, _, downgrade = project.generated().partition("def downgrade")
    for mine in ("orders", "rota_shifts"):
        assert f"op.create_table('{mine}'" in upgrade
        assert f"op.drop_table('{mine}')" in downgrade
    assert "drop_" not in upgrade
    assert downgrade.count("create_") == 0
    project.revise("bb", "op.execute('CREATE TABLE orders (id INTEGER NOT NULL PRIMARY KEY)')")
    project.alembic("upgrade", "head")

    project.alembic("downgrade", "base")
    assert shape(store_url) == []
    command("migrate", url=store_url)
    assert shape(store_url) == made


def test_without_the_filter(tmp_path: Path, store_url: str) -> None:
    """What the filter is for: without it autogenerate wants to drop Rota's tables."""
    command("migrate", url=store_url)
    folder = tmp_path / "project"
    folder.mkdir()
    project = Project(folder, alchemys(store_url), include_name="None", schemas=True)
    upgrade, _, _ = project.generated().partition("def downgrade")
    assert (
        "op.drop_table('rota_job')" in upgrade or "op.drop_table('log', schema='rota')" in upgrade
    )


def test_written_sql(project: Project, store_url: str) -> None:
    """`--sql` writes what makes the same tables, for each database's own client."""
    first(project, store_url)
    project.revise("bb", f"rota.alembic.upgrade(op, to={versions(store_url)[1][-1]}, after=3)")
    apply(store_url, project.alembic("upgrade", "head", "--sql"))
    assert versions(store_url)[0] == versions(store_url)[1][-1]
    assert "bb (head)" in project.alembic("current")
    apply(store_url, project.alembic("downgrade", "head:base", "--sql"))
    assert shape(store_url) == []


def apply(url: str, text: str) -> None:
    """Run SQL that was written by a command."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            file.executescript(text)
    else:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(text.encode())


def old(url: str, version: int) -> None:
    """Make the tables of a version."""
    store = open_store(url)
    with closing(store), closing(store.connect()) as connection:
        make_old(store, connection, version)


def test_older_tables_go_so_far_as_is_said(store_url: str) -> None:
    """Each migration does what its author saw; the last one brings the newest."""
    known = versions(store_url)[1]
    old(store_url, known[-3])
    with migrating(alchemys(store_url)) as (op, _):
        rota.alembic.upgrade(op, to=known[-2])
    assert versions(store_url)[0] == known[-2]
    with migrating(alchemys(store_url)) as (op, _):
        rota.alembic.upgrade(op, to={"postgresql": known[-1], "sqlite": known[-1]})
        rota.alembic.upgrade(op, to=known[-3])
    assert versions(store_url)[0] == known[-1]


def test_the_whole_way_in_one_transaction(store_url: str) -> None:
    """No step needs to be outside of a transaction, and a rollback takes all of them back."""
    known = versions(store_url)[1]
    old(store_url, 1)
    before = shape(store_url)
    engine = sa.create_engine(alchemys(store_url))
    with engine.connect() as connection:
        if store_url.startswith("sqlite"):
            connection.exec_driver_sql("BEGIN")
        op = Operations(MigrationContext.configure(connection))
        rota.alembic.upgrade(op, to=known[-1])
        connection.rollback()
        assert shape(store_url) == before
        if store_url.startswith("sqlite"):
            connection.exec_driver_sql("BEGIN")
        rota.alembic.upgrade(op, to=known[-1])
        connection.commit()
    engine.dispose()
    assert versions(store_url)[0] == known[-1]


def test_going_back_changes_nothing(store_url: str) -> None:
    """Code that knows the older version works with newer tables; where it does not, that is said."""
    known = versions(store_url)[1]
    command("migrate", url=store_url)
    before = shape(store_url)
    with migrating(alchemys(store_url)) as (op, _):
        rota.alembic.downgrade(op, to=known[-2])
    assert shape(store_url) == before
    view = "rota_oldest_code" if store_url.startswith("sqlite") else "rota.oldest_code"
    with migrating(alchemys(store_url)) as (op, connection):
        connection.exec_driver_sql(f"DROP VIEW {view}")
        connection.exec_driver_sql(f"CREATE VIEW {view} AS SELECT {known[-1]} AS version")
        with pytest.raises(SchemaTooNew, match=f"cannot go back to {known[-2]}"):
            rota.alembic.downgrade(op, to=known[-2])


def test_removing_while_in_use(postgres_url: str) -> None:
    """Tables that others use are not waited for, and the error says what to do."""
    command("migrate", url=postgres_url)
    newest = versions(postgres_url)[1][-1]
    with psycopg.connect(postgres_url) as user:
        user.execute("LOCK TABLE rota.timer IN ROW EXCLUSIVE MODE")
        refused = pytest.raises(
            StoreUnavailable, match=r"other sessions were using.*run this migration again"
        )
        with migrating(alchemys(postgres_url)) as (op, connection):
            connection.exec_driver_sql("SET LOCAL statement_timeout = '9s'")
            with refused, connection.begin_nested():
                rota.alembic.downgrade(op, to=0)
            assert connection.exec_driver_sql("SHOW lock_timeout").scalar() == "0"
    assert versions(postgres_url)[0] == newest


def test_tables_without_a_version(store_url: str) -> None:
    """A dump without Rota's data is not taken for an empty database, nor for an old one."""
    command("migrate", url=store_url)
    table = "rota_schema" if store_url.startswith("sqlite") else "rota.schema_version"
    with migrating(alchemys(store_url)) as (op, connection):
        connection.exec_driver_sql(f"DELETE FROM {table}")
        with pytest.raises(SchemaIncomplete, match="restore that data"):
            rota.alembic.upgrade(op, to=1)
    if store_url.startswith("sqlite"):
        return
    with migrating(alchemys(store_url)) as (op, connection):
        connection.exec_driver_sql(f"DROP TABLE {table} CASCADE")
        with pytest.raises(SchemaIncomplete, match="restore that data"), connection.begin_nested():
            rota.alembic.upgrade(op, to=1)


def test_a_step_is_whole(tmp_path: Path) -> None:
    """On SQLite, whose migrations have no transaction, half of a step does not stay."""
    url = f"sqlite:///{tmp_path}/rota.db"
    with closing(sqlite3.connect(f"{tmp_path}/rota.db")) as file:
        # The last thing that is made is there already.
        file.execute("CREATE TABLE rota_note (id INTEGER)")
        with (
            migrating(url) as (op, _),
            pytest.raises(RotaError, match="rota_note already exists"),
        ):
            rota.alembic.upgrade(op, to=1)
        assert file.execute("SELECT name FROM sqlite_master").fetchall() == [("rota_note",)]


def test_a_role_called_rota(postgres_url: str) -> None:
    """Its own tables would be made in the schema of its name, among Rota's: that is refused before."""
    newest = versions(postgres_url)[1][-1]
    refused = pytest.raises(ConfigError, match="SET search_path = public")
    with migrating(alchemys(postgres_url)) as (op, connection):
        for path in ("rota", "rota, public"):
            connection.exec_driver_sql(f"SET LOCAL search_path = {path}")
            with refused:
                rota.alembic.upgrade(op, to=newest)
        connection.exec_driver_sql("SET LOCAL search_path = public, rota")
        rota.alembic.upgrade(op, to=newest)
        rota.alembic.downgrade(op)
        connection.exec_driver_sql("CREATE ROLE rota")
        connection.exec_driver_sql("SET LOCAL search_path TO DEFAULT")
        connection.exec_driver_sql("SET LOCAL ROLE rota")
        with refused:
            rota.alembic.upgrade(op, to=newest)
        connection.rollback()


@pytest.mark.parametrize(
    ("to", "words"),
    [
        pytest.param(99, "must be a whole number up to", id="too new"),
        pytest.param(0, "must be a whole number up to", id="none"),
        pytest.param(True, "must be a whole number up to", id="a bool"),
        pytest.param("12", "must be a whole number up to", id="a text"),
        pytest.param({}, "add '(postgresql|sqlite)': ", id="of another dialect"),
    ],
)
def test_impossible_versions(store_url: str, to: Any, words: str) -> None:
    """What `to` may be is said."""
    with migrating(alchemys(store_url)) as (op, _):
        with pytest.raises(ConfigError, match=words):
            rota.alembic.upgrade(op, to=to)
        assert shape(store_url) == []


def test_another_dialect() -> None:
    """A migration for a database that Rota does not work on is refused."""
    op = Operations(MigrationContext.configure(dialect_name="mysql", opts={"as_sql": True}))
    with pytest.raises(ConfigError, match="does not support mysql"):
        rota.alembic.upgrade(op, to=1)


def test_sql_for_sqlite_in_one_transaction() -> None:
    """What would be written cannot run inside BEGIN: it is not written."""
    options = {"as_sql": True, "transactional_ddl": True}
    op = Operations(MigrationContext.configure(dialect_name="sqlite", opts=options))
    with pytest.raises(ConfigError, match="leave transactional_ddl out"):
        rota.alembic.upgrade(op, to=12)


@pytest.mark.asyncio
@pytest.mark.parametrize("driver", ["asyncpg", "psycopg", "aiosqlite"])
async def test_other_drivers(request: pytest.FixtureRequest, tmp_path: Path, driver: str) -> None:
    """Alembic's async template runs the migrations on an async engine; other drivers do, too."""
    if driver == "aiosqlite":
        url, scheme = f"sqlite:///{tmp_path}/rota.db", "sqlite"
    else:
        url, scheme = request.getfixturevalue("postgres_url"), "postgresql"
    newest = versions(url)[1][-1]

    def run(connection: sa.Connection) -> None:
        op = Operations(MigrationContext.configure(connection))
        rota.alembic.upgrade(op, to=newest)
        rota.alembic.downgrade(op)
        rota.alembic.upgrade(op, to=newest)

    engine = create_async_engine(url.replace(scheme, f"{scheme}+{driver}", 1))
    async with engine.begin() as connection:
        await connection.run_sync(run)
    await engine.dispose()
    assert versions(url)[0] == newest


def test_names() -> None:
    """What autogenerate may look at, as Alembic asks."""
    ask = rota.alembic.include_name
    assert ask(None, "schema", {})
    assert not ask("rota", "schema", {})
    assert not ask("log", "table", {"schema_name": "rota"})
    assert not ask("log_key", "index", {"schema_name": "rota", "table_name": "log"})
    assert not ask("rota_job", "table", {"schema_name": None})
    assert ask("rota_shifts", "table", {"schema_name": None})
    assert ask("rota_job", "column", {"schema_name": None, "table_name": "orders"})
