"""Clients that a person may apply a file of SQL with. Each takes a URL and the text."""

import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing, suppress

import psycopg
import pytest

from rota.errors import RotaError
from rota.measure.servers import find_binaries
from rota.store.sqlite.schema import split

Apply = Callable[[str, str], None]


def client(name: str) -> str:
    """A program of PostgreSQL's, best that of the server's version; skips the test without it."""
    with suppress(RotaError):
        if (beside := find_binaries() / name).exists():
            return str(beside)
    return shutil.which(name) or pytest.skip(f"there is no {name}")


def psql(url: str, text: str, *options: str) -> None:
    """PostgreSQL's own client, which goes on after an error unless told otherwise."""
    subprocess.run(
        [client("psql"), url, "-X", "-q", *options, "-f", "-"],
        input=text, text=True, check=True, capture_output=True, timeout=100,
    )  # fmt: skip


def psql_that_stops(url: str, text: str) -> None:
    """It stops at an error, and its exit status tells of it."""
    psql(url, text, "-v", "ON_ERROR_STOP=1")


def psql_single(url: str, text: str) -> None:
    """The whole file is one transaction."""
    psql(url, text, "-v", "ON_ERROR_STOP=1", "--single-transaction")


def at_once(url: str, text: str) -> None:
    """The whole text as one message."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(text.encode())


def executescript(url: str, text: str) -> None:
    """Python's driver, which stops at an error."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.executescript(text)


def shell(url: str, text: str) -> None:
    """As SQLite's shell does without -bail: one statement after the other, whatever comes of it."""
    with closing(_sqlite(url)) as connection:
        for statement in split(text):
            with suppress(sqlite3.Error):
                connection.execute(statement)


def broken_off(url: str, text: str, statements: int) -> None:
    """The connection to a SQLite file is gone after so many statements."""
    with closing(_sqlite(url)) as connection:
        for statement in list(split(text))[:statements]:
            connection.execute(statement)


CLIENTS: dict[str, list[Apply]] = {
    "sqlite": [executescript, shell],
    "postgres": [at_once, psql, psql_that_stops, psql_single],
}


def _sqlite(url: str) -> sqlite3.Connection:
    return sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
