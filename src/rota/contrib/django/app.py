"""The app of a Django project."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections as django_connections

from rota import Context, Executor, Rota
from rota.app.context import BatchContext
from rota.args import MAX_ARGS_BYTES
from rota.config import DAY
from rota.contrib.django.address import default_alias
from rota.contrib.django.database import DjangoDatabase
from rota.contrib.django.finishing import Finishing
from rota.contrib.django.tasks import DjangoTasks
from rota.database.database import Database
from rota.errors import ConfigError


class DjangoRota(Rota):
    """A job queue in the database of one of Django's aliases.

    Without `conn=`, `enqueue` joins the transaction that Django's connection has in this thread:
    the job is there if `atomic()` commits. Looking at jobs, cancelling, retrying and deleting join
    it, too.

    Args:
        using: The alias; else the setting ROTA_DATABASE, else "default".
        retention: As for `Rota`, likewise the others.
        max_args_bytes: As for `Rota`.
        connections: As for `Rota`.

    Raises:
        ConfigError: There is no such alias, or Rota does not support that kind of database.
    """

    def __init__(
        self,
        using: str | None = None,
        *,
        retention: float | timedelta = DAY,
        max_args_bytes: int | None = MAX_ARGS_BYTES,
        connections: int | None = None,
    ) -> None:
        self.alias = default_alias() if using is None else using
        super().__init__(
            retention=retention, max_args_bytes=max_args_bytes, connections=connections
        )
        self.finishing = Finishing(self.events, lambda: self.database.confined)
        self.around_run(_between_connections)
        self.around_run(self._between_async_connections)

    def _open(self, url: str | None, connections: int | None) -> Database:
        if url is not None:
            message = "a DjangoRota takes no URL: its database is that of an alias; pass using='the alias'"
            raise ConfigError(message)
        return DjangoDatabase(self.alias, connections)

    tasks: DjangoTasks

    def _find_tasks(self) -> DjangoTasks:
        return DjangoTasks(self)

    async def _between_async_connections(
        self, context: Context | BatchContext, call_next: Callable[[], Any]
    ) -> Any:
        if self.tasks[context.task].executor is not Executor.LOOP:
            return await call_next()
        # Where async code's ORM has its connections.
        close = sync_to_async(_close_old_connections, thread_sensitive=True)
        await close()
        try:
            return await call_next()
        finally:
            await close()


def _between_connections(context: Context | BatchContext, call_next: Callable[[], Any]) -> Any:
    """Around a handler, in its thread, as Django does it around a request."""
    del context
    _close_old_connections()
    try:
        return call_next()
    finally:
        _close_old_connections()


def _close_old_connections() -> None:
    """Close them, except inside of a block, which is that of a test: its kit runs handlers in it."""
    for connection in django_connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()


rota = DjangoRota()
