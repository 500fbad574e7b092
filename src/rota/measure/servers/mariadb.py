"""A private MariaDB server made from the machine's binaries, for tests and for the lab.

    with MariaDBServer.start() as server:
        connect(server.url)

`rota.measure.servers.owner` says how it lives; its data are removed with it.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Self
from urllib.parse import quote

from rota.measure.servers import watchdog
from rota.measure.servers.binaries import find_program, version_said
from rota.measure.servers.owner import PrivateServer, account, temporary_folder

SETTINGS: Mapping[str, str] = {
    "max_connections": "200",
    "character_set_server": "utf8mb4",
    "skip_name_resolve": "on",
    # MariaDB's defaults, named all the same: measurements rely on them.
    "innodb_flush_log_at_trx_commit": "1",
    "innodb_deadlock_detect": "on",
    "transaction_isolation": "REPEATABLE-READ",
}
"""The settings of a private server, unless `start` gets others."""


class MariaDBServer(PrivateServer):
    """A running server; its `url` names no database, and its user is root."""

    name = "MariaDB"

    @classmethod
    def start(
        cls, *, folder: Path | None = None, settings: Mapping[str, str] | None = None
    ) -> Self:
        """Make the system tables and start a server on them.

        Args:
            folder: An existing folder to make the private one in; else a temporary one.
            settings: MariaDB's own settings, in addition to `SETTINGS` or instead of them.

        Raises:
            ConfigError: There are no binaries, or no folder for the socket.
            StoreUnavailable: The server did not start; the message ends with its log.
        """
        program = find_program("mariadbd", "mysqld")
        install = find_program("mariadb-install-db", "mysql_install_db")
        version = version_said(program, r"Ver (\d[\d.]*)")
        runs_as = account()
        plan = watchdog.Plan(
            name=cls.name,
            owner=os.getpid(),
            temporary=str(folder or temporary_folder(public=runs_as is not None)),
            account=runs_as,
            prepare=[
                [
                    install, "--no-defaults", "--datadir={data}", "--skip-test-db",
                    "--auth-root-authentication-method=normal", "--skip-name-resolve",
                ]
            ],
            serve=[
                program, "--no-defaults", "--datadir={data}", "--socket={socket}",
                "--pid-file={folder}/pid", "--tmpdir={folder}", "--skip-networking",
                *(f"--{name}={value}" for name, value in {**SETTINGS, **(settings or {})}.items()),
            ],
        )  # fmt: skip
        return cls(plan, version)

    def _url(self, socket: str) -> str:
        return f"mariadb://root@/?unix_socket={quote(socket, safe='')}%2Fs"
