"""SQLite, through the standard library."""

import contextlib
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, LiteralString

from rota.errors import ConfigError
from rota_lab.databases import Connection, Kind, Look, row_type

PATIENCE = 60.0
"""Seconds that a statement waits for the file's one writer."""


class SQLite(Connection):
    """A connection in autocommit mode. A transaction is a writer's from its beginning."""

    def __init__(self, url: str) -> None:
        path = url.partition("///")[2]
        self._connection = sqlite3.connect(
            path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        self._connection.row_factory = _row

    def execute(self, sql: LiteralString, *parameters: object) -> int:
        return self._connection.execute(sql.replace("%s", "?"), parameters).rowcount

    def execute_many(self, sql: LiteralString, rows: Sequence[Sequence[object]]) -> None:
        with self.transaction():
            self._connection.executemany(sql.replace("%s", "?"), rows)

    def rows(self, sql: LiteralString, *parameters: object) -> list[Any]:
        return self._connection.execute(sql.replace("%s", "?"), parameters).fetchall()

    def begin(self) -> None:
        self._connection.execute("begin immediate")

    def rollback(self) -> None:
        self._connection.rollback()

    def close(self) -> None:
        self._connection.close()


class SQLiteKind(Kind):
    """Files; the server is the folder that they are made in, as the URL of a file in it."""

    def connect(self, url: str) -> Connection:
        return SQLite(url)

    @contextlib.contextmanager
    def fresh(self, server: str) -> Iterator[str]:
        folder = Path(server.partition("///")[2]).parent
        if not folder.is_dir():
            message = f"there is no folder {folder} to make a SQLite file in; see --database"
            raise ConfigError(message)
        with tempfile.TemporaryDirectory(prefix="rota-lab-", dir=folder) as made:
            url = f"sqlite:///{Path(made).absolute()}/lab.db"
            with contextlib.closing(self.connect(url)) as connection:
                connection.execute("pragma journal_mode = wal")
            yield url

    @contextlib.contextmanager
    def long_transaction(self, url: str) -> Iterator[None]:
        with contextlib.closing(self.connect(url)) as connection:
            connection.execute("begin")
            connection.rows("select count(*) from sqlite_schema")
            yield

    def look(self, connection: Connection) -> Look:
        del connection
        return Look(None, None)

    def facts(self, url: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
        del url
        return {"sqlite": sqlite3.sqlite_version}, {"journal_mode": "wal", "synchronous": "full"}


def _row(cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> Any:
    return row_type(*(column[0] for column in cursor.description))(*values)


KIND = SQLiteKind()
