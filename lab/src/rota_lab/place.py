"""Which database a queue is in."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rota_lab.databases import Connection


class Database(StrEnum):
    """A kind of database that a strategy can run on."""

    POSTGRES = "postgres"
    MARIADB = "mariadb"
    SQLITE = "sqlite"

    @property
    def title(self) -> str:  # type: ignore[override]  # the text's own method is of no use here
        """The name for people."""
        return {"postgres": "PostgreSQL", "mariadb": "MariaDB", "sqlite": "SQLite"}[self]


@dataclass(frozen=True, slots=True)
class Place:
    """A database that holds one queue and nothing else. It can be sent to other processes.

    Attributes:
        redis: The URL of a Redis, for the strategies that need one.
        prefix: What the names of all keys there must begin with.
    """

    database: Database
    url: str
    redis: str | None = None
    prefix: str = ""

    def connect(self) -> "Connection":
        """Open a connection.

        Raises:
            StoreUnavailable: The database cannot be reached.
        """
        from rota_lab.databases import kind

        return kind(self.database).connect(self.url)
