"""A database of one test's own, where everything commits: for what a transaction cannot show.

PostgreSQL copies a database (`CREATE DATABASE … TEMPLATE`), which takes some ten milliseconds;
SQLite gets a new file. Each process makes the copied database once, so that tests in many processes
never wait for each other's.
"""

import atexit
import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any, Self

from rota.app.app import Rota
from rota.config import WorkerConfig
from rota.errors import ConfigError
from rota.store.migrate import migrate
from rota.store.opening import open_store
from rota.worker.worker import Worker

_templates: dict[str, str] = {}
"""By server, the database with Rota's tables that this process copies."""


class Committed:
    """The app's database during a block; afterwards the app has its own again.

    Attributes:
        url: Its URL. Connect to it with your own driver, and close your connections again.
    """

    url: str

    def __init__(self, app: Rota, template: str | None = None) -> None:
        self._app = app
        self._template = template
        self._before = app.url

    def __enter__(self) -> Self:
        self.url = _made(self._before, self._template)
        self._app.use(self.url)
        try:
            self._app.ready()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    def drain(self, *queues: str) -> None:
        """Run a real worker until its queues (all of the app's tasks, without any) are empty."""
        Worker(self._app, self._config(queues)).run()

    async def adrain(self, *queues: str) -> None:
        """`drain` for async tests."""
        await Worker(self._app, self._config(queues)).arun(signals=False)

    @staticmethod
    def _config(queues: tuple[str, ...]) -> WorkerConfig:
        return WorkerConfig(queues=queues, drain=True, poll=0.05)

    def _close(self) -> None:
        self._app.use(self._before)
        _remove(self.url)


def _made(url: str, template: str | None) -> str:
    """The URL of a new database beside this one."""
    if url.startswith("sqlite"):
        if template is not None:
            message = (
                "template=: a SQLite file is made anew; copy your own tables into committed().url"
            )
            raise ConfigError(message)
        return f"sqlite:///{tempfile.mkdtemp(prefix='rota-test-')}/rota.db"
    name = f"rota_test_{os.getpid()}_{token_hex(4)}"
    _copy(url, name, template or _own_template(url))
    return _beside(url, name)


def _own_template(url: str) -> str:
    server = _beside(url, "")
    if server not in _templates:
        name = f"rota_template_{os.getpid()}_{token_hex(4)}"
        _copy(url, name, "template0")
        atexit.register(_forget, _beside(url, name))
        store = open_store(_beside(url, name))
        try:
            with store.lent() as connection:
                migrate(store, connection)
        finally:
            store.close()
        _templates[server] = name
    return _templates[server]


def _copy(url: str, name: str, template: str) -> None:
    from psycopg import Error, sql

    with _admin(url) as admin:
        how = sql.SQL("STRATEGY file_copy" if admin.info.server_version >= 150000 else "")  # noqa: PLR2004
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {} {}")
        try:
            admin.execute(create.format(sql.Identifier(name), sql.Identifier(template), how))
        except Error as error:
            message = (
                f"cannot make a database for the test: {error}. The role needs CREATEDB, and nothing may be "
                "connected to a database that is copied"
            )
            raise ConfigError(message) from error


def _remove(url: str) -> None:
    if url.startswith("sqlite"):
        shutil.rmtree(Path(url.removeprefix("sqlite:///")).parent, ignore_errors=True)
        return
    from psycopg import sql

    name = _name(url)
    with _admin(url) as admin:
        admin.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )


def _forget(url: str) -> None:
    """Remove a database at the end of the process, if its server is still there."""
    from psycopg import Error

    with contextlib.suppress(Error):
        _remove(url)


def _admin(url: str) -> Any:
    """A connection to the server's own database, from which others may be made."""
    import psycopg

    return psycopg.connect(_beside(url, "postgres"), autocommit=True)


def _beside(url: str, name: str) -> str:
    """The URL of another database of the same server."""
    return re.sub(r"^(\w+://[^/?]*)(/[^?]*)?", lambda found: f"{found[1]}/{name}", url)


def _name(url: str) -> str:
    return re.sub(r"^\w+://[^/?]*/?([^?]*).*", r"\1", url)
