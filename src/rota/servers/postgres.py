"""A private PostgreSQL server made from binaries, for tests and for `rota bench --private`.

    with PostgresServer.start() as server:
        connect(server.url)

It listens on a Unix socket in a folder that only its own account may enter, so it needs no
password. As root it runs as `nobody`, because PostgreSQL refuses to run as root; no user is
created, and no folder that was there before is changed. A process of its own looks after it:
`rota.servers.supervise` says how the server ends when this process does, however it does.

A server belongs to the thread that started it; one `PostgresServer` is not for several at once.
"""

import contextlib
import json
import os
import pwd
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Literal, Self, cast
from urllib.parse import quote

from rota.errors import ConfigError, StoreUnavailable
from rota.servers import supervise
from rota.servers.binaries import find_binaries, version_of

__all__ = ["PostgresServer", "find_binaries"]

SETTINGS: Mapping[str, str] = {
    "max_connections": "200",
    "max_prepared_transactions": "20",
    "shared_preload_libraries": "",
    "lc_messages": "C",
    # Where PostgreSQL's defaults are right they are named all the same: a packager may have
    # changed them in the sample file, and a benchmark without fsync measures nothing.
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "autovacuum": "on",
}
"""What a private server is run with, unless `start` is told otherwise."""

SOCKET_PATH_LIMIT = 100
"""Bytes; the kernels' own limits are 104 (macOS) and 108 (Linux)."""

ANSWER_LIMIT = 120.0
"""Seconds; longer than all of the supervisor's own limits together."""


class PostgresServer:
    """A running server; use as a context manager, or call `stop`.

    Attributes:
        url: Of the database `postgres`, as its superuser.
        version: Of the server, such as "18.6".
        pid: Process id of the postmaster, for tests that kill or freeze it.
    """

    url: str
    version: str
    pid: int

    def __init__(self, supervisor: "subprocess.Popen[bytes]", version: str) -> None:
        """Not for callers: use `start`."""
        self._supervisor = supervisor
        self.version = version

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
            folder: Where the data shall be. An existing folder is kept, and the data in it is
                used again the next time; a folder that is made for the server goes with it.
                By default the data is in a temporary folder.
            settings: PostgreSQL's own settings, in addition to `SETTINGS` or instead of them.

        Raises:
            ConfigError: There are no binaries, or no place for the socket.
            StoreUnavailable: The server did not start; the message ends with its log.
        """
        binaries = (binaries or find_binaries()).absolute()
        version = version_of(binaries)
        account = _account()
        plan = supervise.Plan(
            binaries=str(binaries),
            owner=os.getpid(),
            temporary=str(_temporary_folder(public=account is not None)),
            folder=None if folder is None else str(folder.absolute()),
            settings={**SETTINGS, **(settings or {})},
            account=account,
        )
        server = cls(_spawn_supervisor(), version)
        try:
            server._send(vars(plan))
            server._order("prepare")
            socket, server.pid = server._order("start")
        except BaseException:
            server.stop()
            raise
        server.url = _url("postgres", socket)
        return server

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

    def restart(self, *, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Stop the server and start it again, with the same socket and the same data.

        Works as well when the postmaster was killed.

        Args:
            mode: PostgreSQL's: "fast" ends sessions in good order, "immediate" is a crash.

        Raises:
            StoreUnavailable: The server did not start again.
        """
        self._order(mode)
        _, self.pid = self._order("start")

    def stop(self) -> None:
        """Stop the server and remove its folder; fine if it is stopped already."""
        if self._input.closed:
            return
        with contextlib.suppress(StoreUnavailable):
            # In good order, for the data may be kept; the end of input would be a crash.
            self._order("fast")
        with contextlib.suppress(BrokenPipeError):
            self._input.close()
        self._supervisor.wait()
        self._output.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def _input(self) -> IO[bytes]:
        return cast("IO[bytes]", self._supervisor.stdin)

    @property
    def _output(self) -> IO[bytes]:
        return cast("IO[bytes]", self._supervisor.stdout)

    def _send(self, message: object) -> None:
        try:
            self._input.write(json.dumps(message).encode() + b"\n")
            self._input.flush()
        except (BrokenPipeError, ValueError) as error:
            raise StoreUnavailable("The PostgreSQL server is stopped: start a new one.") from error

    def _order(self, order: str) -> tuple[str, int]:
        """Have the supervisor do something; returns the socket's folder and the pid."""
        self._send(order)
        ready, _, _ = select.select([self._output], [], [], ANSWER_LIMIT)
        answer = self._output.readline() if ready else b""
        if not answer:
            raise StoreUnavailable("The supervisor of the PostgreSQL server is gone.")
        said = json.loads(answer)
        if "error" in said:
            raise StoreUnavailable(said["error"])
        return said["socket"], said["pid"] or 0


def _spawn_supervisor() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-I", supervise.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )


def _account() -> tuple[int, int] | None:
    """Who PostgreSQL runs as: user id and group id, or None for whoever runs this."""
    if os.geteuid() != 0:
        return None
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError as error:
        raise ConfigError(
            "PostgreSQL does not run as root, and there is no user 'nobody' to run it as:"
            " run this as an ordinary user."
        ) from error
    return nobody.pw_uid, nobody.pw_gid


def _temporary_folder(*, public: bool) -> Path:
    """Find a folder whose path leaves room for a socket and that other users can pass through."""
    longest = SOCKET_PATH_LIMIT - len("/rota-pg-12345678/s/.s.PGSQL.5432")
    for folder in (Path(tempfile.gettempdir()).resolve(), Path("/tmp")):  # noqa: S108 - mkdtemp's
        passable = not public or all(at.stat().st_mode & 0o001 for at in (folder, *folder.parents))
        if len(os.fsencode(folder)) < longest and passable:
            return folder
    raise ConfigError(
        "No place for PostgreSQL's socket: set TMPDIR to a short path that every user may enter."
    )


def _url(database: str, socket: str) -> str:
    return f"postgresql://postgres@/{quote(database, safe='')}?host={quote(socket, safe='')}"
