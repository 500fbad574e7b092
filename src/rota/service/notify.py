"""systemd's notification protocol, sd_notify(3): datagrams to the socket that NOTIFY_SOCKET names.

The socket is this process's business alone: its name is taken out of the environment, so that a
program which a handler starts does not speak for the worker.
"""

import logging
import os
import socket
from typing import Self

logger = logging.getLogger("rota")

PATIENCE = 1.0
"""Seconds that a message may take: systemd reads whenever it is not itself stuck."""


class Notifier:
    """Speaks to the service manager.

    Attributes:
        watchdog: Seconds within which the manager wants a sign of life; `None`: it wants none.
    """

    def __init__(self, address: str, watchdog: float | None = None) -> None:
        """Speak to the socket at this path; one of the abstract ones begins with `@`."""
        self.watchdog = watchdog
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(PATIENCE)
        self._failed = False

    @classmethod
    def from_environment(cls) -> Self | None:
        """The notifier for the manager that started this process; `None` where none wants to hear.

        Takes the variables out of the environment.
        """
        address = os.environ.pop("NOTIFY_SOCKET", "")
        microseconds = os.environ.pop("WATCHDOG_USEC", "")
        process = os.environ.pop("WATCHDOG_PID", "")
        if not address:
            return None
        if not address.startswith(("/", "@")):
            logger.warning("NOTIFY_SOCKET is not a socket of this machine; systemd is not notified")
            return None
        meant = not process or process == str(os.getpid())
        wanted = meant and microseconds.isascii() and microseconds.isdigit() and int(microseconds)
        return cls(address, int(microseconds) / 1e6 if wanted else None)

    def tell(self, *lines: str) -> bool:
        """Send `lines`, each NAME=VALUE; returns whether they were taken, and warns once if not."""
        message = "\n".join(line.replace("\n", " ") for line in lines)
        try:
            self._socket.sendto(message.encode("utf-8", "replace"), self._address)
        except OSError as error:
            if not self._failed:
                logger.warning("systemd cannot be notified: %s", error)
            self._failed = True
        else:
            self._failed = False
        return not self._failed

    def close(self) -> None:
        """Speak no more."""
        self._socket.close()
