"""`rota migrate` where a dump was restored without Rota's data."""

import sqlite3
import subprocess
from contextlib import closing, suppress

import psycopg
import pytest

from rota import Rota, SchemaIncomplete
from rota.store.migrate import scripts
from rota.store.opening import open_store
from tests.cli.by_hand import CLIENTS, Apply, client
from tests.cli.calling import refused, rota
from tests.store.schema import described, drop

pytestmark = pytest.mark.both

WITHOUT = {
    "sqlite": [".schema"],
    "postgres": ["--schema-only", "--exclude-table-data=rota.*", "--exclude-table=rota.*"],
}
"""What is left out of a dump; the last one of PostgreSQL's leaves the schema and its functions."""
EACH = [(store, option) for store, options in WITHOUT.items() for option in options]
WORDS = {"sqlite": "remove the tables and views", "postgres": "DROP SCHEMA rota CASCADE"}


def dumped(url: str, option: str) -> str:
    """A dump of the database."""
    if option == ".schema":
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            made = connection.execute(
                "SELECT sql FROM sqlite_master WHERE name NOT GLOB 'sqlite_*'"
            )
            return "".join(f"{sql};\n" for (sql,) in made if sql)
    done = subprocess.run(
        [client("pg_dump"), option, url], capture_output=True, text=True, check=True, timeout=100
    )
    return done.stdout


def restored(url: str, option: str) -> None:
    """Make the tables, dump them, and restore the dump where nothing is."""
    assert rota("migrate", url=url).exit_code == 0
    text = dumped(url, option)
    with closing(open_store(url)) as store:
        drop(store)
    CLIENTS[kind(url)][1](url, text)


def kind(url: str) -> str:
    """The store's name."""
    return "sqlite" if url.startswith("sqlite") else "postgres"


def there(url: str) -> list[str]:
    """All tables, views and functions."""
    with closing(open_store(url)) as store:
        return described(store)


@pytest.mark.parametrize(("store_url", "option"), EACH, indirect=["store_url"])
def test_a_dump_without_data(store_url: str, option: str) -> None:
    """It says what is the matter and what to do, changes nothing, and works once that is done."""
    restored(store_url, option)
    before = there(store_url)
    assert before
    refused(rota("migrate", url=store_url), 4, "as after a dump", WORDS[kind(store_url)])
    assert there(store_url) == before
    with closing(open_store(store_url)) as store:
        drop(store)
    assert rota("migrate", url=store_url).exit_code == 0
    assert rota("queues", "list", url=store_url).exit_code == 0


TABLES = [one for one in EACH if one[1] != "--exclude-table=rota.*"]


@pytest.mark.parametrize(("store_url", "option"), TABLES, indirect=["store_url"])
def test_everything_says_so(store_url: str, option: str) -> None:
    """Commands, doctor and programs refuse to work with such tables."""
    restored(store_url, option)
    for words in (["migrate", "--dry-run"], ["queues", "list"]):
        refused(rota(*words, url=store_url), 4, "as after a dump", WORDS[kind(store_url)])
    doctor = rota("doctor", url=store_url)
    assert doctor.exit_code == 2
    assert "Rota's tables have no version" in doctor.stdout
    with (
        closing(Rota(store_url)) as app,
        pytest.raises(SchemaIncomplete, match=WORDS[kind(store_url)]),
    ):
        app.task(name="shop.send")(print).enqueue()


@pytest.mark.parametrize(
    ("store_url", "apply"),
    [(store, apply) for store, clients in CLIENTS.items() for apply in clients],
    indirect=["store_url"],
)
def test_by_hand(store_url: str, apply: Apply) -> None:
    """The file for a new database changes nothing there, either."""
    restored(store_url, WITHOUT[kind(store_url)][0])
    before = there(store_url)
    [text] = scripts(open_store(store_url), 0).values()
    with suppress(sqlite3.Error, psycopg.Error, subprocess.CalledProcessError):
        apply(store_url, text)
    assert there(store_url) == before
    refused(rota("migrate", url=store_url), 4, "as after a dump")
