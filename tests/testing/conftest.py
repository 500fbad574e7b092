"""An app with tasks, and connections whose transactions the tests roll back."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shutil import copyfile
from typing import Any

import psycopg
import pytest

from rota import Rota
from rota.testing import Kit
from tests.fixtures.stores import empty_database


@pytest.fixture(params=["sqlite", "postgres"])
def kit_url(request: pytest.FixtureRequest, migrated_sqlite: Path) -> str:
    """The URL of a database with Rota's tables."""
    url = empty_database(request)
    if request.param == "sqlite":
        copyfile(migrated_sqlite, url.removeprefix("sqlite:///"))
    return url


@pytest.fixture
def app(kit_url: str) -> Iterator[Rota]:
    """An app without tasks."""
    with Rota(kit_url) as app:
        yield app


def connect(url: str) -> Any:
    """A driver's connection."""
    if url.startswith("sqlite"):
        return sqlite3.connect(url.removeprefix("sqlite:///"))
    return psycopg.connect(url)


def alchemy(url: str, driver: str) -> str:
    """The URL as SQLAlchemy wants it."""
    if url.startswith("sqlite"):
        return url.replace("sqlite:", f"sqlite+{driver}:" if driver else "sqlite:")
    return url.replace("postgresql:", f"postgresql+{driver}:")


def stored(url: str) -> int:
    """How many jobs are committed, in any state."""
    with closing(connect(url)) as connection:
        table = "rota_job" if url.startswith("sqlite") else "rota.job"
        [count] = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(count)


@pytest.fixture
def conn(kit_url: str) -> Iterator[Any]:
    """A driver's connection; what happens on it is rolled back, and nothing stays."""
    with closing(connect(kit_url)) as connection:
        yield connection
        connection.rollback()
        assert stored(kit_url) == 0


@pytest.fixture
def kit(conn: Any, app: Rota) -> Iterator[Kit]:
    """The kit on that connection."""
    with Kit(conn, app=app) as kit:
        yield kit


@pytest.fixture
def note_table(conn: Any) -> None:
    """A table of the test's own, in its transaction."""
    if isinstance(conn, sqlite3.Connection) and not conn.in_transaction:
        conn.execute("BEGIN")
    conn.execute("CREATE TABLE note (text text)")


def notes(conn: Any) -> list[str]:
    return [text for (text,) in conn.execute("SELECT text FROM note ORDER BY text").fetchall()]


def write(conn: Any, text: str) -> None:
    conn.execute(f"INSERT INTO note (text) VALUES ('{text}')")
