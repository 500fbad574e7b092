"""What commands say when the database is not as it should be."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from shlex import quote

import pytest

from rota import ConfigError, Rota
from rota.store.opening import open_store
from rota.store.url import shown
from tests.cli.calling import finished, make_tables, refused, rota
from tests.store.schema import contraction

COMMANDS = [
    ("jobs", "list"),
    ("jobs", "show", "1"),
    ("jobs", "retry", "1"),
    ("jobs", "cancel", "1"),
    ("jobs", "delete", "1"),
    ("queues", "list"),
    ("top",),
    ("queues", "pause", "mail"),
    ("queues", "resume", "mail"),
]
each_command = pytest.mark.parametrize("words", COMMANDS, ids=" ".join)

UNREACHABLE = "postgresql://user:secret@127.0.0.1:1/shop"
"""A port at which no server listens."""


def contract(url: str, version: int) -> None:
    """Make the database that of a newer Rota, with which this one cannot work."""
    make_tables(url)
    with closing(open_store(url)) as store, closing(store.connect()) as connection:
        newest = max(store.migrations())
        connection.run(store.migrate(version, contraction(store, version), after=newest))


@each_command
def test_a_database_without_tables(store_url: str, words: tuple[str, ...]) -> None:
    """Without tables the commands name `rota migrate`."""
    refused(rota(*words, url=store_url), 4, f"`rota migrate --url {quote(shown(store_url))}`")


def test_advice_of_the_environment(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --url the advice is the command alone."""
    monkeypatch.setenv("ROTA_DATABASE_URL", store_url)
    if store_url.startswith("sqlite"):
        sqlite3.connect(store_url.removeprefix("sqlite:///")).close()
    refused(rota("jobs", "list"), 4, "`rota migrate`")


@each_command
def test_no_command_makes_a_file(tmp_path: Path, words: tuple[str, ...]) -> None:
    """A mistyped path leaves nothing behind."""
    result = rota(*words, url=f"sqlite:///{tmp_path}/typo.db")
    refused(result, 4, "no database file", "typo.db", "rota migrate")
    assert not list(tmp_path.iterdir())


@each_command
def test_an_unreachable_server(words: tuple[str, ...]) -> None:
    """A server that cannot be reached has an exit code of its own; the password stays secret."""
    result = rota(*words, url=UNREACHABLE)
    refused(result, 3, "127.0.0.1")
    assert "secret" not in result.output


@each_command
def test_a_newer_schema(store_url: str, words: tuple[str, ...]) -> None:
    """Tables of a newer Rota that this one cannot work with are left alone."""
    contract(store_url, 99)
    refused(rota(*words, url=store_url), 4, "99", "upgrade Rota")


def test_an_older_schema(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of an older Rota have to be brought up to date first."""
    make_tables(store_url)
    store = open_store(store_url)
    known = store.migrations()
    more = {**known, max(known) + 1: "CREATE TABLE rota_mark (number integer);"}
    monkeypatch.setattr(type(store), "migrations", lambda *_: more)
    refused(rota("jobs", "list", url=store_url), 4, "rota migrate")


def test_migrate_refuses_a_newer_schema(store_url: str) -> None:
    """A database is never brought back."""
    contract(store_url, 99)
    refused(rota("migrate", url=store_url), 4, "99", "upgrade Rota")
    refused(rota("migrate", "--dry-run", url=store_url), 4, "99", "upgrade Rota")


def test_a_database_that_is_not_there(postgres_url: str) -> None:
    """A server that refuses counts as a server that cannot be reached."""
    elsewhere = re.sub(r"rota_test_\w+", "rota_nowhere", postgres_url)
    refused(rota("jobs", "list", url=elsewhere), 3, "rota_nowhere")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """A SQLite file cannot be made where there is no folder."""
    refused(rota("migrate", url=f"sqlite:///{tmp_path}/no/rota.db"), 3, "folder")


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """A file of another kind is named as such."""
    (tmp_path / "notes.txt").write_text("milk, eggs, flour\n" * 100)
    refused(rota("jobs", "list", url=f"sqlite:///{tmp_path}/notes.txt"), 3, "not a SQLite database")


def test_a_damaged_file(tmp_path: Path) -> None:
    """A damaged file refuses, as a server does."""
    url = f"sqlite:///{tmp_path}/rota.db"
    make_tables(url)
    with (tmp_path / "rota.db").open("r+b") as file:
        file.seek(4096)
        file.write(b"milk, eggs, flour" * 4096)
    refused(rota("jobs", "list", url=url), 3, "damaged", ".recover")


@pytest.mark.parametrize(
    "url",
    ["nonsense", "mysql://shop", "sqlite://rota.db", "sqlite:///:memory:", "postgresql://h:x/y"],
)
@pytest.mark.parametrize("words", [("jobs", "list"), ("migrate",), ("demo",)], ids=" ".join)
def test_a_url_that_is_none(words: tuple[str, ...], url: str) -> None:
    """A wrong URL is a wrong command line."""
    refused(rota(*words, url=url), 2)


@pytest.mark.parametrize(
    "url",
    [
        "host=127.0.0.1 port=1 password=s3cret",
        "host=127.0.0.1 password = 's3 cret' port=1",
        "ada:s3cret@127.0.0.1/db",
        "mysql://ada:s3://cret@127.0.0.1/db",
        "postgresql://ada:s3/cret@127.0.0.1:1/db",
        "postgresql://ada:[s3cret@127.0.0.1:1/db",
        "postgresql://ada:a@s3cret@127.0.0.1:1/db",
        "postgresql://ada:%zzs3cret@127.0.0.1:1/db",
        "postgresql://127.0.0.1:1/db?password=s3 cret",
    ],
)
def test_a_password_is_not_shown(url: str) -> None:
    """An error about a URL never shows its password."""
    result = rota("jobs", "list", url=url)
    assert result.exit_code in {2, 3}
    refused(result, result.exit_code)
    assert "s3" not in result.stderr
    assert "cret" not in result.stderr


@pytest.mark.parametrize(
    "words", [("jobs", "list"), ("worker", "shop"), ("demo",), ("bench", "drain")], ids=" ".join
)
def test_an_empty_url(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty URL, as from a shell variable that is not set, is not the default."""
    monkeypatch.chdir(tmp_path)
    result = rota(*words, "--url", "")
    assert result.exit_code == 2
    assert "Error: Invalid value for '--url': it is empty" in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [("jobs", "list"), ("migrate",)], ids=" ".join)
def test_an_empty_url_of_the_environment(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty variable is refused: it is set for some database, hardly for a new file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_DATABASE_URL", "")
    refused(rota(*words), 2, "ROTA_DATABASE_URL is empty", "unset")
    with pytest.raises(ConfigError, match="not a database URL"):
        Rota("")
    assert not list(tmp_path.iterdir())


def test_the_url_of_the_environment(tmp_path: Path, store_url: str) -> None:
    """Without `--url` the variable names the database, and without that it is `rota.db`."""
    make_tables(store_url)
    assert finished("queues", "list", url=store_url, cwd=tmp_path).returncode == 0
    bad = finished("queues", "list", url="nonsense", cwd=tmp_path)
    assert bad.returncode == 2
    (tmp_path / "empty").mkdir()
    default = finished("queues", "list", cwd=tmp_path / "empty")
    assert default.returncode == 4
    assert "rota.db" in default.stderr
    assert "\x1b" not in default.stderr
