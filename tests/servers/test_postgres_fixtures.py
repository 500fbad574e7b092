"""What a run of the tests says and does about databases, with and without PostgreSQL."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.fixtures.large import LARGE

ROOT = Path(__file__).parents[2]


def run_tests(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run this very file's fast tests in a pytest of their own."""
    names = ("ROTA_REQUIRE", "ROTA_TEST_POSTGRES", "ROTA_TEST_POSTGRES_BIN")
    environment = {k: v for k, v in os.environ.items() if k not in names and "PYTEST" not in k}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", __file__, *arguments],
        cwd=ROOT,
        env={**environment, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_database_is_empty_and_can_be_used(store_url: str) -> None:
    if store_url.startswith("sqlite"):
        assert store_url.endswith("/rota.db")
        return
    with psycopg.connect(store_url) as connection:
        tables = connection.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'public'")
        assert tables.fetchall() == []
    connection.close()


def test_without_postgres_its_tests_are_skipped_and_the_run_says_so(tmp_path: Path) -> None:
    run = run_tests("-k", "each_database", "-n", "0", ROTA_TEST_POSTGRES_BIN=str(tmp_path))
    assert run.returncode == 0, run.stdout
    assert run.stdout.count("PostgreSQL: none, SQLite alone is tested (ROTA_TEST_POSTGRES_BIN") == 2
    assert "1 passed, 1 skipped" in run.stdout


def test_a_run_that_requires_postgres_fails_without(tmp_path: Path) -> None:
    run = run_tests("-n", "0", ROTA_TEST_POSTGRES_BIN=str(tmp_path), ROTA_REQUIRE="postgres")
    assert run.returncode != 0
    assert "ROTA_REQUIRE=postgres, but" in run.stderr


def test_a_misspelt_requirement_fails() -> None:
    run = run_tests("-n", "0", ROTA_REQUIRE="postgers")
    assert run.returncode != 0
    assert "it may name: postgres" in run.stderr


@pytest.mark.large
def test_someones_server_is_used_and_shared_by_parallel_workers(postgres_url: str) -> None:
    run = run_tests(
        "-k", "each_database", "-n", "2", "-m", "postgres", ROTA_TEST_POSTGRES=postgres_url
    )
    assert run.returncode == 0, run.stdout
    assert run.stdout.count("from ROTA_TEST_POSTGRES") == 2
    assert "\n1/1: servers/test_postgres_fixtures.py\n" in run.stdout
    assert "1 passed" in run.stdout


@pytest.mark.large
def test_a_large_one() -> None:
    assert LARGE


@pytest.mark.large
def test_large_tests_are_left_out_unless_they_are_asked_for() -> None:
    small, large = (run_tests("-k", "large_one", "-n", "0", ROTA_TEST_LARGE=how) for how in "01")
    assert "Large tests: left out" in small.stdout
    assert "passed" not in small.stdout
    assert "1 passed" in large.stdout


@pytest.mark.usefixtures("postgres_url")
def test_what_needs_postgres_is_marked(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("postgres")
