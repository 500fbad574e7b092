"""A transaction of Rota's own, for callers who have none.

with rota.transaction() as tx:
    tx.execute("INSERT INTO orders (id) VALUES (%s)", [42])
    send_receipt.enqueue(42, conn=tx)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from rota.database.own_transaction import Own, Threaded
from rota.store.connections import Transaction


class TransactionBlock(ABC):
    """The `with` (or `async with`) block of a transaction, which `conn=` takes as well."""

    @property
    def own(self) -> bool:
        """Whether its connection is Rota's own."""
        return True

    @property
    @abstractmethod
    def connection(self) -> Any:
        """The connection in use, for the user's own statements."""

    def execute(self, sql: str, params: Any = ()) -> Any:
        """Run a statement in the transaction, in the driver's own style; gives its cursor."""
        return self.connection.execute(sql, params)


class OwnTransaction(TransactionBlock):
    """Commits at the end of its `with` (or `async with`) block, rolls back on an exception."""

    def __init__(self, begin: Callable[[], Transaction]) -> None:
        self._own = Own(begin)
        self._threaded = Threaded(self._own)

    @property
    def connection(self) -> Any:
        """The driver's connection (psycopg or sqlite3), for the user's own statements."""
        return self._own.connection

    async def aexecute(self, sql: str, params: Any = ()) -> Any:
        """`execute` for async code."""
        return await self._threaded.call(lambda: self.execute(sql, params))

    def __enter__(self) -> Self:
        self._own.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self._own.commit()
        else:
            self._own.rollback()

    async def __aenter__(self) -> Self:
        await self._threaded.begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            await self._threaded.commit()
        else:
            await self._threaded.rollback()
