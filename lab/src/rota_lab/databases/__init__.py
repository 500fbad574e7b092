"""Kinds of databases: how the lab connects, makes and removes databases, and what it observes.

A strategy shows its SQL in full and gets no help with it: a `Connection` runs statements, and
tells apart the errors that a design has to deal with.
"""

import importlib
from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, LiteralString

from rota.errors import RotaError


class Database(StrEnum):
    """A kind of database that a strategy can run on."""

    POSTGRES = "postgres"
    MARIADB = "mariadb"
    SQLITE = "sqlite"

    @property
    def title(self) -> str:  # type: ignore[override]  # the text's own method is of no use here
        """The name for people."""
        return {"postgres": "PostgreSQL", "mariadb": "MariaDB", "sqlite": "SQLite"}[self]


class Deadlock(RotaError):
    """The database has ended this transaction, so that others can go on; all of it is undone."""


class Connection(ABC):
    """A connection without a transaction of its own: each statement commits by itself.

    Parameters are written %s on every kind of database. Rows are named tuples.

    Raises:
        Deadlock: From any statement.
        StoreUnavailable: From any statement; the server is gone.
    """

    @abstractmethod
    def execute(self, sql: LiteralString, *parameters: object) -> int:
        """Run a statement; how many rows it has changed or found."""

    @abstractmethod
    def execute_many(self, sql: LiteralString, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement once for each row of parameters, all in one transaction."""

    @abstractmethod
    def rows(self, sql: LiteralString, *parameters: object) -> list[Any]:
        """Run a statement that gives rows."""

    def command(self, sql: LiteralString, *parameters: object) -> None:
        """Run a statement that takes no parameters: the driver quotes them into its text."""
        self.execute(sql, *parameters)

    @abstractmethod
    def close(self) -> None:
        """Close the connection; what is not committed is undone."""

    def row(self, sql: LiteralString, *parameters: object) -> Any | None:
        """The first row that a statement gives, if it gives any."""
        return next(iter(self.rows(sql, *parameters)), None)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction: committed at the end of the block, undone by an exception."""
        self.begin()
        try:
            yield
        except BaseException:
            self.rollback()
            raise
        self.execute("commit")

    def begin(self) -> None:
        """Begin a transaction that outlives a block: for designs that end it in another way."""
        self.execute("begin")

    @abstractmethod
    def rollback(self) -> None:
        """Undo the transaction; fine if there is none any more, or no server."""


@cache
def row_type(*names: str) -> Any:
    """The named tuple for rows with these columns, for drivers that have none."""
    return namedtuple("Row", names, rename=True)  # noqa: PYI024 - names are known at run time


@dataclass(frozen=True, slots=True)
class Look:
    """What a database tells about itself.

    Attributes:
        dead: Row versions that are dead and still there: PostgreSQL's `n_dead_tup` of all tables,
            the length of MariaDB's history list; nothing on SQLite.
        oldest: Age of the oldest open transaction, in seconds; nothing where there is none.
    """

    dead: int | None
    oldest: float | None


class Kind(ABC):
    """A kind of database."""

    @abstractmethod
    def connect(self, url: str) -> Connection:
        """Open a connection."""

    @abstractmethod
    def fresh(self, server: str) -> AbstractContextManager[str]:
        """Make an empty database on a server, and remove it at the end of the block.

        Raises:
            ConfigError: The server refuses.
            StoreUnavailable: It cannot be reached.
        """

    @abstractmethod
    def long_transaction(self, url: str) -> AbstractContextManager[None]:
        """A transaction that takes a snapshot, and idles until the end of the block."""

    @abstractmethod
    def look(self, connection: Connection) -> Look:
        """Look at the database through a connection that has no other use."""

    @abstractmethod
    def facts(self, url: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Versions of the server and the driver, and settings that matter."""


def kind(database: Database) -> Kind:
    """The kind of database; its driver is imported now.

    Raises:
        ConfigError: The driver is not installed.
    """
    made: Kind = importlib.import_module(f"rota_lab.databases.{database}").KIND
    return made
