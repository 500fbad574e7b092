"""A long transaction that holds the horizon, as a report's would."""

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def held(url: str) -> Iterator[Any]:
    """An open transaction with a snapshot; on PostgreSQL REPEATABLE READ, and with an xid.

    On SQLite it is a reader, which keeps the write-ahead log from being used again. Gives the
    driver's connection; its work is undone unless the caller commits.
    """
    if url.startswith("sqlite"):
        reader = sqlite3.connect(url.partition("///")[2], isolation_level=None)
        with contextlib.closing(reader):
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            yield reader
        return
    import psycopg

    connection = psycopg.connect(url)
    with contextlib.closing(connection):
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        connection.execute("SELECT pg_current_xact_id()")
        yield connection
