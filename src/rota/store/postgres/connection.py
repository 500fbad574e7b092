"""Rota's own connections to PostgreSQL: blocking psycopg, one thread at a time.

psycopg's blocking connections cost about half of its async ones per statement, so even the async
parts of Rota reach the database through a thread.
"""

import os
import socket
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from typing import Any, LiteralString, TypeVar
from urllib.parse import parse_qs

import psycopg
from psycopg.pq import PipelineStatus, TransactionStatus

from rota.errors import (
    StoreUnavailable,
)
from rota.store.execute import drive
from rota.store.operation import (
    Apart,
    Begin,
    Copy,
    Operation,
    Query,
    Request,
    Rows,
    Single,
    Steps,
    Surroundings,
    Together,
    Where,
)
from rota.store.postgres.at_once import FLUSH, AtOnce, Raw
from rota.store.postgres.failures import raise_translated
from rota.store.postgres.patience import REACH, PatientConnection
from rota.store.url import shown

T = TypeVar("T")

# Claims and settlements must walk their indexes whatever the statistics say: with few distinct
# transaction ids the planner believes that one row is left and sorts the whole backlog instead.
# The penalties these settings put on other plans would make JIT start, hence jit = off.
PLANNER = (
    "SET jit = off; SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; "
    "SET enable_bitmapscan = off; SET enable_sort = off; SET enable_hashjoin = off; "
    "SET enable_mergejoin = off; "
    # Statements that go to the server at once have no BEGIN that says so. With the snapshot of its
    # first statement, a claim that waited for its turn would hand out jobs a second time.
    "SET default_transaction_isolation = 'read committed'; "
    "SET default_transaction_read_only = off; "
    # A worker that is frozen or cut off in the middle of a transaction holds its locks, such as a
    # lane where a claim cannot go to the server at once; the server has to end it by itself.
    "SET idle_in_transaction_session_timeout = '5s'"
)
BEGIN = {
    Begin.SNAPSHOT: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    Begin.DURABLE: "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
    Begin.HASTY: (
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL synchronous_commit = off"
    ),
}
LOCAL_PLANNER: LiteralString = PLANNER.replace("SET ", "SET LOCAL ")
# Behind a transaction pooler a plain SET would stay for other clients, and even a single
# statement needs a transaction to have its settings in.
POOLED_BEGIN = {
    begin: f"{sql}; {LOCAL_PLANNER}"
    for begin, sql in {**BEGIN, Begin.READING: "BEGIN READ ONLY"}.items()
}

IN_TRANSACTION = {TransactionStatus.INTRANS, TransactionStatus.INERROR}

APPLICATION = "rota"
"""The application name of Rota's own connections, before their purpose, as in "rota settler"; `rota
supervise` never ends them."""

CALLERS_APPLICATION = "rota.transaction"
"""The name for `rota.transaction()`: with users' statements it may stay open too long."""

CANCEL_TIMEOUT = 1.0
"""Seconds within which the server must accept a request to cancel a statement."""


Elsewhere = Callable[[Operation[Any]], Any]
"""Runs an operation on another connection."""


class PostgresConnection:
    """One connection; see `rota.store.connections.Connection`.

    What an operation has to have done apart from its transaction goes to `elsewhere`, or else to a
    connection that is opened for it. The server shows its `purpose`.
    """

    def __init__(
        self,
        url: str,
        *,
        pooled: bool,
        tuned: bool = True,
        purpose: str = "",
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self.url = url
        self._pooled = pooled
        self._elsewhere = elsewhere
        self._tuned = tuned and not pooled
        self._lasts = bool(purpose)
        self._name = f"{APPLICATION} {purpose}".rstrip() if tuned else CALLERS_APPLICATION
        self._begin = POOLED_BEGIN if pooled else BEGIN
        # Needs the settings of PLANNER, and a libpq of version 14.
        self._pipelines = self._tuned and psycopg.Pipeline.is_supported()
        self._raw: Raw | None = None
        self._at_once: AtOnce | None = None
        self._cursor: psycopg.Cursor[tuple[Any, ...]] | None = None
        self._pid = 0
        self._awaited = False

    def run(self, operation: Operation[T]) -> T:
        """Run an operation in the kind of transaction it asks for."""
        return self._run(self.fresh(), operation)

    def _run(self, raw: Raw, operation: Operation[T]) -> T:
        try:
            result: T
            if isinstance(operation, Single):
                result = operation.read(self._execute(operation.query))
            elif isinstance(operation, Together) and self._pipelines:
                rows = self._pieces(raw).run(operation.queries, lasting=operation.lasting)
                result = operation.read(rows)
            elif (begin := self._begin.get(operation.begin)) is None:
                result = drive(operation.steps, self._execute)
            else:
                raw.execute(begin, prepare=False)
                result = drive(operation.steps, self._execute)
                raw.execute("COMMIT", prepare=False)
                if isinstance(operation, Together) and operation.lasting:
                    self._execute(FLUSH())
        except BaseException as error:
            self._give_up(raw, error)
            raise
        return result

    def send(self, operation: Operation[T]) -> Callable[[], T]:
        """Send what can go to the server at once; the rest runs when the answer is asked for."""
        if operation.begin is not Begin.NOTHING or not self._pipelines:
            return partial(self.run, operation)
        raw = self.fresh()
        steps = operation.steps
        try:
            request = next(steps)
            if isinstance(request, Apart) and isinstance(first := request.operation, Together):
                self._pieces(raw).send(first.queries, lasting=first.lasting)
                self._awaited = True
        except StopIteration as end:
            return partial(_itself, end.value)
        except BaseException as error:
            self._give_up(raw, error)
            raise
        return partial(self._go_on, raw, steps, request)

    def _go_on(self, sent: Raw, steps: Steps[T], request: Request) -> T:
        self._awaited = False
        raw = self.raw()
        if raw is not sent:
            message = f"the connection to {shown(self.url)} was lost before its answer was read"
            raise StoreUnavailable(message)
        try:
            return drive(steps, self._execute, request)
        except BaseException as error:
            self._give_up(raw, error)
            raise

    def fresh(self) -> Raw:
        """`raw`, but where the server has closed the connection meanwhile, a new one.

        Nothing was sent: an operation that begins now can be begun on another connection. Between
        two statements of one it is too late for that.
        """
        self.find_ended()
        return self.raw()

    def find_ended(self) -> bool:
        """Close the connection if the server has done so, which waits to be read; whether it had."""
        if self._raw is None or self._pid != os.getpid():
            return False
        look = self._raw.pgconn.consume_input
        try:
            # The last words, then the end: each needs a look.
            look()
            look()
        except psycopg.Error:
            self.close()
            return True
        return False

    def raw(self) -> Raw:
        """The driver's connection, opened if need be.

        Raises:
            StoreUnavailable: The server cannot be reached.
            ConfigError: The server refuses the user, the database, or a parameter of the URL.
        """
        if self._raw is not None and self._pid != os.getpid():
            # Inherited by a fork: the parent goes on using it, so it must not even be closed here.
            self._raw = None
        if self._awaited:
            # The answer was never read: its rows would be taken for those of the next request.
            self.close()
        if self._raw is None or self._raw.closed:
            try:
                self._raw = self._connect()
            except psycopg.Error as error:
                raise_translated(error, self.url)
            self._pid = os.getpid()
        return self._raw

    def _connect(self) -> Raw:
        raw = PatientConnection.connect(self.url, autocommit=True, **self._parameters())
        raw.pooled = self._pooled
        if self._tuned:
            try:
                raw.execute(PLANNER, prepare=False)
            except BaseException:
                raw.close()
                raise
        return raw

    def _parameters(self) -> dict[str, Any]:
        given = parse_qs(self.url.partition("?")[2])
        # A worker's statements are planned once. An idle one's come rarely: the first five, which
        # the driver does not prepare of its own accord, may last for minutes.
        at_once = {"prepare_threshold": 0} if self._lasts else {}
        parameters: dict[str, Any] = {"prepare_threshold": None} if self._pooled else at_once
        # The name that the server shows, unless the URL or PGAPPNAME gives another one.
        parameters["fallback_application_name"] = self._name
        parameters |= {name: limit for name, limit in REACH.items() if name not in given}
        if "client_encoding" not in given:
            # Else the database's encoding counts, and with SQL_ASCII the driver gives bytes.
            parameters["client_encoding"] = "utf8"
        return parameters

    def interrupt(self, *, cut: bool = False) -> None:
        """Let the server cancel what is running, or cut the connection without the driver."""
        raw = self._raw
        if raw is None or raw.closed:
            return
        with suppress(psycopg.Error, OSError):
            if cut:
                with socket.socket(fileno=os.dup(raw.fileno())) as line:
                    line.shutdown(socket.SHUT_RDWR)
            else:
                raw.cancel_safe(timeout=CANCEL_TIMEOUT)

    def close(self) -> None:
        """End the connection; running another operation opens it again."""
        if self._raw is not None and self._pid == os.getpid():
            self._raw.close()
        self._raw = None
        self._awaited = False

    def _execute(self, request: Request) -> Rows:
        try:
            match request:
                case Query(statement, params):
                    cursor = self._cursor
                    if cursor is None or cursor.connection is not self._raw:
                        # One cursor for all statements: making one costs as much as a parameter.
                        self._cursor = cursor = self.raw().cursor()
                    cursor.execute(statement.text, params or None)
                    # Not `cursor.description`, which makes an object of every column.
                    given = cursor.pgresult
                    return cursor.fetchall() if given is not None and given.nfields else ()
                case Copy(statement, blocks):
                    with self.raw().cursor().copy(statement.text) as copy:
                        for block in blocks:
                            copy.write(block)
                    return ()
                case Apart(operation):
                    return self._apart(operation)
                case Where():
                    return [Surroundings(copy=True, tuned=self._tuned)]
        except psycopg.Error as error:
            raise_translated(error, self.url)

    def _pieces(self, raw: Raw) -> AtOnce:
        if self._at_once is None or self._at_once.raw is not raw:
            self._at_once = AtOnce(raw)
        return self._at_once

    def _apart(self, operation: Operation[Any]) -> Rows:
        if self.raw().info.transaction_status not in IN_TRANSACTION:
            # Not on a fresh connection: part of it may have been sent on this one.
            return [(self._run(self.raw(), operation),)]
        if self._elsewhere is not None:
            return [(self._elsewhere(operation),)]
        with closing(PostgresConnection(self.url, pooled=self._pooled)) as other:
            return [(other.run(operation),)]

    def _give_up(self, raw: Raw, error: BaseException) -> None:
        """Leave the connection in order or closed; a driver's error is raised as Rota's."""
        self._recover(raw)
        if isinstance(error, psycopg.Error):
            raise_translated(error, self.url)

    def _recover(self, raw: Raw) -> None:
        # After an interruption in mid-protocol only a new connection is known to be in order.
        status = raw.info.transaction_status
        if raw.info.pipeline_status != PipelineStatus.OFF:
            self.close()
        elif status in IN_TRANSACTION:
            try:
                raw.execute("ROLLBACK", prepare=False)
            except psycopg.Error:
                self.close()
        elif status != TransactionStatus.IDLE:
            self.close()


def _itself(result: T) -> T:
    """The result of an operation that has nothing to ask."""
    return result
