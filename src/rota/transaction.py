"""A transaction of Rota's own, for callers who have none.

with rota.transaction() as tx:
    tx.execute("INSERT INTO orders (id) VALUES (%s)", [42])
    send_receipt.enqueue(42, conn=tx)
"""

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rota.errors import ConfigError
from rota.store.execute import in_thread

if TYPE_CHECKING:
    from rota.app import Rota
    from rota.store.protocol import Transaction


class OwnTransaction:
    """Commits at the end of its `with` (or `async with`) block, rolls back on an exception."""

    def __init__(self, app: "Rota") -> None:
        self._app = app
        self._open: Transaction | None = None

    @property
    def connection(self) -> Any:
        """The driver's connection (psycopg or sqlite3), for the user's own statements."""
        if self._open is None:
            message = "this transaction is not open; use it in its `with` block"
            raise ConfigError(message)
        return self._open.connection

    def execute(self, sql: str, params: Any = ()) -> Any:
        """Run a statement in the transaction, in the driver's own style; gives its cursor."""
        return self.connection.execute(sql, params)

    async def aexecute(self, sql: str, params: Any = ()) -> Any:
        """`execute` for async code."""
        return await in_thread(self.execute, sql, params)

    def __enter__(self) -> Self:
        self._open = self._app.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        ending, self._open = self._open, None
        if ending is None:
            return
        if error is None:
            ending.commit()
        else:
            ending.rollback()

    async def __aenter__(self) -> Self:
        await in_thread(self.__enter__)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await in_thread(self.__exit__, kind, error, traceback)
