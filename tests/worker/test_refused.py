"""A worker whose role lacks a right ends with the error, and does not idle."""

import asyncio
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from rota import ConfigError, Rota, WorkerConfig
from rota.worker import Worker
from tests.cli.calling import SHOP, finished
from tests.fixtures.workers import LONG
from tests.store.postgres.database import Database


@pytest.fixture
def db(postgres_url: str) -> Iterator[Database]:
    """A migrated database of the test's own."""
    with Database(postgres_url) as database:
        yield database


@pytest.fixture
def role(db: Database) -> Iterator[str]:
    """A role that has all rights a worker needs."""
    name = f"app_{secrets.token_hex(4)}"
    db.sql(f"CREATE ROLE {name}")
    db.sql(f"GRANT USAGE ON SCHEMA rota TO {name}")
    for kind in ("TABLES", "SEQUENCES"):
        db.sql(f"GRANT ALL ON ALL {kind} IN SCHEMA rota TO {name}")
    yield name
    db.sql(f"DROP OWNED BY {name}")
    db.sql(f"DROP ROLE {name}")


def as_role(db: Database, role: str) -> str:
    """The URL of the database as that role."""
    return f"{db.url}{'&' if '?' in db.url else '?'}options=-c%20role%3D{role}"


@pytest.mark.parametrize(
    ("right", "table"),
    [
        ("INSERT", "session"),
        ("INSERT", "heartbeat"),
        ("INSERT", "cursor"),
        ("SELECT", "timer"),
        ("DELETE", "lease"),
    ],
)
def test_a_missing_right(db: Database, role: str, right: str, table: str) -> None:
    """Whichever of its threads needs the right: it ends, and says which one is missing."""
    with Rota(as_role(db, role)) as app:

        @app.task(name="work")
        async def work() -> None: ...

        work.enqueue()
        db.sql(f"REVOKE {right} ON rota.{table} FROM {role}")
        worker = Worker(app, WorkerConfig())
        with pytest.raises(ConfigError, match=rf"permission denied for table {table}.*rota doctor"):
            asyncio.run(asyncio.wait_for(worker.arun(signals=False), LONG))


def test_the_command(db: Database, role: str, tmp_path: Path) -> None:
    """The exit status is that of a database that refuses; the last line is what to do."""
    (tmp_path / "shop.py").write_text(SHOP)
    db.enqueue(1)
    db.sql(f"REVOKE INSERT ON rota.lease FROM {role}")
    url = as_role(db, role)
    run = finished("worker", "shop", "--url", url, cwd=tmp_path)
    assert run.returncode == 3, run.stderr
    assert "Traceback" not in run.stderr
    last = run.stderr.splitlines()[-1]
    assert last.startswith("Error: ")
    assert "permission denied for table lease" in last
    assert f"`rota doctor --url '{url}'`" in last


def test_without_tables(postgres_url: str, tmp_path: Path) -> None:
    """Without tables it does not start, and names the command that makes them here."""
    (tmp_path / "shop.py").write_text(SHOP)
    run = finished("worker", "shop", "--url", postgres_url, cwd=tmp_path)
    assert run.returncode == 4
    assert "`rota migrate --url '" in run.stderr
