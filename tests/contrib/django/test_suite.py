"""The suite in `suite/`, on each database and driver of Django's, and on Django 5.2 and 6."""

import os
import re
import subprocess
import sys
from pathlib import Path

import django
import pytest

from tests.fixtures.postgres import TESTED

ROOT = Path(__file__).parents[3]

LONGEST = 200
"""Seconds."""

OLDEST_OF_DJANGO_6 = 15
"""Of PostgreSQL; Django 5.2 takes 14, too."""

pytestmark = pytest.mark.timeout(LONGEST)


def run(url: str, *arguments: str, file: Path | None = None) -> str:
    """Run the suite, or some of it; what it printed."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("ROTA_")}
    own = {
        "SHOP_DATABASE_URL": url,
        "SHOP_TEST_FILE": "" if file is None else str(file),
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT / "lab" / "src", ROOT))),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.contrib.django.run", *arguments],
        cwd=ROOT, env=inherited | own, capture_output=True, text=True, timeout=LONGEST, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-20_000:]
    assert re.search(r"^Ran [1-9]\d* tests", done.stderr, re.MULTILINE)
    return done.stderr


def test_sqlite(tmp_path: Path) -> None:
    """All of it on SQLite."""
    said = run("sqlite:///shop.db", file=tmp_path / "test.db")
    assert "sqlite3" in said


@pytest.mark.large
def test_sqlite_in_memory() -> None:
    """What needs no worker on a database in memory, as Django's tests have it unless told otherwise."""
    run(
        "sqlite:///shop.db",
        "test_enqueue",
        "test_joining",
        "test_kit",
        "test_kit_async",
        "test_tasks",
        "test_admin",
    )


@pytest.mark.large
def test_postgres(postgres_url: str) -> None:
    """Connections and workers on PostgreSQL through psycopg 3."""
    said = run(
        postgres_url, "test_enqueue", "test_joining", "test_kit", "test_kit_async", "test_worker"
    )
    assert ", psycopg," in said


@pytest.mark.large
def test_postgres_whole(postgres_url: str) -> None:
    """All of it on PostgreSQL."""
    run(postgres_url)


@pytest.mark.large
def test_psycopg2(postgres_url: str) -> None:
    """All of it through psycopg2."""
    said = run(postgres_url, "--psycopg2")
    assert ", psycopg2," in said


@pytest.mark.pythons
@pytest.mark.skipif(
    django.VERSION < (6, 0), reason="Django 6 needs Python 3.12: `make test-pythons` runs this"
)
def test_django_6(postgres_url: str, request: pytest.FixtureRequest) -> None:
    """All of it on Django 6 and PostgreSQL; `make test-pythons` has that, and runs SQLite as well."""
    version = request.config.stash[TESTED].version
    if int(version.partition(".")[0]) < OLDEST_OF_DJANGO_6:
        pytest.skip(f"Django 6 needs PostgreSQL {OLDEST_OF_DJANGO_6}, and this is {version}")
    said = run(postgres_url)
    assert re.search(r"^Django [6-9]", said, re.MULTILINE)
