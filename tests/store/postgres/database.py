"""A migrated PostgreSQL database in the hands of a test: Rota's connections, and bare ones."""

import subprocess
from collections.abc import Sequence
from contextlib import ExitStack, closing
from math import inf
from threading import Thread
from typing import Any, Generic, Self, TypeVar

import psycopg
from psycopg import sql

from rota.database.recognise import blocking_caller
from rota.model.job import ClaimedJob, JobId, JobSpec, Order, SessionId, SessionInfo
from rota.model.settlement import Settlement
from rota.model.states import Move
from rota.store.migrate import migrate
from rota.store.operation import Begin, Operation, Query
from rota.store.postgres.connection import POOLED_BEGIN, PostgresConnection
from rota.store.postgres.store import PostgresStore
from tests.cli.by_hand import client
from tests.store.factories import until

T = TypeVar("T")

Raw = psycopg.Connection[tuple[Any, ...]]

KEEP = 3600.0
LOG = [f"rota.log_{number}" for number in range(4)]


class Database:
    """One database; everything opened through it is closed with it.

    Attributes:
        url: Where it is.
        store: Rota's store of it.
        own: A connection of Rota's own, for the test's main thread.
        admin: A bare connection in autocommit, to look behind Rota's back.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.store = PostgresStore(url)
        self._open = ExitStack()
        self.own = self.connect()
        migrate(self.store, self.own)
        self.admin = self.bare(autocommit=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def connect(self) -> PostgresConnection:
        """Another connection of Rota's own."""
        connection = self.store.connect()
        self._open.callback(connection.close)
        return connection

    def bare(self, *, autocommit: bool = False, name: str = "rota-test") -> Raw:
        """Another bare connection; without autocommit its first statement begins a transaction."""
        connection = psycopg.connect(self.url, autocommit=autocommit, application_name=name)
        self._open.callback(connection.close)
        return connection

    def sql(self, query: str, *params: object) -> list[tuple[Any, ...]]:
        """What a bare query gives."""
        cursor = self.admin.execute(query, params or None)
        return cursor.fetchall() if cursor.description else []

    def one(self, query: str, *params: object) -> Any:
        """The one value that a bare query gives."""
        [(value,)] = self.sql(query, *params)
        return value

    # Jobs ------------------------------------------------------------------------------------

    def enqueue(
        self,
        count: int = 1,
        *,
        conn: Raw | None = None,
        on: PostgresConnection | None = None,
        **options: Any,
    ) -> list[JobId]:
        """Jobs whose args are their numbers, by Rota or in a caller's transaction."""
        spec = JobSpec(**{"task": "shop.send", **options})
        args = [f'{{"number":{number}}}' for number in range(count)]
        if conn is None:
            return (on or self.own).run(self.store.enqueue(Order(spec, args)))
        return self.inside(conn, self.store.enqueue(Order(spec, args)))

    def inside(self, conn: Raw, operation: Operation[T], *, notify: bool = True) -> T:
        """Run an operation in the transaction of a bare connection, as a caller's would be."""
        return blocking_caller(conn).run(operation, apart=self.apart, notify=notify)

    def apart(self, operation: Operation[T]) -> T:
        """Run an operation on a connection of its own."""
        with closing(self.store.connect()) as connection:
            return connection.run(operation)

    def session(self, timeout: float = 600.0, *, on: PostgresConnection | None = None) -> SessionId:
        """A worker's session."""
        info = SessionInfo(host="alpha", pid=4711, queues=("default",), timeout=timeout)
        return (on or self.own).run(self.store.open_session(info))

    def silence(self, session: SessionId) -> None:
        """Make a session look dead from now on, also where the server has started just now."""
        self.sql("DELETE FROM rota.heartbeat WHERE session = %s", session)
        up = "clock_timestamp() - pg_postmaster_start_time() - interval '10 ms'"
        self.sql(f"UPDATE rota.session SET timeout = least(timeout, {up}) WHERE id = %s", session)

    def claim(
        self, session: SessionId, limit: int = 100, queues: Sequence[str] = ("default",)
    ) -> list[ClaimedJob]:
        """What one claim gives."""
        return self.own.run(self.store.claim(session, queues, limit))

    def try_no_light_claims(self) -> None:
        """Let claims use the statement for all kinds of work at once, whatever other databases do."""
        claims = getattr(self.store.claim, "__self__")  # noqa: B009 - a bound method
        claims._heavy_until = inf

    def claim_all(self, session: SessionId, limit: int = 1000) -> list[ClaimedJob]:
        """Everything that claims give until there is nothing left."""
        jobs: list[ClaimedJob] = []
        while batch := self.claim(session, limit):
            jobs += batch
        return jobs

    def settle(
        self,
        session: SessionId,
        jobs: Sequence[ClaimedJob],
        move: Move = Move.COMPLETE,
        keep: float | None = None,
    ) -> list[JobId]:
        """Settle jobs alike, at once; the ids that were refused."""
        settlements = [Settlement(job.id, job.lease, move, 0.0, keep) for job in jobs]
        return self.own.run(self.store.settle(session, settlements))

    # Looking behind --------------------------------------------------------------------------

    def holes(self) -> int:
        """How many holes the newest cursor entries of all lanes have together."""
        return int(
            self.one(
                "SELECT coalesce(sum(cardinality(hole_xids)), 0) FROM (SELECT DISTINCT ON (lane) *"
                " FROM rota.cursor ORDER BY lane, seq DESC) AS newest"
            )
        )

    def sizes(self) -> list[int]:
        """The bytes of the log's segments."""
        return [int(self.one("SELECT pg_relation_size(%s::regclass)", name)) for name in LOG]

    def waits_for(self, waiter: int, holder: int) -> bool:
        """Whether a backend waits for a lock that another one holds, or waits for before it."""
        return holder in self.one("SELECT pg_blocking_pids(%s)", waiter)


class Later(Generic[T]):
    """An operation under way in a thread and on a connection of its own.

    Attributes:
        pid: Of the server's process for it.
    """

    def __init__(self, db: Database, operation: Operation[T]) -> None:
        self._connection = db.connect()
        self.pid = self._connection.raw().info.backend_pid
        self._found: list[T] = []
        self._failed: list[BaseException] = []
        self._thread = Thread(target=self._run, args=(operation,), daemon=True)
        self._thread.start()

    def _run(self, operation: Operation[T]) -> None:
        try:
            self._found.append(self._connection.run(operation))
        except BaseException as error:  # noqa: BLE001 - raised by result()
            self._failed.append(error)

    @property
    def ended(self) -> bool:
        """Whether it has come to its end."""
        return not self._thread.is_alive()

    def result(self, seconds: float = 20.0) -> T:
        """What it gave or raised, when it has ended."""
        self._thread.join(seconds)
        assert self.ended, "it does not end"
        if self._failed:
            raise self._failed[0]
        return self._found[0]


def holding(db: Database, what: str) -> Raw:
    """A third connection that holds a lock until it rolls back."""
    raw = db.bare()
    raw.execute(what)
    return raw


def stopped(db: Database, later: "Later[Any]", third: Raw) -> None:
    """Wait until an operation waits for the third connection."""
    until(lambda: db.waits_for(later.pid, third.info.backend_pid) or None)


def dumped(url: str, *options: str) -> str:
    """A dump, made by PostgreSQL's own program."""
    done = subprocess.run(
        [client("pg_dump"), *options, url], capture_output=True, text=True, check=True, timeout=100
    )
    return done.stdout


def ids(jobs: Sequence[ClaimedJob]) -> list[JobId]:
    """The ids of claimed jobs, in their order."""
    return [job.id for job in jobs]


def begin(raw: Raw, kind: Begin) -> None:
    """Begin a transaction with the settings that Rota's own have."""
    raw.execute(POOLED_BEGIN[kind], prepare=False)


def buffers(
    db: Database,
    query: Query,
    *,
    kind: Begin = Begin.HASTY,
    lock: Query | None = None,
) -> int:
    """How many buffers a prepared statement touches; nothing of it remains.

    `lock` comes before it, in its transaction. What a connection reads when it meets the tables
    anew does not count: for the first time, or since autovacuum was there.
    """
    raw = db.bare(autocommit=True)
    touched = []
    for _ in range(3):
        begin(raw, kind)
        if lock is not None:
            raw.execute(lock.statement.text, dict(lock.params))
        plan = explained(raw, query)
        raw.execute("ROLLBACK")
        touched.append(int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]))
    raw.close()
    return min(touched)


def explained(raw: Raw, query: Query) -> dict[str, Any]:
    """The plan of a prepared statement with what it really read; the caller rolls it back."""
    name = sql.Identifier(query.statement.name)
    text = sql.SQL(query.statement.numbered)
    raw.execute(sql.SQL("PREPARE {} AS {}").format(name, text), prepare=False)
    values = sql.SQL(", ").join(sql.Literal(query.params[key]) for key in query.statement.order)
    given = sql.SQL("({})").format(values) if query.statement.order else sql.SQL("")
    asked = sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {} {}").format(name, given)
    row = raw.execute(asked, prepare=False).fetchone()
    raw.execute(sql.SQL("DEALLOCATE {}").format(name), prepare=False)
    assert row is not None
    plan: dict[str, Any] = row[0][0]["Plan"]
    return plan
