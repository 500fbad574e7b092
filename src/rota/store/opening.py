"""From a URL to the store it names."""

import os
import re

from rota.errors import ConfigError
from rota.store.protocol import Store

DEFAULT_URL = "sqlite:///rota.db"
VARIABLE = "ROTA_DATABASE_URL"


def default_url() -> str:
    """The URL in `ROTA_DATABASE_URL`, else that of a file `rota.db` in the current folder.

    Raises:
        ConfigError: The variable is empty: whoever set it means a database, not a new file.
    """
    url = os.environ.get(VARIABLE, DEFAULT_URL)
    if not url:
        message = (
            f"{VARIABLE} is empty; set it to the URL of a database, or unset it for {DEFAULT_URL}"
        )
        raise ConfigError(message)
    return url


def open_store(url: str) -> Store:
    """The store behind a URL; its backend and driver are imported now, connections opened later.

    Raises:
        ConfigError: The URL cannot be used, or its driver is not installed.
    """
    scheme, separator, _ = url.partition("://")
    match scheme:
        case "postgresql" | "postgres" if separator:
            try:
                from rota.store.postgres import PostgresStore
            except ImportError as error:
                message = "PostgreSQL needs the driver psycopg; install rota[postgres]"
                raise ConfigError(message) from error
            return PostgresStore(url)
        case "sqlite" if separator:
            from rota.store.sqlite import SqliteStore

            return SqliteStore(url)
    message = (
        f"{shown(url)!r} is no URL of a database that Rota knows; "
        "use postgresql://user@host/database or sqlite:///file.db"
    )
    raise ConfigError(message)


def shown(url: str) -> str:
    """A URL fit for messages: without its password.

    What is none may hold a password, too: "host=127.0.0.1 password=secret", "ada:secret@host".
    """
    if "://" not in url:
        url = re.sub(r"(?is)(password\s*=).*", r"\1…", url)
    url = re.sub(r"(?<=[?&])((?:ssl)?password)=[^&]*", r"\1=…", url)
    head, at, tail = url.rpartition("@")
    if not at:
        return url
    scheme, separator, credentials = head.partition("://")
    if not separator:
        scheme, credentials = "", head
    return f"{scheme}{separator}{credentials.partition(':')[0]}@{tail}"
