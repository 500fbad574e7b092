"""Callers' connections of Django, used through Django's own cursors.

Around them Django would not know of a broken transaction, count queries, or open its connection.
Django is imported by the caller, and here only after that.
"""

import contextlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from rota.database.adapters import Blocking, translated
from rota.errors import ConfigError, StoreError
from rota.store.operation import Begin, Copy, Operation, Query, Request, Rows

T = TypeVar("T")

BACKENDS = {"postgresql": "postgres", "sqlite": "sqlite"}
"""Rota's names of what Django calls vendors."""

ALONE = {Begin.NOTHING, Begin.READING}
"""Operations that need no transaction around their statements."""


@dataclass(frozen=True)
class ThroughDjango(Blocking):
    """Django's connection of an alias, in this thread."""

    connection: Any = None

    def run(
        self,
        operation: Operation[T],
        *,
        apart: Callable[[Operation[Any]], Any] | None = None,
        notify: bool = True,
    ) -> T:
        """Run an operation in the transaction that there is, else in one of its own.

        Outside of `atomic()` each statement would commit by itself.
        """
        from django.db import transaction

        alone = operation.begin in ALONE or in_transaction(self.connection)
        own = contextlib.nullcontext() if alone else transaction.atomic(self.connection.alias)
        with own:
            return super().run(operation, apart=apart, notify=notify)


def alias_of(connection: object) -> str | None:
    """The alias of Django's connection, of its proxy, or as text; `None` for anything else.

    Text is an alias in programs that use Django alone; others may have imported it, as libraries
    do.
    """
    if isinstance(connection, str) and _in_use():
        return connection
    if _is(connection, "ConnectionProxy") or _is(connection, "BaseDatabaseWrapper"):
        return str(connection.alias)  # type: ignore[attr-defined]
    return None


def django(connection: object) -> ThroughDjango:
    """A connection of Django, its proxy, or its alias.

    Raises:
        ConfigError: There is none of that alias, it is another thread's, or leads to a database
            that Rota cannot use.
    """
    own = connection_of(connection)
    if own.vendor not in BACKENDS:
        message = (
            f"conn is Django's connection {own.alias!r} to {own.vendor}, which Rota cannot use; "
            "it keeps its jobs in PostgreSQL and SQLite"
        )
        raise ConfigError(message)
    return ThroughDjango(
        BACKENDS[own.vendor],
        lambda request: _execute(own, request),
        copy=own.vendor == "postgresql" and own.Database.__name__ == "psycopg",
        begun=lambda: own.vendor != "sqlite" or _begun(own),
        connection=own,
    )


def connection_of(connection: object) -> Any:
    """This thread's connection of Django that is meant.

    Raises:
        ConfigError: There is none of that alias, or it is another thread's.
    """
    alias = alias_of(connection)
    from django.core.exceptions import ImproperlyConfigured
    from django.db import connections

    try:
        own = connections[alias]
    except ImproperlyConfigured as error:
        message = f"conn={alias!r} cannot be used, since Django's settings are not set up: {error}"
        raise ConfigError(message) from error
    except connections.exception_class as error:
        known = ", ".join(connections)
        message = f"conn={alias!r} is no alias in the setting DATABASES; there are: {known}"
        raise ConfigError(message) from error
    if _is(connection, "BaseDatabaseWrapper") and own is not connection:
        message = (
            f"conn is Django's connection {alias!r} of another thread, or a copy of it; "
            f"give its alias: conn={alias!r}"
        )
        raise ConfigError(message)
    return own


def in_transaction(connection: Any) -> bool:
    """Whether the statements of one of Django's connections are part of a larger transaction."""
    return bool(connection.in_atomic_block or not connection.get_autocommit())


def _in_use() -> bool:
    if "django.db" not in sys.modules:
        return False
    from django.conf import ENVIRONMENT_VARIABLE, settings

    return settings.configured or ENVIRONMENT_VARIABLE in os.environ


def _is(connection: object, name: str) -> bool:
    return any(
        kind.__name__ == name and kind.__module__.partition(".")[0] == "django"
        for kind in type(connection).__mro__
    )


def _begun(connection: Any) -> bool:
    return connection.connection is not None and bool(connection.connection.in_transaction)


def _execute(connection: Any, request: Request) -> Rows:
    from django.db import Error, transaction

    if not isinstance(request, Query | Copy):
        message = f"a connection of Django cannot run a {type(request).__name__}"
        raise StoreError(message)
    try:
        # As the ORM does it: after an error the block of `atomic` rolls back, whoever catches it.
        with (
            transaction.mark_for_rollback_on_error(connection.alias),
            connection.cursor() as cursor,
        ):
            if isinstance(request, Query):
                return _query(connection, cursor, request)
            _copy(connection, cursor, request)
            return ()
    except Error as error:
        # Why a block is broken is the cause of Django's own refusal, too.
        lost = isinstance(error, transaction.TransactionManagementError)
        raise translated(error if lost else _drivers(error)) from error


def _query(connection: Any, cursor: Any, query: Query) -> Rows:
    text, params = query.statement.text, dict(query.params) or None
    if connection.vendor == "sqlite" and params:
        # Django replaces names by the % operator, and leaves those of SQLite's style alone.
        text = text.replace("%", "%%")
    cursor.execute(text, params)
    if cursor.description is None:
        return ()
    rows: Rows = cursor.fetchall()
    return rows if connection.vendor == "sqlite" else _aware(connection, rows)


def _copy(connection: Any, cursor: Any, copy: Copy) -> None:
    """Around Django's cursor, which knows no COPY.

    The statement before it, which prepares it, has met a broken block already.
    """
    with connection.wrap_database_errors, cursor.copy(copy.statement.text) as stream:
        for block in copy.blocks:
            stream.write(block)


def _aware(connection: Any, rows: Rows) -> Rows:
    """With USE_TZ = False Django takes the time zone, the session's, from all times that it reads."""
    from django.conf import settings

    if settings.USE_TZ:
        return rows
    from zoneinfo import ZoneInfo

    zone = ZoneInfo(connection.timezone_name)
    return [
        tuple(value.replace(tzinfo=zone) if _naive(value) else value for value in row)
        for row in rows
    ]


def _naive(value: object) -> bool:
    return isinstance(value, datetime) and value.tzinfo is None


def _drivers(error: Exception) -> Exception:
    """The driver's error below one of Django's."""
    return error.__cause__ if isinstance(error.__cause__, Exception) else error
