"""A connection of Rota's own to the database file, and what a transaction means on it.

Every transaction that may write begins with `BEGIN IMMEDIATE`, so it never has to upgrade a lock
half-way, the one kind of "database is locked" that waiting cannot cure. All other locks are waited
for here, up to `PATIENCE`; then it is `StoreUnavailable`. Readers never wait for writers (WAL).

SQLite must not be carried across a fork. A child that finds itself with an inherited connection
opens another one and keeps the old one unclosed: closing it would drop the parent's file locks.
"""

import os
import random
import sqlite3
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Literal, TypeVar

from rota.errors import StoreError, StoreUnavailable
from rota.store.execute import drive
from rota.store.operation import (
    Apart,
    Begin,
    Operation,
    Query,
    Request,
    Rows,
    Surroundings,
    Then,
    Together,
    Where,
)
from rota.store.sqlite.failures import broken, busy, translated
from rota.store.sqlite.flags import WAITERS, WORKERS
from rota.store.sqlite.gate import Gate

T = TypeVar("T")

OURS = "SELECT count(*) = 0 OR coalesce(sum(name = 'rota_schema'), 0) > 0 FROM sqlite_master"
"""Whether a file is new, or has Rota's tables."""

PATIENCE = 30.0
"""Seconds to wait for a lock that another connection holds."""

OLDEST = (3, 37, 0)
"""STRICT tables exist from this version on."""

Synchronous = Literal["FULL", "NORMAL"]
FULL: Final = "FULL"
NORMAL: Final = "NORMAL"

_SYNCHRONOUS: Final[Mapping[Begin, Synchronous]] = {Begin.DURABLE: FULL, Begin.HASTY: NORMAL}

WRITES = frozenset({"checkpoint"})
"""The only statement that writes without a transaction around it; it takes its turn too."""

_NONE: Final[Mapping[str, object]] = {}

_inherited: list[sqlite3.Connection] = []


class SqliteConnection:
    """Runs operations on one database file; see `rota.store.connections.Connection`.

    Args:
        path: The file.
        patience: Seconds to wait for a lock that another connection holds.
        checked: Whether the constraints of rows are checked. They are half of what an update of a
            job costs, and a quarter of a single insert; so the connections through which each job
            passes do without.
    """

    def __init__(self, path: str, *, patience: float = PATIENCE, checked: bool = True) -> None:
        self.path = path
        self._patience = patience
        self._checked = checked
        self._gate = Gate(path)
        self._database: sqlite3.Connection | None = None
        self._pid = 0
        self._file: tuple[int, int] | None = None
        self._synchronous = ""
        self._doing = ""
        self._patient = True

    def run(self, operation: Operation[T]) -> T:
        """Run an operation in the kind of transaction it asks for."""
        self._doing = operation.name
        self._patient = True
        synchronous = _SYNCHRONOUS.get(operation.begin)
        if synchronous is None:
            # No operation here needs several statements to see the same moment.
            result = drive(operation.steps, self._execute_alone)
        elif isinstance(operation, Together):
            result = self._run_together(operation, synchronous)
        else:
            result = self._run_in_transaction(operation, synchronous)
        if operation.then is not Then.NOTHING:
            self.wake(operation.then)
        return result

    def wake(self, then: Then) -> None:
        """Wake those who sleep until something is done to the database."""
        if Then.WORKERS in then:
            WORKERS.wake(self.path)
        if Then.WAITERS in then:
            WAITERS.wake(self.path)
        self._gate.ring()

    def send(self, operation: Operation[T]) -> Callable[[], T]:
        """Run it when its result is asked for: SQLite works in this thread alone."""
        return partial(self.run, operation)

    def interrupt(self, *, cut: bool = False) -> None:
        """Wait no longer for locks; there is no connection to cut."""
        del cut
        self._patient = False

    def close(self) -> None:
        """End the connection; running another operation opens it again."""
        database, self._database = self._database, None
        if database is not None and self._pid == os.getpid():
            # The last connection to close makes a checkpoint, so closing is a turn at writing, too.
            self._gate.enter()
            try:
                database.close()
            finally:
                self._gate.leave()
        elif database is not None:
            _inherited.append(database)
        self._gate.close()

    # Transactions ----------------------------------------------------------------------------

    def begin(self, synchronous: Synchronous) -> sqlite3.Connection:
        """Begin a transaction that may write, with the gate held; the driver's connection."""
        self._gate.enter()
        try:
            database = self._unmoved()
            if database.in_transaction:  # left behind by an interrupt
                self._statement(database, "ROLLBACK")
            self._set_synchronous(database, synchronous)
            self._statement(database, "BEGIN IMMEDIATE")
        except BaseException:
            self._gate.leave()
            raise
        return database

    def commit(self) -> None:
        """Make the transaction permanent and let others write."""
        database = self.database()
        if not database.in_transaction:
            self.rollback()
            message = (
                "the transaction ended before it was committed: by a statement of your own "
                "(leave COMMIT and ROLLBACK to Rota), or by SQLite after an error"
            )
            raise StoreError(message)
        try:
            self._statement(database, "COMMIT")
        except BaseException:
            self.rollback()
            raise
        self._gate.leave()

    def rollback(self) -> None:
        """Undo the transaction, if there still is one, and let others write."""
        database = self._database
        try:
            if database is not None and database.in_transaction:
                database.execute("ROLLBACK")
        except sqlite3.Error:
            self._discard()
        finally:
            self._gate.leave()

    def _run_in_transaction(self, operation: Operation[T], synchronous: Synchronous) -> T:
        steps = operation.steps
        try:
            # What can be prepared is prepared before other writers have to wait for it.
            first = next(steps)
        except StopIteration as end:
            nothing: T = end.value
            return nothing
        database = self.begin(synchronous)
        try:
            result = drive(steps, partial(self._execute, database), first)
        except BaseException:
            self.rollback()
            raise
        self.commit()
        return result

    def _run_together(self, operation: Together[T], synchronous: Synchronous) -> T:
        """The same without driving any steps."""
        database = self.begin(synchronous)
        try:
            rows = [
                self._statement(database, query[0].text, query[1]) for query in operation.queries
            ]
            result = operation.read(rows)
        except BaseException:
            self.rollback()
            raise
        self.commit()
        return result

    # Requests --------------------------------------------------------------------------------

    def _execute_alone(self, request: Request) -> Rows:
        """A request outside of a transaction."""
        match request:
            case Apart():
                return [(self.run(request.operation),)]
            case Query() if request.statement.name in WRITES:
                database = self.database()
                self._gate.enter()
                try:
                    self._set_synchronous(database, FULL)
                    return self._execute(database, request)
                finally:
                    self._gate.leave()
            case _:
                return self._execute(self.database(), request)

    def _execute(self, database: sqlite3.Connection, request: Request) -> Rows:
        if isinstance(request, Query):
            return self._statement(database, request.statement.text, request.params)
        if isinstance(request, Where):
            return [Surroundings()]
        message = f"SQLite cannot do {type(request).__name__} inside a transaction"
        raise StoreError(message)

    def _statement(
        self, database: sqlite3.Connection, text: str, params: Mapping[str, object] = _NONE
    ) -> Rows:
        """Run one statement as soon as no other connection's lock is in the way."""
        deadline = 0.0
        while True:
            try:
                return database.execute(text, params).fetchall()
            except sqlite3.Error as error:
                deadline = self._wait(error, deadline)

    def _wait(self, error: sqlite3.Error, deadline: float) -> float:
        """Pause before another try, until a deadline set at the first; else raise Rota's error."""
        deadline = deadline or time.monotonic() + self._patience
        if busy(error) and self._patient and time.monotonic() < deadline:
            time.sleep(random.uniform(0.0005, 0.004))  # noqa: S311 - no secret
            return deadline
        if broken(error):
            self._discard()
        raise translated(error, self.path, self._doing) from error

    # The connection itself -------------------------------------------------------------------

    def database(self) -> sqlite3.Connection:
        """The driver's connection; opened when needed, and again in a forked child."""
        if self._database is not None:
            if self._pid == os.getpid():
                return self._database
            _inherited.append(self._database)
        self._database, self._pid, self._synchronous = None, os.getpid(), ""
        if sqlite3.sqlite_version_info < OLDEST:
            message = f"Rota needs SQLite 3.37 or later; this Python has {sqlite3.sqlite_version}"
            raise StoreError(message)
        self._database = database = self._opened()
        self._file = self._stat()
        return database

    def _opened(self) -> sqlite3.Connection:
        deadline = 0.0
        while True:
            try:
                return self._connect()
            except sqlite3.Error as error:
                deadline = self._wait(error, deadline)

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(
            self.path, timeout=0, isolation_level=None, check_same_thread=False
        )
        try:
            # The mode stays with the file, so another application's file is left as it is until
            # it has Rota's tables: its path may only have been mistyped.
            if database.execute(OURS).fetchone()[0]:
                database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA journal_size_limit = 67108864")
            database.execute("PRAGMA cache_size = -16384")
            # Deleted rows need not be overwritten; Debian's builds do so unless told.
            database.execute("PRAGMA secure_delete = OFF")
            if not self._checked:
                database.execute("PRAGMA ignore_check_constraints = ON")
        except BaseException:
            database.close()
            raise
        return database

    def _unmoved(self) -> sqlite3.Connection:
        """`database`, after a look whether its file is still where it was.

        SQLite would go on writing to a file that was deleted, where no job is ever found again.
        """
        database = self.database()
        if self._stat() != self._file:
            self._discard()
            message = (
                f"{self.path} was deleted or replaced while it was in use; "
                "jobs must not be lost silently, so nothing was written"
            )
            raise StoreUnavailable(message)
        return database

    def _stat(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self.path)  # noqa: PTH116 - once per transaction, so the quick way
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _set_synchronous(self, database: sqlite3.Connection, synchronous: Synchronous) -> None:
        if self._synchronous != synchronous:
            self._statement(database, f"PRAGMA synchronous = {synchronous}")
            self._synchronous = synchronous

    def _discard(self) -> None:
        """Close a connection that has failed; the next operation opens another one."""
        database, self._database = self._database, None
        if database is not None and self._pid == os.getpid():
            database.close()
