"""A private Redis server made from the machine's binary, for tests and for the lab.

    with RedisServer.start() as server:
        connect(server.url)

`rota.measure.servers.owner` says how it lives; nothing is written to a disk.
"""

import os
from pathlib import Path
from typing import Self

from rota.measure.servers import watchdog
from rota.measure.servers.binaries import find_program, version_said
from rota.measure.servers.owner import PrivateServer, account, temporary_folder


class RedisServer(PrivateServer):
    """A running server; its `url` is of database 0."""

    name = "Redis"

    @classmethod
    def start(cls, *, folder: Path | None = None) -> Self:
        """Start a server.

        Args:
            folder: An existing folder to make the private one in; else a temporary one.

        Raises:
            ConfigError: There is no binary, or no folder for the socket.
            StoreUnavailable: The server did not start; the message ends with its log.
        """
        program = find_program("redis-server")
        version = version_said(program, r"v=(\S+)")
        runs_as = account()
        plan = watchdog.Plan(
            name=cls.name,
            owner=os.getpid(),
            temporary=str(folder or temporary_folder(public=runs_as is not None)),
            account=runs_as,
            serve=[
                program, "--port", "0", "--unixsocket", "{socket}", "--unixsocketperm", "700",
                "--dir", "{folder}", "--save", "", "--appendonly", "no",
            ],
        )  # fmt: skip
        return cls(plan, version)

    def _url(self, socket: str) -> str:
        return f"unix://{socket}/s?db=0"
