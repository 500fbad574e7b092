"""PostgreSQL: the job log.

The modules follow a job: `enqueue`, `timer`, `claim`, `settle`; `sessions` and `wake` serve the
workers, `control` and `lookup` the people, `segments` keeps the rings turning. The statements are
in `sql/`, the tables in `migrations/`, the model in docs/engine.md.
"""

import urllib.parse
from collections.abc import Sequence
from typing import Any

from rota.errors import ConfigError
from rota.store.opening import shown
from rota.store.postgres import (
    claim,
    control,
    lookup,
    schema,
    segments,
    sessions,
    settle,
    timer,
)
from rota.store.postgres.connection import PostgresConnection, PostgresTransaction
from rota.store.postgres.enqueue import Enqueuer
from rota.store.postgres.wake import PostgresWaker


class PostgresStore:
    """A PostgreSQL database; see `rota.store.protocol.Store`.

    Args:
        url: A URL that libpq understands. One parameter is Rota's own: `prepare=off` where a
            pooler in front of the server cannot keep prepared statements.

    Raises:
        ConfigError: The URL cannot be read.
    """

    name = "postgres"

    def __init__(self, url: str) -> None:
        self._url, self._options = _read(url)
        self.enqueue = Enqueuer().enqueue

    def connect(self) -> PostgresConnection:
        """A new connection of Rota's own; nothing is opened yet."""
        return PostgresConnection(self._url, self._options)

    def transaction(self) -> PostgresTransaction:
        """Begin a transaction of Rota's own."""
        return PostgresTransaction(self.connect())

    def waker(self, queues: Sequence[str]) -> PostgresWaker:
        """Something a worker of these queues can sleep on."""
        return PostgresWaker(self.connect, queues)

    def close(self) -> None:
        """Nothing is kept open between operations."""

    get = staticmethod(lookup.get)
    list_jobs = staticmethod(lookup.list_jobs)
    queues = staticmethod(lookup.queues)
    cancel = staticmethod(control.cancel)
    retry = staticmethod(control.retry)
    retry_discarded = staticmethod(control.retry_discarded)
    delete = staticmethod(control.delete)
    pause = staticmethod(control.pause)
    resume = staticmethod(control.resume)
    open_session = staticmethod(sessions.open_session)
    renew = staticmethod(sessions.renew)
    close_session = staticmethod(sessions.close_session)
    claim = staticmethod(claim.claim)
    settle = staticmethod(settle.settle)
    stage = staticmethod(timer.stage)
    rescue = staticmethod(sessions.rescue)
    tidy = staticmethod(segments.tidy)
    schema_version = staticmethod(schema.schema_version)
    migrations = staticmethod(schema.migrations)
    migrate = staticmethod(schema.migrate)


def _read(url: str) -> tuple[str, dict[str, Any]]:
    try:
        parts = urllib.parse.urlsplit(url)
        _ = parts.port
    except ValueError as error:
        message = f"{shown(url)!r} cannot be read as a URL: {error}"
        raise ConfigError(message) from error
    query = urllib.parse.parse_qsl(parts.query, keep_blank_values=True)
    options: dict[str, Any] = {}
    rest = []
    for key, value in query:
        if key == "prepare":
            if value not in {"on", "off"}:
                message = f"prepare={value}: on or off are possible"
                raise ConfigError(message)
            if value == "off":
                options["prepare_threshold"] = None
        else:
            rest.append((key, value))
    return parts._replace(query=urllib.parse.urlencode(rest)).geturl(), options
