"""From a URL to the store it names."""

import os

from rota.errors import ConfigError
from rota.store.pool import USUAL
from rota.store.protocol import Store
from rota.store.url import VARIABLE, shown

DEFAULT_URL = "sqlite:///rota.db"


def default_url() -> str:
    """The URL in `ROTA_DATABASE_URL`, else that of a file `rota.db` in the current folder.

    Raises:
        ConfigError: The variable is empty: it was set to name a database, not a new file.
    """
    url = os.environ.get(VARIABLE, DEFAULT_URL)
    if not url:
        message = (
            f"{VARIABLE} is empty; set it to the URL of a database, or unset it for {DEFAULT_URL}"
        )
        raise ConfigError(message)
    return url


def open_store(url: str, connections: int = USUAL) -> Store:
    """The store behind a URL; its backend and driver are imported now, connections opened later.

    Calls and transactions have so many `connections` at the most.

    Raises:
        ConfigError: The URL cannot be used, or its driver is not installed.
    """
    scheme, separator, _ = url.partition("://")
    match scheme:
        case "postgresql" | "postgres" if separator:
            try:
                from rota.store.postgres.store import PostgresStore
            except ImportError as error:
                message = "PostgreSQL needs the driver psycopg; install rota[postgres]"
                raise ConfigError(message) from error
            return PostgresStore(url, connections=connections)
        case "sqlite" if separator:
            from rota.store.sqlite.store import SqliteStore

            return SqliteStore(url, connections=connections)
    message = (
        f"{shown(url)!r} is not a database URL that Rota understands; "
        "use postgresql://user@host/database or sqlite:///file.db"
    )
    raise ConfigError(message)
