"""What a store gives to who works with it: connections, transactions, and those who sleep on them."""

from collections.abc import Callable, Collection
from typing import Any, Protocol, TypeVar

from rota.model.job import JobId
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
        """Have the database begin with an operation; calling what this gives runs it to its end.

        Only that may be done with the connection next. As `run`, either may raise.
        """
        ...

    def interrupt(self, *, cut: bool = False) -> None:
        """Have what is under way fail, as far as the database heeds that; from any thread.

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
        """Take Rota's own settings until the end: what is left is a settlement, and the commit."""
        ...

    def commit(self) -> None:
        """Make everything done in it permanent, and end it."""
        ...

    def rollback(self) -> None:
        """Undo everything done in it, and end it."""
        ...


class Turn(Protocol):
    """Tells a worker whether it goes first, of those whom a job has woken."""

    def __call__(self, queue: str, number: int) -> bool:
        """Whether it does for this queue; `number` is what all who were woken were told alike."""
        ...


class Waker(Protocol):
    """Tells a worker that has nothing to do that there may be something now."""

    @property
    def connection(self) -> Connection:
        """The connection it sleeps on; between two sleeps it is free for operations."""
        ...

    def wait(self, timeout: float, turn: "Turn | None" = None) -> bool:
        """Sleep until woken or for `timeout` seconds; whether something woke it.

        Where many are woken at once, `turn` says who goes first. The others sleep on for a moment,
        and wake as if their time were up.
        """
        ...

    def busy(self) -> bool:
        """There is work in plenty: nobody needs to wake this worker until it waits again.

        False where the connection was lost.
        """
        ...

    def wake(self) -> None:
        """Wake the sleeper from another thread of this process."""
        ...

    def close(self) -> None:
        """Stop listening, and close the connection."""
        ...


class Listener(Protocol):
    """Hears of jobs that have ended, for those who wait for some. One thread uses it."""

    @property
    def connection(self) -> Connection:
        """The connection it listens on; between two sleeps it is free for operations."""
        ...

    def listen(self) -> bool:
        """Begin to hear, also after the connection was lost; whether it began only now.

        What ended before is not heard, nor what ends in the moment it begins.

        Raises:
            StoreUnavailable: The database cannot be reached.
        """
        ...

    def wait(self, timeout: float) -> Collection[JobId] | None:
        """Sleep until something is heard, and at most so many seconds.

        Gives the jobs of which it heard that they have ended, none if nothing was heard, or `None`
        where any job may have ended.

        Raises:
            StoreUnavailable: The connection was lost.
        """
        ...

    def wake(self) -> None:
        """End the sleep, from another thread of this process."""
        ...

    def close(self) -> None:
        """Hear no more, and close the connection."""
        ...
