"""Which database a queue is in."""

from dataclasses import dataclass

from rota_lab.databases import Connection, Database, kind


@dataclass(frozen=True, slots=True)
class Location:
    """A database that holds one queue and nothing else. It can be sent to other processes.

    Attributes:
        redis: The URL of a Redis, for the strategies that need one.
        prefix: What the names of all keys there must begin with.
    """

    database: Database
    url: str
    redis: str | None = None
    prefix: str = ""

    def connect(self) -> Connection:
        """Open a connection.

        Raises:
            StoreUnavailable: The database cannot be reached.
        """
        return kind(self.database).connect(self.url)
