"""Many rows at once, written as plainly as the driver can: what `enqueue_many` is held against.

The rows are those that an `enqueue_many` has stored, in the form in which the driver sends them.
They go to a table like the one in which jobs are stored, with the same columns, defaults and
indexes.
"""

import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import LiteralString, Protocol

from rota.measure.bench import tasks

READ_LOG: LiteralString = (
    "COPY (SELECT id, lane, segment, max_attempts, timeout, task, args FROM rota.log) TO STDOUT"
)
COPY_BARE: LiteralString = (
    "COPY bare (id, lane, segment, max_attempts, timeout, task, args) FROM STDIN"
)
READ_JOBS = (
    "SELECT task, queue, priority, state, max_attempts, timeout, enqueued_at, args FROM rota_job"
)
INSERT_BARE = (
    "INSERT INTO bare (task, queue, priority, state, max_attempts, timeout, enqueued_at, args)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
MADE = "SELECT sql FROM sqlite_master WHERE tbl_name = 'rota_job' AND sql IS NOT NULL"


class Bare(Protocol):
    """Writes the same rows to as many tables as there are databases."""

    def prepared(self, url: str, stack: ExitStack) -> Callable[[], None]:
        """Make the table; the function writes the rows, on a connection that the stack closes."""
        ...


def bare(url: str, jobs: int) -> Bare:
    """The rows of so many jobs, which are enqueued for that in a database of their own."""
    app = tasks.open_app(url)
    tasks.noop.enqueue_many([(n,) for n in range(jobs)])
    app.close()
    return Insert(url) if url.startswith("sqlite") else Copy(url)


class Copy:
    """A COPY of a block that is in memory, in PostgreSQL's text format."""

    def __init__(self, url: str) -> None:
        import psycopg

        with (
            psycopg.connect(url) as connection,
            connection.cursor().copy(READ_LOG) as rows,
        ):
            self.block = b"".join(bytes(piece) for piece in rows)

    def prepared(self, url: str, stack: ExitStack) -> Callable[[], None]:
        """See `Bare`."""
        import psycopg

        connection = stack.enter_context(closing(psycopg.connect(url, autocommit=True)))
        connection.execute(
            "CREATE TABLE bare (LIKE rota.log_0 INCLUDING ALL) WITH (autovacuum_enabled = false)"
        )

        def write() -> None:
            with connection.cursor().copy(COPY_BARE) as copy:
                copy.write(self.block)

        return write


class Insert:
    """An `executemany` of rows that are in memory, in one transaction of SQLite."""

    def __init__(self, url: str) -> None:
        with closing(sqlite3.connect(_path(url))) as file:
            self.rows = file.execute(READ_JOBS).fetchall()

    def prepared(self, url: str, stack: ExitStack) -> Callable[[], None]:
        """See `Bare`."""
        file = stack.enter_context(closing(sqlite3.connect(_path(url), isolation_level=None)))
        file.execute("PRAGMA synchronous = FULL")
        for (sql,) in file.execute(MADE).fetchall():
            file.execute(sql.replace("rota_job", "bare"))

        def write() -> None:
            file.execute("BEGIN IMMEDIATE")
            file.executemany(INSERT_BARE, self.rows)
            file.execute("COMMIT")

        return write


def _path(url: str) -> str:
    return url.partition("///")[2]
