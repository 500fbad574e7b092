"""The connections of an app: so many at the most, lent for one call or one transaction at a time.

What has a connection may need another one: calls are made within a user's transaction, and a call
may have to do something apart from its own transaction. So a transaction leaves two connections to
the others, and a call leaves one. What needs no other connection never waits for what does, and no
circle of waits is possible.

Known weakness: a transaction within a transaction can wait for itself; and so can a call in a
transaction, while calls that wait for this transaction's locks have all connections. The time limit
ends both.

Rota's settings would harm users' statements, and users may set on a connection what they like. So
there are two sorts of connections. Where all connections are there, an idle one of the other sort
is closed.

Those that wait are served in the order in which they came. A connection that is lost stays in the
pool: it connects again.
"""

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Generic, Literal, TypeVar
from weakref import WeakSet

from rota.errors import ConfigError, ConnectionsInUse, StoreUnavailable
from rota.store.connections import Connection
from rota.store.operation import Operation

T = TypeVar("T")
C = TypeVar("C", bound=Connection)

USUAL = 10
"""Connections of an app at the most, unless it says otherwise."""

LEAST = 3
"""A transaction, a call within it, and what the call does apart."""

PATIENCE = 30.0
"""Seconds to wait for a connection."""


Loan = Literal[0, 1, 2]
"""What a connection is lent for; each may need one of the next kind beside it."""

# Numbers, since an enum costs a tenth of a microsecond at each look.
TRANSACTION: Final = 0
CALL: Final = 1
APART: Final = 2


class _Wait(Generic[C]):
    """A thread that waits for a connection; `given` is what it got."""

    __slots__ = ("given", "loan", "turn")

    def __init__(self, loan: Loan) -> None:
        self.loan = loan
        self.given: tuple[C, C | None] | None = None
        self.turn = threading.Lock()
        self.turn.acquire()


class Pool(Generic[C]):
    """Lends connections.

    Args:
        most: How many there may be.
        connect: Makes one for Rota's own statements; nothing is opened yet.
        connect_for_users: Makes one for users' transactions.
    """

    def __init__(
        self, most: int, connect: Callable[[], C], connect_for_users: Callable[[], C]
    ) -> None:
        self._most = most
        self._makes = (connect_for_users, connect, connect)
        own: list[C] = []
        users: list[C] = []
        self._idle = (users, own, own)
        self._others = (own, users, users)
        self._forget()
        _pools.add(self)

    def _forget(self) -> None:
        """Know of no loans, as at the beginning and in a forked process."""
        self._lock = threading.Lock()
        self._waiting: deque[_Wait[C]] = deque()
        self._lent: dict[C, Loan] = {}
        self._counts = [0, 0, 0]

    def allow(self, most: int) -> None:
        """Have so many connections from now on, if these are more."""
        with self._lock:
            self._most = max(most, self._most)
            self._serve()

    def run(self, operation: Operation[T], loan: Loan = CALL) -> T:
        """Run an operation on one of the connections.

        Raises:
            ConnectionsInUse: None was free in time.
            StoreUnavailable: The database cannot be reached.
        """
        connection = self.lend(loan)
        try:
            return connection.run(operation)
        except StoreUnavailable:
            connection.close()
            raise
        finally:
            self.give_back(connection)

    def apart(self, operation: Operation[T]) -> T:
        """Run what another operation has to have done apart from its transaction."""
        return self.run(operation, APART)

    @contextmanager
    def lent(self) -> Iterator[C]:
        """A connection for several operations, one after another."""
        connection = self.lend(CALL)
        try:
            yield connection
        finally:
            self.give_back(connection)

    def lend(self, loan: Loan) -> C:
        """A connection, to be given back.

        Raises:
            ConnectionsInUse: None was free in time.
        """
        wait: _Wait[C] | None = None
        with self._lock:
            if self._room(loan):
                given = self._take(loan)
            else:
                wait = _Wait(loan)
                self._waiting.append(wait)
        if wait is not None:
            given = self._wait(wait)
        connection, surplus = given
        if surplus is not None:
            # Before the new one is opened, which its first use does.
            surplus.close()
        return connection

    def give_back(self, connection: C) -> None:
        """Have it back, for the next loan."""
        with self._lock:
            loan = self._lent.pop(connection, None)
            if loan is not None:
                self._counts[loan] -= 1
                self._idle[loan].append(connection)
                if self._waiting:
                    self._serve()
        if loan is None:
            # The pool was closed in the meantime, or this is a forked process.
            connection.close()

    def close(self) -> None:
        """Close what is idle now, and what is lent when it is given back."""
        with self._lock:
            idle = [*self._idle[TRANSACTION], *self._idle[CALL]]
            for connections in self._idle:
                connections.clear()
            self._lent.clear()
            self._counts = [0, 0, 0]
            self._serve()
        for connection in idle:
            connection.close()

    # With the lock ---------------------------------------------------------------------------

    def _room(self, loan: Loan) -> bool:
        transactions, calls, apart = self._counts
        most = self._most
        return (
            transactions + calls + apart < most
            and (loan > CALL or transactions + calls < most - 1)
            and (loan > TRANSACTION or transactions < most - 2)
        )

    def _take(self, loan: Loan) -> tuple[C, C | None]:
        """A connection, and one that has to be closed for it."""
        self._counts[loan] += 1
        surplus = None
        if idle := self._idle[loan]:
            connection = idle.pop()
        else:
            connection = self._makes[loan]()
            others = self._others[loan]
            if others and len(self._lent) + len(others) >= self._most:
                surplus = others.pop(0)
        self._lent[connection] = loan
        return connection, surplus

    def _serve(self) -> None:
        """Give to those that wait what there is."""
        for wait in tuple(self._waiting):
            if self._room(wait.loan):
                self._waiting.remove(wait)
                wait.given = self._take(wait.loan)
                wait.turn.release()

    # Without it ------------------------------------------------------------------------------

    def _wait(self, wait: _Wait[C]) -> tuple[C, C | None]:
        try:
            wait.turn.acquire(timeout=PATIENCE)
        except BaseException:  # Ctrl-C
            if (given := self._withdraw(wait)) is not None:
                connection, surplus = given
                if surplus is not None:
                    surplus.close()
                self.give_back(connection)
            raise
        if (given := self._withdraw(wait)) is None:
            message = (
                f"all {self._most} connections of this app were in use for "
                f"{PATIENCE:g} seconds; keep transactions shorter, do not begin one within another, or "
                f"allow more: Rota(url, connections={2 * self._most})"
            )
            raise ConnectionsInUse(message)
        return given

    def _withdraw(self, wait: _Wait[C]) -> tuple[C, C | None] | None:
        """Wait no more; what was given, if it came."""
        with self._lock:
            if wait.given is None:
                self._waiting.remove(wait)
            return wait.given


def check_connections(connections: int) -> int:
    """The number of connections that an app may have.

    Raises:
        ConfigError: It is not one.
    """
    if isinstance(connections, bool) or not isinstance(connections, int) or connections < LEAST:
        message = (
            f"connections: must be a whole number of at least {LEAST}, not {connections!r}; they are opened "
            "as they are needed"
        )
        raise ConfigError(message)
    return connections


_pools: WeakSet[Pool[Any]] = WeakSet()
"""All of this process."""


def _forget_loans() -> None:
    """The threads that have borrowed something are not in the forked process."""
    for pool in _pools:
        pool._forget()  # noqa: SLF001 - of this module


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forget_loans)
