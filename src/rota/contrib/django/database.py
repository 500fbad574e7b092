"""The database of an app in a Django project: that of an alias, through Django's connections.

What a program asks for joins the transaction that Django's connection has in this thread. Workers,
and whatever waits, have connections of Rota's own to the same database.
"""

import re
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar, cast

from rota.contrib.django.address import IN_MEMORY, address
from rota.database.adapters import Blocking
from rota.database.database import Database
from rota.database.through_django import connection_of, in_transaction
from rota.errors import ConfigError, SchemaMissing, SchemaOutdated
from rota.store import migrate
from rota.store.operation import Operation
from rota.store.protocol import Store

if TYPE_CHECKING:
    from rota.store.connections import Connection

T = TypeVar("T")

JOINING = {"enqueue", "get", "notes", "cancel", "retry", "delete"}
"""Operations of programs on jobs. Workers use others, in threads where Django has no connection."""

INSIDE = {
    *("list_jobs", "count_jobs", "queues", "flows", "memberships", "runs_again"),
    *("cron_entries", "cron_add", "cron_change", "cron_remove", "cron_run"),
    *("cron_pause", "cron_resume"),
    *("pause", "resume", "queue_settings", "set_queue"),
}
"""Operations that join a transaction, and elsewhere need not take Django's connection.

What takes several of them, such as storing a flow, asks for `joining` first.
"""


class DjangoDatabase(Database):
    """The database of one of Django's aliases.

    Attributes:
        alias: Which one it is.
    """

    def __init__(self, alias: str, connections: int | None = None) -> None:
        self.alias = alias
        self._follows = False
        super().__init__(address(alias), connections)
        self._follows = True

    @property
    def store(self) -> Store:
        """Its operations."""
        self._follow()
        return self._store

    @store.setter
    def store(self, store: Store) -> None:
        self._store = store

    @property
    def url(self) -> str:
        """Which one it is."""
        self._follow()
        return self._url

    @url.setter
    def url(self, url: str) -> None:
        self._url = url

    def _follow(self) -> None:
        """Be the database that the alias means now: tests begin and end with another one."""
        if not self._follows or (now := address(self.alias)) == self._url:
            return
        self._follows = False
        try:
            super().use(now)
        finally:
            self._follows = True

    def use(self, url: str) -> None:
        """Be that database from now on, and not the alias's any more.

        Raises:
            ConfigError: The URL cannot be used; then nothing has changed.
        """
        super().use(url)
        self._follows = url == address(self.alias)

    def ready(self, *, make: bool = True) -> None:
        """Check once that the database has the tables that this Rota needs; migrations make them.

        Raises:
            ConfigError: It is in the memory of a test, where Rota's own connections cannot reach
                it.
            SchemaMissing: Run `manage.py migrate`; likewise the other schema errors.
        """
        del make
        if self.url == IN_MEMORY:
            message = (
                "workers, and whatever waits for a job, need connections of their own, but this database "
                "is in memory; set TEST NAME in DATABASES to a file, or run the job in the test"
            )
            raise ConfigError(message)
        try:
            super().ready(make=False)
        except (SchemaMissing, SchemaOutdated) as error:
            raise by_migrating(error) from error

    def run(self, operation: Operation[T], conn: object = None) -> T:
        """Run an operation: in the transaction of `conn`, else as Django's connection has it."""
        if operation.name in INSIDE:
            conn = self.joining(conn)
        return super().run(operation, self._joined(operation, conn))

    async def arun(self, operation: Operation[T], conn: object = None) -> T:
        """`run` for async code, in the thread of Django's ORM."""
        if operation.name in INSIDE:
            conn = await self.ajoining(conn)
        return await super().arun(operation, self._joined(operation, conn))

    def joining(self, conn: object) -> object:
        """The connection that was given; else Django's of this thread, where it has a transaction."""
        if conn is None and self._follows and self._confined is None:
            own = connection_of(self.alias)
            # Asking one that is not open would open it.
            return self.alias if own.connection is not None and in_transaction(own) else None
        return conn

    async def ajoining(self, conn: object) -> object:
        """`joining` for async code: of the thread of Django's ORM."""
        if conn is not None:
            return conn
        from asgiref.sync import sync_to_async

        return await sync_to_async(self.joining, thread_sensitive=True)(None)

    def _joined(self, operation: Operation[T], conn: object) -> object:
        if conn is None and self._follows:
            # No other connection reaches a database in memory.
            always = operation.name in JOINING or self._url == IN_MEMORY
            return self.alias if always else None
        return conn

    def _join(self, found: Blocking, operation: Operation[T], *, own: bool = False) -> T:
        del own  # an alias says which database it means, at no cost of a query
        self.check(found)
        if not self._ready:
            try:
                # Only `run` is asked of it.
                migrate.check(self.store, cast("Connection", found))
            except (SchemaMissing, SchemaOutdated) as error:
                raise by_migrating(error) from error
            self._ready = True
        return found.run(operation, apart=self._apart)

    def _apart(self, operation: Operation[T]) -> T:
        """Run what the first job of a queue needs outside of the caller's transaction.

        It is rare, and the connection does not stay: Django's tests delete their database at the
        end.
        """
        with closing(self.store.connect("apart")) as connection:
            return connection.run(operation)


def by_migrating(error: SchemaMissing | SchemaOutdated) -> SchemaMissing | SchemaOutdated:
    """The same error with Django's command."""
    message = re.sub("`rota migrate[^`]*`", "`manage.py migrate`", str(error))
    return type(error)(message)
