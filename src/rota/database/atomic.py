"""The caller's transaction in which a handler's job is completed, on a connection of Django."""

import contextlib
from typing import Any, TypeVar

from rota.database.through_django import connection_of, django, in_transaction
from rota.errors import ConfigError
from rota.store.operation import Operation

T = TypeVar("T")


class Atomic:
    """A transaction on a connection of Django, whose `atomic` it is."""

    def __init__(self, connection: Any, *, commit: bool) -> None:
        self.connection = connection_of(connection)
        self._commit = commit
        self._atomic: Any = None

    def begin(self) -> None:
        """Begin it, unless the caller has begun it and will commit it.

        Raises:
            ConfigError: There is one already and should not, or there should be one.
        """
        from django.db import transaction

        if self._commit and in_transaction(self.connection):
            message = (
                "conn is already in a transaction of Django, which Rota cannot end; let "
                "ctx.transaction(conn=...) begin it, or pass commit=False inside atomic()"
            )
            raise ConfigError(message)
        if self._commit:
            self._atomic = transaction.atomic(self.connection.alias)
            self._atomic.__enter__()
        elif not in_transaction(self.connection):
            message = "commit=False: begin a transaction first, with django.db.transaction.atomic()"
            raise ConfigError(message)

    def tag(self, operation: Operation[int | None]) -> int | None:
        """Tag it."""
        return self.run(operation)

    def run(self, operation: Operation[T]) -> T:
        """Run an operation in it."""
        return django(self.connection).run(operation, notify=self._commit)

    def commit(self) -> None:
        """Commit it."""
        self._atomic.__exit__(None, None, None)

    def rollback(self) -> None:
        """Roll it back. A connection that is gone has done so already."""
        with contextlib.suppress(Exception):
            self.connection.set_rollback(True)
            self._atomic.__exit__(None, None, None)
