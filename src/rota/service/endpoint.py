"""A health endpoint: `GET /live` and `GET /ready`, answered with 200 or 503 and the reasons as JSON.

Where the worker measures itself, `GET /metrics` is answered, too.

It has a thread with an event loop of its own, so a handler that blocks the worker's loop blocks no
answer. Each client has a few seconds in all, and the oldest one makes room where there are too
many: a slow client keeps none of the others. What is told is in `document`: ids of sessions, names
of threads and of exceptions.
"""

import asyncio
import json
import logging
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from types import TracebackType
from typing import Any, NamedTuple, Self

from rota.errors import ConfigError
from rota.worker.health import Health

logger = logging.getLogger("rota")

PATIENCE = 5.0
"""Seconds that a client has for its request and for taking the answer."""

CLIENTS = 50
"""So many are attended to at once."""

LARGEST = 8192
"""Bytes of a request's head."""


Page = tuple[bytes, str]
"""A body and its content type."""


class Address(NamedTuple):
    """Where to listen."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Endpoint:
    """Answers, while its block lasts, with what `look` sees.

    Args:
        address: Where to listen; port 0 takes one that is free.
        look: Called in the endpoint's thread.
        metrics: Likewise; a page of metrics, and its content type.

    Attributes:
        address: Where it listens.

    Raises:
        ConfigError: The address cannot be listened on.
    """

    def __init__(
        self,
        address: Address,
        look: Callable[[], Health],
        metrics: Callable[[], Page] | None = None,
    ) -> None:
        self._look = look
        self._metrics = metrics
        try:
            [(family, _, _, _, where), *_] = socket.getaddrinfo(
                address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
            self._socket = socket.create_server(where[:2], family=family)
        except OSError as error:
            message = f"cannot listen on {address}: {error.strerror}; name another address"
            raise ConfigError(message) from error
        self.address = Address(*self._socket.getsockname()[:2])
        self._clients: dict[asyncio.Task[Any], None] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="rota-health", daemon=True)

    def __enter__(self) -> Self:
        self._end = asyncio.Event()
        self._thread.start()
        logger.info("health: http://%s/live and /ready", self.address)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._attend, sock=self._socket, limit=LARGEST)
        await self._end.wait()
        # What is still under way is cancelled with the loop's other tasks.
        server.close()

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = asyncio.current_task()
        assert client is not None  # noqa: S101 - for the type checker: this is a coroutine
        if len(self._clients) >= CLIENTS:
            next(iter(self._clients)).cancel()
        self._clients[client] = None
        try:
            with suppress(OSError, TimeoutError, EOFError, asyncio.LimitOverrunError):
                async with asyncio.timeout(PATIENCE):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(answer(head, self._look(), self._metrics))
                    writer.close()
                    await writer.wait_closed()
        finally:
            del self._clients[client]
            writer.transport.abort()


def answer(head: bytes, health: Health, metrics: Callable[[], Page] | None = None) -> bytes:
    """The response to a request with this head."""
    method, target, *_ = [*head.decode("latin-1").split(), "", ""]
    path = target.partition("?")[0]
    asked = {"/live": health.live, "/ready": health.ready}
    kind = "application/json"
    if path not in asked and (path != "/metrics" or metrics is None):
        status, body = HTTPStatus.NOT_FOUND, b'{"error":"ask for /live or /ready"}'
    elif method not in {"GET", "HEAD"}:
        status, body = HTTPStatus.METHOD_NOT_ALLOWED, b'{"error":"only GET and HEAD"}'
    elif path not in asked and metrics is not None:
        status = HTTPStatus.OK
        body, kind = metrics()
    else:
        status = HTTPStatus.OK if asked[path] else HTTPStatus.SERVICE_UNAVAILABLE
        body = json.dumps(document(health)).encode()
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body) + 1}",
        "Cache-Control: no-store",
        "Connection: close",
    ]
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        lines.append("Allow: GET, HEAD")
    shown = b"" if method == "HEAD" else body + b"\n"
    return "\r\n".join([*lines, "", ""]).encode() + shown


def document(health: Health) -> dict[str, object]:
    """What is told of a worker."""
    return {
        "live": health.live,
        "ready": health.ready,
        "phase": health.phase,
        "session": health.session,
        "running": health.running,
        "why": health.why,
    }
