"""Which worker worked which job when, in a table of the queue's own database: article 5's protocol.

"When a worker fetches the job it inserts a new entry to the protocol table corresponding to the
job." An entry commits by itself, on a connection of its own, so that it outlives the worker and
the design's transaction. Experiments may note more than the beginning of a job.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from rota_lab.databases import Connection, Database
from rota_lab.location import Location
from rota_lab.shift import Work
from rota_lab.strategy import Strategy
from rota_lab.work import nothing

BEGUN = "begun"
"""The text of an entry for a job that a worker has fetched."""

LOOK = 0.1
"""Seconds between two looks at whether jobs are left."""


class Entry(NamedTuple):
    """One entry, ordered by `id`: when, by the database's clock, in which process, and what."""

    id: int
    at: float
    job: str
    worker: int
    what: str = BEGUN


@dataclass
class Noting:
    """Work that makes an entry before other work; needs `make_protocol`."""

    location: Location
    then: Work = nothing
    _connection: Connection | None = field(default=None, init=False, repr=False)

    def __call__(self, text: str) -> None:
        """Make the entry, and do the rest."""
        self.note(text)
        self.then(text)

    def note(self, text: str, what: str = BEGUN) -> None:
        """Make an entry."""
        self._db.execute(
            "insert into protocol (job, worker, what) values (%s, %s, %s)", text, os.getpid(), what
        )

    def times(self, text: str) -> int:
        """How often this job was begun so far, in all processes."""
        return int(
            self._db.rows(
                "select count(*) from protocol where job = %s and what = %s", text, BEGUN
            )[0][0]
        )

    @property
    def _db(self) -> Connection:
        if self._connection is None:
            self._connection = self.location.connect()
        return self._connection

    def close(self) -> None:
        """Close the connection, if the process goes on."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def make_protocol(location: Location) -> None:
    """Make the table."""
    with contextlib.closing(location.connect()) as connection:
        match location.database:
            case Database.POSTGRES:
                connection.execute(
                    "create table protocol (id bigint primary key generated always as identity,"
                    " at timestamptz not null default clock_timestamp(), job text, worker int, what text)"
                )
            case Database.MARIADB:
                connection.execute(
                    "create table protocol (id bigint primary key auto_increment,"
                    " at datetime(6) not null default now(6), job varchar(255), worker int, what text)"
                )
            case Database.SQLITE:
                connection.execute(
                    "create table protocol (id integer primary key autoincrement,"
                    " at real not null default ((julianday('now') - 2440587.5) * 86400),"
                    " job text, worker int, what text)"
                )


def read_protocol(location: Location) -> list[Entry]:
    """All entries, in their order."""
    with contextlib.closing(location.connect()) as connection:
        match location.database:
            case Database.POSTGRES:
                rows = connection.rows(
                    "select id, extract(epoch from at)::float8 as at, job, worker, what"
                    " from protocol order by id"
                )
            case Database.MARIADB:
                rows = connection.rows(
                    "select id, cast(unix_timestamp(at) as double) as at, job, worker, what"
                    " from protocol order by id"
                )
            case Database.SQLITE:
                rows = connection.rows("select id, at, job, worker, what from protocol order by id")
        return [Entry(*row) for row in rows]


def until_done(strategy: Strategy, patience: float) -> Iterator[None]:
    """Look again and again, until no job is left, or none was begun or ended for `patience` seconds.

    Workers may still be at work on a job that counts as done: they report it when they stop.
    """
    with contextlib.closing(strategy.location.connect()) as connection:
        before, since = -1, time.monotonic()
        while True:
            yield
            last = connection.rows("select coalesce(max(id), 0) from protocol")[0][0]
            if last != before:
                before, since = last, time.monotonic()
            # Counting may cost a process; while work goes on, jobs are left.
            elif strategy.left() == 0 or time.monotonic() - since > patience:
                return
            time.sleep(LOOK)
