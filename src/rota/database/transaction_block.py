"""A transaction of Rota's own, for callers who have none.

with rota.transaction() as tx:
    tx.execute("INSERT INTO orders (id) VALUES (%s)", [42])
    send_receipt.using(conn=tx).enqueue(42)
"""

from functools import partial
from inspect import isawaitable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rota.database.own_transaction import Threaded
from rota.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rota.database.callers_transaction import AwaitedJoined, Joined


class TransactionBlock:
    """The `with` (or `async with`) block of a transaction, which `conn=` takes as well."""

    _joined: "Joined | None" = None
    _awaited: "AwaitedJoined | None" = None

    @property
    def own(self) -> bool:
        """Whether its connection is Rota's own."""
        return True

    @property
    def connection(self) -> Any:
        """The connection given, or the driver's (psycopg or sqlite3), for the user's own statements.

        Raises:
            ConfigError: The block has not begun or has ended.
        """
        return self._open.connection

    def execute(self, sql: str, params: Any = ()) -> Any:
        """Run a statement in the transaction, in the driver's own style; gives its cursor."""
        return self.connection.execute(sql, params)

    async def aexecute(self, sql: str, params: Any = ()) -> Any:
        """`execute` for async code."""
        if isinstance(self._open, Threaded):
            return await self._open.call(partial(self.execute, sql, params))
        found = self.execute(sql, params)
        return await found if isawaitable(found) else found

    @property
    def _open(self) -> "Joined | AwaitedJoined":
        joined = self._joined or self._awaited
        if joined is None:
            message = "this transaction is not open; use it in its `with` block"
            raise ConfigError(message)
        return joined


class OwnTransaction(TransactionBlock):
    """Commits at the end of its `with` (or `async with`) block, rolls back on an exception."""

    def __init__(
        self, begin: "Callable[[], Joined]", abegin: "Callable[[], Awaitable[AwaitedJoined]]"
    ) -> None:
        self._begin = begin
        self._abegin = abegin

    def __enter__(self) -> Self:
        joined = self._begin()
        joined.begin()
        self._joined = joined
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        joined, self._joined = self._joined, None
        if joined is not None:
            joined.commit() if error is None else joined.rollback()

    async def __aenter__(self) -> Self:
        awaited = await self._abegin()
        await awaited.begin()
        self._awaited = awaited
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        awaited, self._awaited = self._awaited, None
        if awaited is not None:
            await (awaited.commit() if error is None else awaited.rollback())


def is_own(conn: object) -> bool:
    """Whether what a caller has given is a block on a connection of Rota's own."""
    return isinstance(conn, TransactionBlock) and conn.own


def connection_of(conn: object) -> object:
    """What a caller has given, or the connection of the block that it is."""
    return conn.connection if isinstance(conn, TransactionBlock) else conn
