"""The owner's side of a private server: it tells a watchdog what to do.

The server listens on a Unix socket in a folder that only its own account may enter, so it needs no
password. As root it runs as `nobody`; no user is created, and no existing folder is changed. A
process of its own looks after it: `rota.measure.servers.watchdog` ends the server however this
process ends.

A server belongs to the thread that started it.
"""

import contextlib
import json
import os
import pwd
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, ClassVar, Literal, Self, cast

from rota.errors import ConfigError, StoreUnavailable
from rota.measure.servers import watchdog

SOCKET_PATH_LIMIT = 100
"""Bytes; the kernels' own limits are 104 (macOS) and 108 (Linux)."""

ANSWER_LIMIT = 120.0
"""Seconds; longer than all limits of the watchdog together."""


class PrivateServer:
    """A running server; use as a context manager, or call `stop`.

    Attributes:
        url: The server's URL.
        version: The server's version, such as "18.6".
        pid: Process id of the server, for tests that kill or freeze it.
    """

    name: ClassVar[str]
    """The server's name, for messages."""

    data_may_stay: ClassVar[bool] = False
    """Whether the data may be wanted afterwards."""

    url: str
    version: str
    pid: int

    def __init__(self, plan: watchdog.Plan, version: str) -> None:
        """Not for callers: use `start`."""
        self.version = version
        self._watchdog = _spawn_watchdog()
        try:
            self._send(vars(plan))
            self._order("prepare")
            socket, self.pid = self._order("start")
        except BaseException:
            self.stop()
            raise
        self.url = self._url(socket)

    def _url(self, socket: str) -> str:
        """The URL of the server whose socket is in that folder."""
        raise NotImplementedError

    def restart(self, *, mode: Literal["fast", "immediate"] = "fast") -> None:
        """Stop the server and start it again, with the same socket and the same data.

        Works as well when the postmaster was killed.

        Args:
            mode: "fast" ends sessions in good order, "immediate" is a crash.

        Raises:
            StoreUnavailable: The server did not start again.
        """
        with self.down(mode=mode):
            pass

    @contextlib.contextmanager
    def down(self, *, mode: Literal["fast", "immediate"] = "fast") -> Iterator[None]:
        """Stop the server for a while; see `restart`."""
        self._order(mode)
        try:
            yield
        finally:
            _, self.pid = self._order("start")

    def stop(self) -> None:
        """Stop the server and remove its folder; fine if it was stopped before."""
        if self._input.closed:
            return
        if self.data_may_stay:
            with contextlib.suppress(StoreUnavailable):
                # The end of input would be a crash.
                self._order("fast")
        with contextlib.suppress(BrokenPipeError):
            self._input.close()
        self._watchdog.wait()
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
        return cast("IO[bytes]", self._watchdog.stdin)

    @property
    def _output(self) -> IO[bytes]:
        return cast("IO[bytes]", self._watchdog.stdout)

    def _send(self, message: object) -> None:
        try:
            self._input.write(json.dumps(message).encode() + b"\n")
            self._input.flush()
        except (BrokenPipeError, ValueError) as error:
            raise StoreUnavailable(
                f"The {self.name} server is stopped: start a new one."
            ) from error

    def _order(self, order: str) -> tuple[str, int]:
        """Let the watchdog do something; returns the socket's folder and the pid."""
        self._send(order)
        ready, _, _ = select.select([self._output], [], [], ANSWER_LIMIT)
        answer = self._output.readline() if ready else b""
        if not answer:
            raise StoreUnavailable(f"The watchdog of the {self.name} server is gone.")
        said = json.loads(answer)
        if "error" in said:
            raise StoreUnavailable(said["error"])
        return said["socket"], said["pid"] or 0


def _spawn_watchdog() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-I", watchdog.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )


def account() -> tuple[int, int] | None:
    """The server's account: user id and group id, or None for the current user."""
    if os.geteuid() != 0:
        return None
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError as error:
        raise ConfigError(
            "A database server does not run as root, and there is no user 'nobody' for it:"
            " run this as an ordinary user."
        ) from error
    return nobody.pw_uid, nobody.pw_gid


def temporary_folder(*, public: bool) -> Path:
    """Find a folder with a path short enough for a socket, which other users can pass through."""
    longest = SOCKET_PATH_LIMIT - len("/rota-postgresql-12345678/s/.s.PGSQL.5432")
    for folder in (Path(tempfile.gettempdir()).resolve(), Path("/tmp")):  # noqa: S108 - mkdtemp's
        passable = not public or all(at.stat().st_mode & 0o001 for at in (folder, *folder.parents))
        if len(os.fsencode(folder)) < longest and passable:
            return folder
    raise ConfigError(
        "No folder for the server's socket: set TMPDIR to a short path that every user may enter."
    )
