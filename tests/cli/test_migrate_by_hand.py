"""`rota migrate --dry-run > rota.sql`, and what comes of it when a person applies the file."""

import json
import sqlite3
import subprocess
from contextlib import closing, suppress

import psycopg
import pytest

from rota import Rota
from rota.store.migrate import read_migrations, scripts
from rota.store.opening import open_store
from rota.store.sqlite.schema import split
from tests.cli.by_hand import CLIENTS, Apply, at_once, broken_off, executescript, shell
from tests.cli.calling import answer, rota
from tests.fixtures.workers import drained
from tests.store.schema import described, drop, make_old, rows

pytestmark = pytest.mark.both

EACH = [(store, client) for store, clients in CLIENTS.items() for client in clients]
EACH_STOPPING = [(store, client) for store, client in EACH if client is not shell]
"""Those with which a step is a whole also where one of its statements fails."""
FIRST = [(store, clients[0]) for store, clients in CLIENTS.items()]
each_client = pytest.mark.parametrize(("store_url", "apply"), EACH, indirect=["store_url"])
VERSIONS = [
    (store, version) for store in CLIENTS for version in read_migrations(f"rota.store.{store}")
]
OLD = 3
"""How many steps an old database is behind."""


def printed(url: str) -> str:
    """What `--dry-run` writes to the file."""
    result = rota("migrate", "--dry-run", url=url)
    assert result.exit_code == 0, result.output
    return result.stdout


def newest(url: str) -> int:
    """The newest version."""
    return max(open_store(url).migrations())


def make(url: str, version: int) -> None:
    """Make the tables of an older version."""
    with closing(open_store(url)) as store, closing(store.connect()) as connection:
        make_old(store, connection, version)


def there(url: str) -> tuple[int, list[str]]:
    """The version, and all that is in the database."""
    with closing(open_store(url)) as store, closing(store.connect()) as connection:
        version = connection.run(store.schema_version())
        return version, [*described(store), *rows(store)] if version else []


def check_up_to_date(url: str) -> None:
    """Doctor, `rota migrate` and a worker find the tables that `rota migrate` makes."""
    findings = json.loads(rota("doctor", "--json", url=url).stdout)["findings"]
    [schema] = [one for one in findings if one["subject"] == "schema"]
    assert schema["severity"] == "ok", schema
    assert answer("migrate", url=url)["applied"] == []
    made = there(url)
    check_worker(url)
    with closing(open_store(url)) as store:
        drop(store)
    rota("migrate", url=url)
    assert there(url) == made


def check_worker(url: str) -> None:
    """A job is enqueued and run."""
    done: list[int] = []
    with closing(Rota(url)) as app:

        @app.task(name="shop.send")
        def send(number: int) -> None:
            done.append(number)

        send.enqueue(7)
        drained(app)
    assert done == [7]


@pytest.mark.large
@pytest.mark.parametrize(("store_url", "version"), VERSIONS, indirect=["store_url"])
def test_a_database_of_every_version(store_url: str, version: int) -> None:
    """The file brings it up to date, and Rota sees that."""
    make(store_url, version)
    apply = CLIENTS["sqlite" if store_url.startswith("sqlite") else "postgres"][0]
    apply(store_url, printed(store_url))
    check_up_to_date(store_url)


@each_client
def test_a_new_database(store_url: str, apply: Apply) -> None:
    """Each client makes the tables; a second time the file changes nothing."""
    text = printed(store_url)
    apply(store_url, text)
    before = there(store_url)
    _again(store_url, apply, text)
    assert there(store_url) == before
    check_up_to_date(store_url)


@each_client
def test_an_old_database(store_url: str, apply: Apply) -> None:
    """Each client goes all steps; a second time the file changes nothing."""
    make(store_url, newest(store_url) - OLD)
    text = printed(store_url)
    apply(store_url, text)
    before = there(store_url)
    _again(store_url, apply, text)
    assert there(store_url) == before
    check_up_to_date(store_url)


def _again(url: str, apply: Apply, text: str) -> None:
    try:
        apply(url, text)
    except sqlite3.IntegrityError as error:
        assert "changed nothing; run `rota migrate`" in str(error)  # noqa: PT017 - some fail


@each_client
def test_a_file_for_another_version(store_url: str, apply: Apply) -> None:
    """A file whose first steps are missing changes nothing, and says why where the client tells."""
    make(store_url, newest(store_url) - OLD)
    before = there(store_url)
    text = "".join([*scripts(open_store(store_url), newest(store_url) - OLD).values()][1:])
    try:
        apply(store_url, text)
    except (sqlite3.Error, psycopg.Error) as error:
        assert f"this step needs Rota's tables of version {before[0] + 1}" in str(error)  # noqa: PT017
    except subprocess.CalledProcessError as error:
        assert f"this step needs Rota's tables of version {before[0] + 1}" in error.stderr  # noqa: PT017
    assert there(store_url) == before
    assert rota("migrate", url=store_url).exit_code == 0
    check_up_to_date(store_url)


@pytest.mark.parametrize("steps", range(1, OLD + 1))
@pytest.mark.parametrize(("store_url", "apply"), FIRST, indirect=["store_url"])
def test_continued_by_rota(store_url: str, apply: Apply, steps: int) -> None:
    """Where a person stopped after some of the steps, `rota migrate` goes on."""
    version = newest(store_url) - OLD
    make(store_url, version)
    for sql in [*scripts(open_store(store_url), version).values()][:steps]:
        apply(store_url, sql)
    assert answer("migrate", url=store_url)["applied"] == [
        *range(version + steps + 1, version + OLD + 1)
    ]
    check_up_to_date(store_url)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("behind", [0, OLD])
def test_broken_off_between_two_statements(store_url: str, behind: int) -> None:
    """Wherever the connection was lost, `rota migrate` goes on, with a version that is true."""
    version = newest(store_url) - behind if behind else 0
    text = "".join(scripts(open_store(store_url), version).values())
    rota("migrate", url=store_url)
    made = there(store_url)
    lengths = range(1, len(list(split(text))) + 1)
    assert len(lengths) > behind * 7
    for statements in lengths:
        with closing(open_store(store_url)) as store:
            drop(store)
        make(store_url, version)
        broken_off(store_url, text, statements)
        assert rota("migrate", url=store_url).exit_code == 0
        assert there(store_url) == made


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_broken_off_in_a_transaction(store_url: str) -> None:
    """A transaction around the file that is not committed leaves nothing, and keeps nobody waiting."""
    with psycopg.connect(store_url) as connection:
        connection.execute(printed(store_url).encode())
        connection.rollback()
    assert there(store_url)[0] == 0
    assert rota("migrate", url=store_url).exit_code == 0
    check_up_to_date(store_url)


OBSTACLES = {"sqlite": "rota_cron", "postgres": "rota.lane_used"}
"""Views that are made in the middle of the first step after a version."""


@pytest.mark.parametrize(("store_url", "apply"), EACH_STOPPING, indirect=["store_url"])
def test_a_step_that_fails(store_url: str, apply: Apply) -> None:
    """A step that fails in its middle has changed nothing; the same file can be applied again."""
    kind = "sqlite" if store_url.startswith("sqlite") else "postgres"
    [first, *_] = [
        version
        for version, sql in read_migrations(f"rota.store.{kind}").items()
        if f"CREATE VIEW {OBSTACLES[kind]}" in sql
    ]
    make(store_url, first - 1)
    text = printed(store_url)
    at = {"sqlite": executescript, "postgres": at_once}[kind]
    at(store_url, f"CREATE VIEW {OBSTACLES[kind]} AS SELECT 1 AS one")
    before = there(store_url)
    with suppress(sqlite3.Error, psycopg.Error, subprocess.CalledProcessError):
        apply(store_url, text)
    assert there(store_url) == before
    at(store_url, f"DROP VIEW {OBSTACLES[kind]}")
    apply(store_url, text)
    check_up_to_date(store_url)
