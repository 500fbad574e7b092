"""A stand-in for a pooler that lets everything through but notifications, as poolers do."""

import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

NOTIFICATION = b"A"
"""The type of PostgreSQL's message NotificationResponse (its manual, "Message Formats")."""


@contextmanager
def swallowing(url: str, host: str, port: int, *, said: list[bytes] | None = None) -> Iterator[str]:
    """The URL of a server, by way of a proxy that swallows its notifications.

    He appends to `said` what the clients say, piece by piece as it comes.
    """
    given = conninfo_to_dict(url)
    with (
        tempfile.TemporaryDirectory(prefix="rota-") as folder,
        socket.socket(socket.AF_UNIX) as door,
    ):
        door.bind(str(Path(folder, ".s.PGSQL.5432")))
        door.listen()
        Thread(target=_serve, args=(door, host, port, said), daemon=True).start()
        user = quote(str(given["user"]), safe="")
        if given.get("password"):
            user += ":" + quote(str(given["password"]), safe="")
        yield (
            f"postgresql://{user}@/{given['dbname']}?host={quote(folder, safe='')}"
            "&port=5432&sslmode=disable&gssencmode=disable"
        )


def _serve(door: socket.socket, host: str, port: int, said: list[bytes] | None) -> None:
    with suppress(OSError):
        while True:
            client, _ = door.accept()
            if host.startswith("/"):
                server = socket.socket(socket.AF_UNIX)
                server.connect(f"{host}/.s.PGSQL.{port}")
            else:
                server = socket.create_connection((host, port))
            Thread(target=_pass, args=(client, server, said), daemon=True).start()
            Thread(target=_filter, args=(server, client), daemon=True).start()


def _pass(client: socket.socket, server: socket.socket, said: list[bytes] | None) -> None:
    with suppress(OSError), client, server:
        while block := client.recv(65536):
            if said is not None:
                said.append(block)
            server.sendall(block)
        server.shutdown(socket.SHUT_RDWR)


def _filter(server: socket.socket, client: socket.socket) -> None:
    with suppress(OSError), server.makefile("rb") as stream:
        while head := stream.read(5):
            body = stream.read(int.from_bytes(head[1:]) - 4)
            if head[:1] != NOTIFICATION:
                client.sendall(head + body)
    with suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)
