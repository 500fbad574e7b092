"""A fresh database for each measurement, and what is looked up in it."""

import contextlib
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

import psycopg
from psycopg import sql

from benchmarks.peers.field import Peer
from benchmarks.peers.processes import Driver
from benchmarks.peers.servers import Servers
from rota.measure.bench.holder import held
from rota.measure.servers.addresses import of_database

DATABASE = "peers"
POLL = 0.01


class Place:
    """A peer's database, with its tables, and its driver.

    Attributes:
        driver: Starts the peer's processes.
        server: Process id of the database's server; `None` where there is none.
    """

    def __init__(
        self, peer: Peer, driver: Driver, server: int | None, waiting: Callable[[], int]
    ) -> None:
        self.peer = peer
        self.driver = driver
        self.server = server
        self.waiting = waiting
        """How many jobs are neither done nor given up."""

    def idle(self, limit: float) -> bool:
        """Wait until no jobs wait, for so many seconds at most."""
        end = time.monotonic() + limit
        while self.waiting() > 0:
            if time.monotonic() > end:
                return False
            time.sleep(POLL)
        return True

    def holder(self) -> AbstractContextManager[Any]:
        """Another session with an open transaction and its snapshot."""
        return held(self.driver.url)

    def tidy(self) -> None:
        """Let PostgreSQL do before a measurement what autovacuum would do in the midst of it."""
        if self.peer.kind == "postgresql":
            with psycopg.connect(self.driver.url, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE")


@contextlib.contextmanager
def place(peer: Peer, servers: Servers, *, workers: int = 1) -> Iterator[Place]:
    """A place for one measurement with so many workers; its database is gone afterwards.

    Raises:
        DriverFailed: The peer could not make its tables.
    """
    with tempfile.TemporaryDirectory(prefix="rota-peers-") as made, contextlib.ExitStack() as stack:
        folder = Path(made)
        server: int | None = None
        match peer.kind:
            case "postgresql":
                assert servers.postgres is not None  # noqa: S101 - started for its peers
                server, url = (
                    servers.postgres.pid,
                    stack.enter_context(_database(servers.postgres.url)),
                )
            case "redis":
                assert servers.redis is not None  # noqa: S101 - started for its peers
                server, url = servers.redis.pid, servers.redis.url
            case "sqlite":
                url = f"sqlite:///{folder}/peers.db"
        driver = Driver(peer, url, folder, workers)
        waiting = stack.enter_context(_looking(peer, url))
        driver.version = driver.ask("setup")["version"]
        yield Place(peer, driver, server, waiting)


@contextlib.contextmanager
def _database(server: str) -> Iterator[str]:
    name = sql.Identifier(DATABASE)
    drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(drop)
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
    try:
        yield of_database(server, DATABASE)
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(drop)


@contextlib.contextmanager
def _looking(peer: Peer, url: str) -> Iterator[Callable[[], int]]:
    """What counts the jobs that wait."""
    with contextlib.ExitStack() as stack:
        match peer.kind:
            case "postgresql":
                # Compiling a statement would take longer than the statement.
                connection = stack.enter_context(
                    psycopg.connect(url, autocommit=True, options="-c jit=off")
                )

                def look() -> int:
                    row = connection.execute(peer.waiting.encode()).fetchone()
                    return int(row[0]) if row else 0

            case "sqlite":

                def look() -> int:
                    with contextlib.closing(sqlite3.connect(url.partition("///")[2])) as connection:
                        return int(connection.execute(peer.waiting).fetchone()[0])

            case "redis":
                import redis

                client = stack.enter_context(redis.Redis.from_url(url))
                client.flushdb()

                def look() -> int:
                    # Celery's messages: those that wait, and those that a worker has.
                    return cast("int", client.llen("celery")) + cast("int", client.hlen("unacked"))

        yield look
