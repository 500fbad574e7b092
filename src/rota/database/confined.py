"""What a test puts in the place of an app's connections: one transaction, which it rolls back."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from rota.database.callers_transaction import AwaitedJoined, Joined
from rota.database.waiting import Waiting
from rota.store.operation import Operation
from rota.store.protocol import Store

T = TypeVar("T")


class Confined(Protocol):
    """Runs everything that an app does with its database in the transaction of a test.

    Attributes:
        store: The operations, as the test wants them.
        waiting: Instead of the thread that waits for jobs to end.
    """

    store: Store
    waiting: Waiting

    def run(self, operation: Operation[T], conn: object) -> T:
        """Run an operation in the test's transaction.

        Raises:
            ConfigError: `conn` is another connection than the test's.
        """
        ...

    async def arun(self, operation: Operation[T], conn: object) -> T:
        """`run` for async code."""
        ...

    def joined(self, conn: object, *, commit: bool) -> Joined:
        """A savepoint in the place of a transaction."""
        ...

    async def ajoined(self, conn: object, *, commit: bool) -> AwaitedJoined:
        """`joined` for async code."""
        ...

    def apart(self, operation: Operation[T]) -> T:
        """Run an operation on a connection of Rota's own, which commits."""
        ...

    async def aside(self, call: Callable[[], T]) -> T:
        """Make a blocking call that uses the database."""
        ...
