"""What a store hands out: connections, transactions, wakers and listeners."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

from rota.model.job import JobId, SessionId
from rota.store.operation import Operation

T = TypeVar("T")


class Connection(Protocol):
    """A blocking connection of Rota's own; one thread uses it at a time.

    It connects when it is first used, and again after it was lost. Driver errors surface as
    `StoreError`: `StoreUnavailable` where trying again later makes sense.
    """

    def run(self, operation: Operation[T]) -> T:
        """Run an operation in the kind of transaction it asks for.

        Raises:
            StoreUnavailable: The database cannot be reached. The outcome of an operation that was
                under way is not known.
        """
        ...

    def send(self, operation: Operation[T]) -> Callable[[], T]:
        """Let the database begin with an operation; calling what this gives runs it to its end.

        The connection must do nothing else before that call. Both calls may raise as `run` does.
        """
        ...

    def interrupt(self, *, cut: bool = False) -> None:
        """Make the running operation fail, where the database heeds that; from any thread.

        `cut` breaks the connection off, whatever the database does.
        """
        ...

    def close(self) -> None:
        """End the connection; running another operation opens it again."""
        ...


class Transaction(Protocol):
    """An open transaction of Rota's own."""

    @property
    def connection(self) -> Any:
        """The driver's connection, for the user's own statements."""
        ...

    def tune(self) -> None:
        """Use Rota's own settings until the end: only a settlement and the commit are left."""
        ...

    def commit(self) -> None:
        """Make everything done in it permanent, and end it."""
        ...

    def rollback(self) -> None:
        """Undo everything done in it, and end it."""
        ...


class Wake(NamedTuple):
    """What woke a worker: a job of `queue`, as far as that is told.

    `mine` says whether this worker is to claim; otherwise it has been told beside the one that is.
    `timed`: there may be a job with an early time, too.
    """

    queue: str = ""
    mine: bool = True
    timed: bool = True


class Waker(Protocol):
    """Tells a worker that has nothing to do that there may be something now."""

    @property
    def connection(self) -> Connection:
        """The connection it sleeps on; between two sleeps it is free for operations."""
        ...

    def wait(self, timeout: float) -> Sequence[Wake]:
        """Sleep until woken or for `timeout` seconds; what woke it, nothing if its time is up."""
        ...

    def belong(self, session: SessionId) -> None:
        """From now on it is this session that sleeps: what it keeps ends with the session."""
        ...

    def heard(self) -> float:
        """For how many seconds every commit that makes jobs available has woken it.

        It is 0 if it must look itself.
        """
        ...

    def busy(self) -> bool:
        """There is work in plenty: producers need not wake this worker until it waits again.

        Another worker is woken in its place. False where the connection was lost.
        """
        ...

    def wake(self) -> None:
        """Wake the sleeper from another thread of this process."""
        ...

    def close(self) -> None:
        """Stop listening, and close the connection."""
        ...


class Listener(Protocol):
    """Hears of jobs that have ended, for callers that wait for them. One thread uses it."""

    @property
    def connection(self) -> Connection:
        """The connection it listens on; between two sleeps it is free for operations."""
        ...

    def listen(self) -> bool:
        """Begin to listen, also after the connection was lost; whether it began only now.

        Jobs that ended before are not heard of, nor those that end in the moment it begins.

        Raises:
            StoreUnavailable: The database cannot be reached.
        """
        ...

    def wait(self, timeout: float) -> Collection[JobId] | None:
        """Sleep until a job has ended, and at most so many seconds.

        Gives the jobs that have ended, none if nothing was heard, or `None` where any job may have.

        Raises:
            StoreUnavailable: The connection was lost.
        """
        ...

    def wake(self) -> None:
        """End the sleep, from another thread of this process."""
        ...

    def close(self) -> None:
        """Stop listening, and close the connection."""
        ...


class Connections(Protocol):
    """Of a store: the pool, from which calls and transactions borrow, and what is opened beside it."""

    def run(self, operation: Operation[T]) -> T:
        """Run an operation on a connection of the pool, as `Connection.run` does.

        Raises:
            ConnectionsInUse: All of them were in use for too long.
        """
        ...

    def lent(self) -> AbstractContextManager[Connection]:
        """A connection of the pool, for a block.

        Raises:
            ConnectionsInUse: All of them were in use for too long.
        """
        ...

    def transaction(self, *, tagged: bool = False) -> Transaction:
        """Begin a transaction of Rota's own, on a connection of the pool; `tagged` as by `tag`.

        Raises:
            ConnectionsInUse: All of them were in use for too long.
        """
        ...

    def allow(self, most: int) -> None:
        """Let the pool have so many connections, if these are more than it may have now."""
        ...

    def connect(self, purpose: str = "") -> Connection:
        """A new connection outside of the pool, for a part of the program; nothing is opened yet.

        `purpose` is shown where the database lists its connections.
        """
        ...

    def waker(self, queues: Sequence[str], tasks: Collection[str] | None = None) -> Waker:
        """What a worker of these queues that knows these tasks (`None`: all) can sleep on."""
        ...

    def listener(self) -> Listener:
        """Something that hears of jobs that have ended."""
        ...

    def close(self) -> None:
        """Close the connections of the pool; the next use opens new ones."""
        ...
