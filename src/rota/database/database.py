"""The database of an app: its store, and on which connection an operation runs.

An operation runs on a connection of Rota's own, or in the transaction of a caller's: a connection
or session, async or not, or the block of a transaction that Rota has begun. Async code does the
same in threads, since Rota's own connections block. While a test confines it, all of this happens
in the test's one transaction.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from rota.database.adapters import Awaiting, Blocking
from rota.database.own_transaction import Own, Threaded, to_its_end
from rota.database.recognise import blocking_caller, caller
from rota.database.through_django import alias_of
from rota.database.transaction_block import OwnTransaction, connection_of, is_own
from rota.database.waiting import Waiting
from rota.errors import ConfigError, SchemaMissing
from rota.store import migrate
from rota.store.connections import Transaction
from rota.store.execute import in_thread
from rota.store.opening import open_store
from rota.store.operation import Operation
from rota.store.pool import LEAST, USUAL, check_connections
from rota.store.protocol import Store
from rota.store.url import shown

if TYPE_CHECKING:
    from rota.database.callers_transaction import AwaitedJoined, Joined
    from rota.database.confined import Confined

T = TypeVar("T")


class Database:
    """One database. Nothing is opened before the first operation.

    Args:
        url: `postgresql://…` or `sqlite:///file.db`.
        connections: How many connections its calls and transactions have at the most; as many as is
            usual, if it is `None`, and more where a worker runs more jobs at once.

    Attributes:
        url: Which one it is.
        store: Its operations.
        waiting: The thread that waits for jobs to end.

    Raises:
        ConfigError: The URL or the number cannot be used, or the driver is not installed.
    """

    url: str
    store: Store
    waiting: Waiting

    def __init__(self, url: str, connections: int | None = None) -> None:
        self._fixed = connections is not None
        self._most = USUAL if connections is None else check_connections(connections)
        self._confined: Confined | None = None
        self._begin(url, open_store(url, self._most))

    def _begin(self, url: str, store: Store) -> None:
        self.store = store
        self.url = url
        self.waiting = Waiting(self.store)
        self._ready = False

    def use(self, url: str) -> None:
        """Be another database from now on; what is open is closed.

        Raises:
            ConfigError: The URL cannot be used, or a test confines this one; then nothing has
                changed.
        """
        if self._confined is not None:
            message = (
                "a test has this database in its transaction; change it before or after the test"
            )
            raise ConfigError(message)
        store = open_store(url, self._most)
        self.close()
        self._begin(url, store)

    def allow_transactions(self, number: int) -> None:
        """Let so many transactions be open at once, unless the app says how many connections it has."""
        if not self._fixed:
            self._most = max(self._most, number + LEAST - 1)
            self.store.allow(self._most)

    def ready(self, *, make: bool = True) -> None:
        """Check once that the database has the tables that this Rota needs.

        A SQLite file gets them by itself (unless `make` is false: a caller's open transaction would
        keep it waiting); a PostgreSQL database by `rota migrate`. While a test has this database in
        its transaction, nothing is checked: that might wait for the test itself.

        Raises:
            SchemaMissing: Run `rota migrate`.
            SchemaIncomplete: A dump was restored without Rota's data.
            SchemaOutdated: Run `rota migrate`.
            SchemaTooNew: Upgrade Rota.
        """
        if self._ready or self._confined is not None:
            return
        with self.store.lent() as connection:
            try:
                migrate.check(self.store, connection)
            except SchemaMissing:
                if not make or self.store.name != "sqlite":
                    raise
                migrate.migrate(self.store, connection)
        self._ready = True

    def run(self, operation: Operation[T], conn: object = None) -> T:
        """Run an operation: in the transaction of `conn`, else on a connection of Rota's own.

        Raises:
            ConfigError: `conn` is async, or no connection to this database.
            ConnectionsInUse: All connections of Rota's own were in use for too long.
            StoreError: The database refuses.
        """
        if self._confined is not None:
            return self._confined.run(operation, conn)
        if conn is not None:
            found = blocking_caller(connection_of(conn))
            return self._join(found, operation, own=is_own(conn))
        if not self._ready:
            self.ready()
        return self.store.run(operation)

    async def arun(self, operation: Operation[T], conn: object = None) -> T:
        """`run` for async code; `conn` may be async or not."""
        if self._confined is not None:
            return await self._confined.arun(operation, conn)
        if conn is None or is_own(conn):
            return await in_thread(self.run, operation, conn)
        if (alias := alias_of(connection_of(conn))) is not None:
            return await self._in_djangos_thread(operation, alias)
        found = await caller(connection_of(conn))
        if isinstance(found, Blocking):
            return self._join(found, operation)
        self.check(found)
        self._refuse(await found.run(self.store.elsewhere()))
        if not self._ready:
            await in_thread(self.ready, make=False)
        try:
            return await found.run(operation, apart=self.arun)
        except SchemaMissing as error:
            raise self._missing_there(error) from error

    def joining(self, conn: object) -> object:
        """The connection whose transaction an operation of a program joins: that which was given."""
        return conn

    async def ajoining(self, conn: object) -> object:
        """`joining` for async code."""
        return conn

    def require_transaction(self, conn: object) -> None:
        """Refuse a caller's connection on which each statement is a transaction of its own.

        Raises:
            ConfigError: It is one.
        """
        if conn is None or is_own(conn) or self._confined is not None:
            return
        from rota.database.callers_transaction import require  # here, as in `joined`

        blocking_caller(connection_of(conn))
        require(connection_of(conn))

    async def arequire_transaction(self, conn: object) -> None:
        """`require_transaction` for async code."""
        if conn is None or is_own(conn) or self._confined is not None:
            return
        from rota.database.callers_transaction import arequire  # here, as in `joined`

        await caller(connection_of(conn))
        await arequire(connection_of(conn))

    async def _in_djangos_thread(self, operation: Operation[T], alias: str) -> T:
        """Run an operation where async code's connections of Django are: in the thread of its ORM."""
        from asgiref.sync import sync_to_async

        return await sync_to_async(self.run, thread_sensitive=True)(operation, alias)

    def _join(self, found: Blocking, operation: Operation[T], *, own: bool = False) -> T:
        self.check(found)
        if not own:
            self._refuse(found.run(self.store.elsewhere()))
        self.ready(make=False)
        try:
            return found.run(operation, apart=self.run)
        except SchemaMissing as error:
            raise self._missing_there(error) from error

    def _missing_there(self, error: SchemaMissing) -> SchemaMissing:
        """The same error with the database to which a caller's connection should lead."""
        return SchemaMissing(f"{error} (Rota's own URL is {shown(self.url)})")

    def check(self, found: Blocking | Awaiting) -> None:
        """Refuse a caller's connection to another kind of database.

        Raises:
            ConfigError: It is one.
        """
        if found.backend != self.store.name:
            message = (
                f"conn leads to {found.backend}, but this Rota keeps its jobs in "
                f"{self.store.name}; a job can only join a transaction of its own database"
            )
            raise ConfigError(message)

    def _refuse(self, elsewhere: str | None) -> None:
        """Refuse a caller's connection to another database of the same kind.

        Raises:
            ConfigError: It is one.
        """
        if elsewhere is not None:
            message = (
                f"conn leads to {elsewhere}, but this Rota keeps its jobs in {shown(self.url)}; a job can "
                "only join a transaction of its own database: give both the same file, by rota.use(url), "
                "say, in tests"
            )
            raise ConfigError(message)

    def transaction(self) -> OwnTransaction:
        """A transaction of Rota's own, for `with` and `async with`."""
        return OwnTransaction(partial(self.joined, None), partial(self.ajoined, None))

    def joined(self, conn: object, *, tagged: bool = False, commit: bool = True) -> "Joined":
        """A transaction that is still to begin: of Rota's own, or on a caller's connection.

        Raises:
            ConfigError: `conn` is async, or no connection to this database.
        """
        if self._confined is not None:
            return self._confined.joined(conn, commit=commit)
        if conn is None:
            return Own(partial(self.begin, tagged=tagged))
        from rota.database.callers_transaction import join  # here: few programs need it

        return join(conn, self.check, commit=commit)

    async def ajoined(
        self, conn: object, *, tagged: bool = False, commit: bool = True
    ) -> "AwaitedJoined":
        """`joined` for async code; `conn` may be async or not."""
        if self._confined is not None:
            return await self._confined.ajoined(conn, commit=commit)
        if conn is None:
            return Threaded(Own(partial(self.begin, tagged=tagged)))
        from rota.database.callers_transaction import ajoin  # here, as in `joined`

        return await ajoin(conn, self.check, commit=commit)

    def apart(self, operation: Operation[T]) -> T:
        """Run an operation outside of any caller's transaction."""
        if self._confined is not None:
            return self._confined.apart(operation)
        return self.store.run(operation)

    async def aside(self, call: Callable[[], T]) -> T:
        """Make a blocking call that uses this database, to its end, without blocking the event loop."""
        if self._confined is not None:
            return await self._confined.aside(call)
        return await to_its_end(call)

    @property
    def confined(self) -> bool:
        """Whether a test has it in its transaction."""
        return self._confined is not None

    def confine(self, confined: "Confined") -> Callable[[], None]:
        """Let everything happen in a test's transaction from now on; gives what ends that.

        Raises:
            ConfigError: Another test has it.
        """
        if self._confined is not None:
            message = "another test has this database in its transaction; end that one first"
            raise ConfigError(message)
        before = self.store, self.waiting
        self._confined, self.store, self.waiting = confined, confined.store, confined.waiting

        def end() -> None:
            self._confined = None
            self.store, self.waiting = before

        return end

    def begin(self, *, tagged: bool = False) -> Transaction:
        """Begin a transaction of Rota's own; `transaction` is the way to use it."""
        self.ready()
        return self.store.transaction(tagged=tagged)

    def close(self) -> None:
        """Close all connections; using the object again opens new ones."""
        self.waiting.close()
        self.store.close()
