"""A database that can be taken away and given back, of either kind."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from rota.store.protocol import Store


@dataclass(frozen=True)
class Outage:
    """Takes the database away, and gives it back."""

    begin: Callable[[], None]
    end: Callable[[], None]


@pytest.fixture
def outage(store: Store, store_url: str) -> Iterator[Outage]:
    """The file is somewhere else, or the server refuses connections and ends those there are."""
    if store.name == "sqlite":
        file = Path(store_url.removeprefix("sqlite:///"))
        away = file.with_name("away.db")
        yield Outage(lambda: _move(file, away), lambda: _move(away, file))
        return
    found = re.search(r"/(rota_test_\w+)", store_url)
    assert found is not None
    name = found[1]
    # From another database: this one refuses connections.
    with closing(psycopg.connect(store_url.replace(name, "postgres"), autocommit=True)) as admin:

        def allow(word: str) -> None:
            admin.execute(
                sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}").format(
                    sql.Identifier(name), sql.SQL(word)
                )
            )
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
            )

        yield Outage(lambda: allow("false"), lambda: allow("true"))
        allow("true")


def _move(file: Path, to: Path) -> None:
    file.rename(to)
