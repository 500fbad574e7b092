"""What a database knows about itself: dead rows, sizes, transactions, WAL.

A look is one statement on a connection of its own, which reads counters and the sizes of files,
never rows. Where the observer's own transactions would be counted, it looks from another database
of the server.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString
from urllib.parse import unquote, urlsplit

from rota.measure.bench.processor import Processor
from rota.measure.bench.scratch import Scratch

if TYPE_CHECKING:
    import psycopg

TABLES: LiteralString = """
    WITH part AS (
        SELECT storage.oid, owner.oid = storage.oid AS whole, owner.relname ~ '^log_[0-9]' AS log
        FROM pg_class AS owner
        CROSS JOIN LATERAL (VALUES (owner.oid), (nullif(owner.reltoastrelid, 0))) AS storage (oid)
        WHERE owner.relnamespace = 'rota'::regnamespace AND owner.relkind = 'r'
          AND storage.oid IS NOT NULL
    ), counted AS (
        SELECT log, pg_stat_get_dead_tuples(oid) AS dead,
               pg_stat_get_tuples_updated(oid) + pg_stat_get_tuples_deleted(oid) AS made,
               CASE WHEN whole THEN pg_total_relation_size(oid) ELSE 0 END AS bytes
        FROM part
    )
    SELECT coalesce(sum(dead) FILTER (WHERE log), 0)::int8, coalesce(sum(dead), 0)::int8,
           coalesce(sum(made) FILTER (WHERE log), 0)::int8, coalesce(sum(made), 0)::int8,
           coalesce(sum(bytes) FILTER (WHERE log), 0)::int8, coalesce(sum(bytes), 0)::int8,
           (SELECT extract(epoch FROM clock_timestamp() - min(xact_start))::float8
            FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()
              AND backend_type = 'client backend')
    FROM counted
"""
TRANSACTIONS: LiteralString = (
    "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = %s"
)
WAL: LiteralString = (
    "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::int8,"
    " (SELECT wal_fpi::int8 FROM pg_stat_wal)"
)
STATEMENTS: LiteralString = """
    SELECT coalesce(sum(shared_blks_hit + shared_blks_read), 0)::int8 FROM pg_stat_statements(false)
    WHERE toplevel AND dbid = (SELECT oid FROM pg_database WHERE datname = %s)
"""
BLOCKS: LiteralString = """
    SELECT sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit + idx_blks_read, 0)
               + coalesce(toast_blks_hit + toast_blks_read, 0)
               + coalesce(tidx_blks_hit + tidx_blks_read, 0))::int8
    FROM pg_statio_all_tables WHERE schemaname = 'rota'
"""
PAGE = 8192
"""Bytes of a page; its image in the WAL may be shorter, never longer."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The state of Rota's tables.

    Attributes:
        log_dead: Dead rows in the job log, as the statistics count them (`n_dead_tup`).
        dead: The same in all of Rota's tables and their TOAST tables.
        log_made: Row versions in the job log that died since the beginning: `n_tup_upd` +
            `n_tup_del`, which vacuum and TRUNCATE do not take back.
        made: The same in all of Rota's tables and their TOAST tables.
        log_bytes: Size of the job log with its indexes.
        bytes: Size of all of Rota's tables; on SQLite that of the files.
        oldest: Age in seconds of the oldest transaction in the database.
    """

    log_dead: int | None
    dead: int | None
    log_made: int | None
    made: int | None
    log_bytes: int | None
    bytes: int
    oldest: float | None


@dataclass(frozen=True, slots=True)
class Wal:
    """How much WAL the whole server has written: bytes, and full-page images among them."""

    bytes: int
    images: int


class Observer:
    """Looks at one database; use `observing`.

    Attributes:
        blocks_from: Where the counts of blocks come from: pg_stat_statements, where the database
            that the URL of the command names has the extension, else pg_statio_all_tables.
    """

    def __init__(self, url: str, scratch: Scratch) -> None:
        self._url = url
        self._server = scratch.server
        self._here: psycopg.Connection[tuple[Any, ...]] | None = None
        self._beside: psycopg.Connection[tuple[Any, ...]] | None = None
        self._processor: Processor | None = None
        self.blocks_from: str | None = None
        self._name = unquote(urlsplit(url).path).lstrip("/")
        if self._server is not None:
            self._here = _connect(url)
            self._beside = _connect(self._server)
            self.blocks_from = _blocks_from(self._beside)
            own = frozenset({self._here.info.backend_pid, self._beside.info.backend_pid})
            self._processor = Processor(self._beside, own)

    def close(self) -> None:
        """Close the connections."""
        for connection in (self._here, self._beside):
            if connection is not None:
                connection.close()

    def tables(self) -> Tables:
        """The state of Rota's tables now."""
        if self._here is None:
            return Tables(None, None, None, None, None, _file_sizes(self._url), None)
        row = self._here.execute(TABLES).fetchone()
        assert row is not None  # noqa: S101 - aggregates always give a row
        return Tables(*row)

    def transactions(self) -> int | None:
        """How many transactions the database has seen, without the observer's own.

        Sessions report theirs about once a second.
        """
        if self._beside is None:
            return None
        row = self._beside.execute(TRANSACTIONS, [self._name]).fetchone()
        return row[0] if row else None

    @property
    def counts_at_once(self) -> bool:
        """Whether `blocks` counts each statement at its end; else sessions report once a second."""
        return self.blocks_from == "pg_stat_statements"

    def blocks(self) -> int | None:
        """How many blocks of the buffer cache were touched up to now, found there or read.

        From pg_stat_statements by all statements in the database, `tables` among them; from
        pg_statio_all_tables in Rota's tables and their indexes, by vacuum too.
        """
        if self._here is None or self._beside is None:
            return None
        if self.counts_at_once:
            row = self._beside.execute(STATEMENTS, [self._name]).fetchone()
        else:
            row = self._here.execute(BLOCKS).fetchone()
        return row[0] if row else None

    def processor(self) -> Mapping[str, float] | None:
        """Seconds of processor time of the server's processes since the first call, by kind.

        `None` on SQLite, and where the processes cannot be seen.
        """
        return None if self._processor is None else self._processor.seconds()

    def wal(self) -> Wal | None:
        """How much WAL was written up to now; sessions report their images somewhat late."""
        if self._beside is None:
            return None
        row = self._beside.execute(WAL).fetchone()
        return Wal(*row) if row else None

    def checkpoint(self) -> bool:
        """Write a checkpoint; false on SQLite, and where the role may not."""
        import psycopg

        if self._beside is None:
            return False
        try:
            self._beside.execute("CHECKPOINT")
        except psycopg.errors.InsufficientPrivilege:
            return False
        return True


@contextlib.contextmanager
def observing(url: str, scratch: Scratch) -> Iterator[Observer]:
    """An observer of a scratch database."""
    with contextlib.closing(Observer(url, scratch)) as observer:
        yield observer


def _connect(url: str) -> "psycopg.Connection[tuple[Any, ...]]":
    import psycopg

    return psycopg.connect(url, autocommit=True)


def _blocks_from(connection: "psycopg.Connection[tuple[Any, ...]]") -> str:
    import psycopg

    try:
        connection.execute(STATEMENTS, [""])
    except psycopg.Error:
        # The extension is missing, or the server has not loaded it.
        return "pg_statio_all_tables"
    return "pg_stat_statements"


def _file_sizes(url: str) -> int:
    path = Path(url.partition("///")[2])
    total = 0
    for name in (path, path.with_name(path.name + "-wal")):
        with contextlib.suppress(OSError):
            total += name.stat().st_size
    return total
