"""Who worked which job when, in a table of the queue's own database: article 5's protocol.

"When a worker fetches the job it inserts a new entry to the protocol table corresponding to the
job." An entry commits by itself, on a connection of its own, so that it outlives whatever becomes
of the worker and of the design's transaction.
"""

import contextlib
import os
from dataclasses import dataclass, field
from typing import NamedTuple

from rota.lab.databases import Connection
from rota.lab.place import Database, Place
from rota.lab.shift import Work
from rota.lab.work import nothing


class Entry(NamedTuple):
    """One entry: in the order of `id`, when by the database's clock, and in which process."""

    id: int
    at: float
    job: str
    worker: int


@dataclass
class Noting:
    """Work that makes an entry and then does something else; `make_protocol` comes first."""

    place: Place
    then: Work = nothing
    _connection: Connection | None = field(default=None, init=False, repr=False)

    def __call__(self, text: str) -> None:
        """Make the entry, and do the rest."""
        if self._connection is None:
            self._connection = self.place.connect()
        self._connection.execute(
            "insert into protocol (job, worker) values (%s, %s)", text, os.getpid()
        )
        self.then(text)

    def close(self) -> None:
        """Close the connection, where it is not closed by the end of its process."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def make_protocol(place: Place) -> None:
    """Make the table."""
    with contextlib.closing(place.connect()) as connection:
        match place.database:
            case Database.POSTGRES:
                connection.execute(
                    "create table protocol (id bigint primary key generated always as identity,"
                    " at timestamptz not null default clock_timestamp(), job text, worker int)"
                )
            case Database.MARIADB:
                connection.execute(
                    "create table protocol (id bigint primary key auto_increment,"
                    " at datetime(6) not null default now(6), job varchar(255), worker int)"
                )
            case Database.SQLITE:
                connection.execute(
                    "create table protocol (id integer primary key autoincrement,"
                    " at real not null default ((julianday('now') - 2440587.5) * 86400), job text, worker int)"
                )


def read_protocol(place: Place) -> list[Entry]:
    """All entries, in their order."""
    with contextlib.closing(place.connect()) as connection:
        match place.database:
            case Database.POSTGRES:
                rows = connection.rows(
                    "select id, extract(epoch from at)::float8 as at, job, worker"
                    " from protocol order by id"
                )
            case Database.MARIADB:
                rows = connection.rows(
                    "select id, cast(unix_timestamp(at) as double) as at, job, worker"
                    " from protocol order by id"
                )
            case Database.SQLITE:
                rows = connection.rows("select id, at, job, worker from protocol order by id")
        return [Entry(*row) for row in rows]
