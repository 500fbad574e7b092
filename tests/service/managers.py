"""The service manager's end of the socket that NOTIFY_SOCKET names."""

import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

LONG = 20.0
"""Seconds after which a test has waited in vain."""


class Manager(NamedTuple):
    """A socket, and its name as systemd gives it."""

    name: str
    socket: socket.socket

    def heard(self) -> list[str]:
        """The lines of the next message; waits for it."""
        return self.socket.recv(65536).decode().split("\n")

    def until(self, line: str) -> list[str]:
        """All lines up to the message with this one."""
        lines = self.heard()
        while line not in lines:
            lines += self.heard()
        return lines

    def without(self, line: str, seconds: float) -> bool:
        """Whether this line does not come for so long."""
        deadline = time.monotonic() + seconds
        try:
            while (left := deadline - time.monotonic()) > 0:
                self.socket.settimeout(left)
                if line in self.heard():
                    return False
        except TimeoutError:
            pass
        finally:
            self.socket.settimeout(LONG)
        return True

    def forget(self) -> None:
        """Leave unread what was said so far."""
        self.socket.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                self.heard()
        self.socket.settimeout(LONG)


@contextmanager
def listening(folder: Path, *, abstract: bool = False) -> Iterator[Manager]:
    """A socket that is listened on; in the folder, or one without a file."""
    name = f"@rota-{secrets.token_hex(8)}" if abstract else str(folder / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.bind(f"\0{name[1:]}" if abstract else name)
        end.settimeout(LONG)
        yield Manager(name, end)
