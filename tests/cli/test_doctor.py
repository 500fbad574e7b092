"""`rota doctor`."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from shlex import quote
from typing import Any

import pytest

from rota.doctor import file, horizon
from rota.model.job import SessionInfo
from rota.store.connections import Connection
from rota.store.protocol import Store
from rota.store.url import shown
from tests.cli.calling import finished, refused, rota
from tests.store.factories import enqueue, open_session
from tests.store.postgres.database import Database


@pytest.fixture(autouse=True)
def a_sound_sqlite(monkeypatch: pytest.MonkeyPatch) -> None:
    """The findings do not depend on the machine's SQLite."""
    monkeypatch.setattr(file, "affected", lambda _: False)


@pytest.fixture
def url(store_url: str, store: Store) -> str:
    """The URL of a database that has its tables."""
    assert store.name in store_url
    return store_url


def document(url: str, *options: str) -> tuple[int, dict[str, Any]]:
    """The exit status, and what is printed with `--json`."""
    result = rota("doctor", "--json", *options, url=url)
    assert result.stderr == ""
    return result.exit_code, json.loads(result.stdout)


def test_in_order(url: str, store: Store, connection: Connection) -> None:
    """A database with a worker has at most notes, and the exit status is 0."""
    open_session(store, connection)
    code, said = document(url)
    assert code == 0
    assert said["severity"] in {"ok", "note"}
    assert {finding["severity"] for finding in said["findings"]} <= {"ok", "note"}
    assert {"schema", "workers", "queues", "timers"} <= {
        finding["subject"] for finding in said["findings"]
    }
    assert said["facts"]["work"]["sessions"][0]["worker"] == "alpha:4711"


def test_a_warning(url: str, store: Store, connection: Connection) -> None:
    """A job without a worker is a warning: status 1."""
    enqueue(store, connection)
    code, said = document(url)
    assert (code, said["severity"]) == (1, "warning")
    first = said["findings"][0]
    assert first["title"] == "No worker is alive"
    assert first["advice"] == f"rota worker MODULE:APP --url {quote(shown(url))}"


def test_a_queue_that_nobody_serves(url: str, store: Store, connection: Connection) -> None:
    """It is noted with its first job, while workers of other queues live.

    A pause or a worker is another matter.
    """
    open_session(store, connection)
    enqueue(store, connection, queue="video")
    code, said = document(url)
    assert code == 0
    [found] = [one for one in said["findings"] if one["subject"] == "queues" and one["advice"]]
    assert (found["severity"], found["title"]) == ("note", "No worker takes jobs from queue video")
    assert found["advice"].startswith("rota worker MODULE:APP --queue video")
    connection.run(store.open_session(SessionInfo("beta", 1, ("video",), 600.0)))
    _, said = document(url)
    assert [one for one in said["findings"] if one["severity"] not in {"ok", "note"}] == []
    assert "No worker takes jobs" not in str(said["findings"])


def test_something_critical(url: str, store: Store, connection: Connection) -> None:
    """A delayed job that is long overdue is critical: status 2. The worst stands first."""
    enqueue(store, connection, 1, delay=3600.0)
    table = "rota.timer" if store.name == "postgres" else "rota_job"
    column = "run_at" if store.name == "postgres" else "scheduled_at"
    ago = "now() - interval '1 hour'" if store.name == "postgres" else "scheduled_at - 7200"
    transaction = store.transaction()
    transaction.connection.execute(f"UPDATE {table} SET {column} = {ago}")
    transaction.commit()
    code, said = document(url)
    assert (code, said["severity"]) == (2, "critical")
    assert "overdue by 1 h" in said["findings"][0]["title"]
    order = ["critical", "warning", "note", "ok"]
    severities = [order.index(finding["severity"]) for finding in said["findings"]]
    assert severities == sorted(severities)


def test_without_tables(store_url: str, tmp_path: Path) -> None:
    """A database without tables is a finding, and gets none."""
    if store_url.startswith("sqlite"):
        with closing(sqlite3.connect(tmp_path / "rota.db")) as database:
            database.execute("CREATE TABLE orders (id)")
    code, said = document(store_url)
    assert code == 2
    [first, *_] = said["findings"]
    assert first["title"] == "The database has no Rota tables"
    assert first["advice"] == f"rota migrate --url {quote(shown(store_url))}"
    assert document(store_url)[0] == 2


def test_no_file(tmp_path: Path) -> None:
    """A mistyped path makes no file."""
    refused(rota("doctor", url=f"sqlite:///{tmp_path}/none.db"), 4, "no database file")
    assert list(tmp_path.iterdir()) == []


def test_no_server() -> None:
    """A server that is not there is no finding: nothing is known."""
    result = rota("doctor", url="postgresql://nobody@127.0.0.1:1/none")
    refused(result, 3, "cannot be reached")
    assert result.stdout == ""


def test_no_database(tmp_path: Path) -> None:
    """A file that is no SQLite database is critical."""
    (tmp_path / "rota.db").write_text("not a database, and long enough to be looked at " * 50)
    refused(rota("doctor", url=f"sqlite:///{tmp_path}/rota.db"), 2, "not a SQLite database")


def test_lines(url: str) -> None:
    """In a pipe each finding is a line with tabs."""
    result = rota("doctor", url=url)
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert ["note", "workers", "No worker is alive"] in [line[:3] for line in lines]
    assert all(line[0] in {"critical", "warning", "note", "ok"} for line in lines)
    assert "\x1b" not in result.stdout


def test_a_screen(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the summary comes first, findings in order last; advice is not wrapped."""
    monkeypatch.setattr("rota.cli.doctor.on_terminal", lambda: True)
    lines = rota("doctor", url=url).stdout.splitlines()
    assert " note" in lines[0]
    assert f"          → rota worker MODULE:APP --url {quote(shown(url))}" in lines
    assert lines[-1].startswith("ok        ") or lines[-1].startswith(" ")
    words = [line.split()[0] for line in lines[1:] if line and not line.startswith(" ")]
    assert words == sorted(words, key=["note", "ok"].index)


def test_names_of_others(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that other programs chose cannot command the terminal, nor break a line of a pipe."""
    monkeypatch.setattr(horizon, "OPEN_SOME_TIME", 0.0)
    gid = "evil\x1b[2J\tname\n"
    raw = db.bare()
    raw.tpc_begin(gid)
    raw.execute("CREATE TABLE made (id int)")
    raw.tpc_prepare()
    raw.close()
    try:
        result = rota("doctor", url=db.url)
    finally:
        db.admin.tpc_rollback(gid)
    assert "\x1b" not in result.stdout
    [line] = [line for line in result.stdout.splitlines() if "evil" in line]
    assert len(line.split("\t")) == 5
    assert r"evil\x1b[2J\tname\n" in line


def test_advice_of_the_environment(url: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --url, the next command finds the URL by itself, too."""
    del store
    monkeypatch.setenv("ROTA_DATABASE_URL", url)
    found = json.loads(rota("doctor", "--json").stdout)["findings"]
    assert "rota worker MODULE:APP" in [finding["advice"] for finding in found]


def test_advice_without_the_password(db: Database) -> None:
    """A command to copy names the database as every message does."""
    url = re.sub("://[^@]*@", "://postgres:hunter2@", db.url)
    result = rota("doctor", "--json", url=url)
    assert "hunter2" not in result.output
    advice = [finding["advice"] for finding in json.loads(result.stdout)["findings"]]
    assert f"rota worker MODULE:APP --url {quote(shown(url))}" in advice


def test_as_a_process(tmp_path: Path) -> None:
    """The check of a file's integrity, and the status, as the shell sees them."""
    url = f"sqlite:///{tmp_path}/rota.db"
    assert finished("migrate", url=url).returncode == 0
    done = finished("doctor", "--check", url=url)
    assert done.returncode == 0, done.stderr
    assert "\tintegrity\tThe quick check found no damage" in done.stdout


@pytest.fixture
def db(postgres_url: str) -> Any:
    """A migrated database of the test's own."""
    with Database(postgres_url) as database:
        yield database
