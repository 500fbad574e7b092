"""The dashboard on its own, for `rota dashboard`: a small server with a thread for each request.

On loopback everything is allowed, to who reaches it: programs and people of this machine. A page of another site could
make a browser send requests here under a name of its own (DNS rebinding), so only names of this machine are
answered there. Off loopback a password is asked for, else the pages can only be read.
"""

import base64
import hmac
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from socket import AF_INET6
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from rota.app.app import Rota
from rota.dashboard.access import Access
from rota.dashboard.mounting import Dashboard
from rota.dashboard.safety import HEADERS
from rota.dashboard.wsgi import Environ, Wsgi

USER = "rota"
"""The name to give with the password."""


def guarded(app: Rota, host: str, password: str | None) -> "Guard":
    """The dashboard of an app as it is served on `host`.

    Raises:
        ConfigError: The extra is not installed.
    """
    trusted = loopback(host) or password is not None
    inner = Dashboard(
        app, Access.all(who="rota dashboard") if trusted else Access.only("args")
    ).wsgi
    return Guard(inner, local=loopback(host), password=password)


class Guard:
    """A WSGI application in front of the dashboard's: which host, which password.

    Args:
        inner: The dashboard's.
        local: Whether it listens on loopback alone.
        password: `None`: none is asked for.
    """

    def __init__(self, inner: Wsgi, *, local: bool, password: str | None) -> None:
        self._inner = inner
        self._local = local
        self._password = password

    def __call__(self, environ: Environ, start: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request, or say what it lacks."""
        if self._local and not _named_here(environ.get("HTTP_HOST", "")):
            return _refuse(start, "421 Misdirected Request", "Ask for localhost or 127.0.0.1.")
        if self._password is not None and not _knows(self._password, environ):
            asking = ("www-authenticate", 'Basic realm="Rota", charset="UTF-8"')
            return _refuse(start, "401 Unauthorized", f"User {USER}, and the password.", asking)
        return self._inner(environ, start)


class Server(ThreadingMixIn, WSGIServer):
    """Answers each request in a thread of its own."""

    daemon_threads = True

    def __init__(self, host: str, port: int, app: Callable[..., Iterable[bytes]]) -> None:
        if ":" in host:
            self.address_family = AF_INET6
        super().__init__((host, port), Quiet)
        self.set_app(app)


class Quiet(WSGIRequestHandler):
    """Prints no line for each request."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name it has there
        """Say nothing."""


def loopback(host: str) -> bool:
    """Whether only this machine reaches what listens there."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _named_here(host: str) -> bool:
    """Whether a request's host is a name of this machine's own."""
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    return loopback(name.removeprefix("[").removesuffix("]").lower())


def _knows(password: str, environ: Environ) -> bool:
    scheme, _, text = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    try:
        given = base64.b64decode(text, validate=True)
    except ValueError:
        return False
    return scheme.lower() == "basic" and hmac.compare_digest(given, f"{USER}:{password}".encode())


def _refuse(
    start: Callable[..., Any], status: str, text: str, *headers: tuple[str, str]
) -> list[bytes]:
    body = text.encode()
    own = {**HEADERS, "content-type": "text/plain; charset=utf-8", "content-length": str(len(body))}
    start(status, [*own.items(), *headers])
    return [body]
