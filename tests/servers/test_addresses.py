"""URLs of the databases of one server."""

import pytest

from rota.measure.servers.addresses import of_database


@pytest.mark.parametrize(
    ("server", "url"),
    [
        ("postgresql:///shop", "postgresql:///made"),
        ("postgresql://db.example/shop", "postgresql://db.example/made"),
        ("postgresql://me:a%2Fb@db:5433/shop?sslmode=require",
         "postgresql://me:a%2Fb@db:5433/made?sslmode=require"),
        ("postgres://me@/postgres?host=%2Frun%2Fpg", "postgres://me@/made?host=%2Frun%2Fpg"),
        ("postgresql://db.example", "postgresql://db.example/made"),
    ],
)  # fmt: skip
def test_another_database(server: str, url: str) -> None:
    """Only the database changes, and a URL without a host stays one."""
    assert of_database(server, "made") == url


def test_a_name_that_needs_quoting() -> None:
    """A name is one part of the path, whatever is in it."""
    assert of_database("postgresql:///shop", "a/b?c") == "postgresql:///a%2Fb%3Fc"
