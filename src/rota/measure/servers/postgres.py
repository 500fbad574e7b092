"""A private PostgreSQL server made from binaries, for tests and for `rota bench --private`.

    with PostgresServer.start() as server:
        connect(server.url)

`rota.measure.servers.owner` says how it lives.
"""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Self
from urllib.parse import quote

from rota.errors import ConfigError
from rota.measure.servers import watchdog
from rota.measure.servers.binaries import find_binaries, version_of
from rota.measure.servers.owner import PrivateServer, account, temporary_folder

__all__ = ["PostgresServer", "find_binaries"]

SETTINGS: Mapping[str, str] = {
    "max_connections": "400",
    "max_prepared_transactions": "20",
    "shared_preload_libraries": "",
    "lc_messages": "C",
    # PostgreSQL's defaults, named all the same: a packager may have changed the sample file, and a
    # benchmark without fsync measures nothing.
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "autovacuum": "on",
}
"""The settings of a private server, unless `start` gets others."""


class PostgresServer(PrivateServer):
    """A running server; its `url` is of the database `postgres`, as its superuser."""

    name = "PostgreSQL"
    data_may_stay = True

    @classmethod
    def start(
        cls,
        *,
        binaries: Path | None = None,
        folder: Path | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> Self:
        """Make a database cluster and start a server on it.

        Args:
            binaries: Folder of initdb and postgres; `find_binaries` looks for one by default.
            folder: Where the data shall be. An existing folder is kept, and its data are used
                again the next time; a folder that is made for the server is removed with it.
                By default the data are in a temporary folder.
            settings: PostgreSQL's own settings, in addition to `SETTINGS` or instead of them.

        Raises:
            ConfigError: There are no binaries, or no folder for the socket.
            StoreUnavailable: The server did not start; the message ends with its log.
        """
        binaries = (binaries or find_binaries()).absolute()
        version = version_of(binaries)
        runs_as = account()
        plan = watchdog.PostgresPlan(
            name=cls.name,
            owner=os.getpid(),
            temporary=str(temporary_folder(public=runs_as is not None)),
            account=runs_as,
            binaries=str(binaries),
            folder=None if folder is None else str(folder.absolute()),
            settings={**SETTINGS, **(settings or {})},
        )
        return cls(plan, version)

    def create_database(self, name: str) -> str:
        """Create an empty database and return its URL. Needs psycopg.

        Raises:
            ConfigError: psycopg is not installed.
        """
        try:
            import psycopg
            from psycopg import sql
        except ImportError as error:
            raise ConfigError(
                "Creating a database needs psycopg: pip install 'rota[postgres]'."
            ) from error
        with contextlib.closing(psycopg.connect(self.url, autocommit=True)) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.url.replace("/postgres?", f"/{quote(name, safe='')}?")

    def _url(self, socket: str) -> str:
        return f"postgresql://postgres@/postgres?host={quote(socket, safe='')}"
