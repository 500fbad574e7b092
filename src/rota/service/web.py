"""A command's own small web server, with a thread per request, and what stands before its pages.

On loopback everything is shown to who reaches it: programs and people of this machine. A page of
another site could make a browser send requests here under a name of its own (DNS rebinding), so
only names of this machine are answered there. Off loopback a password is asked for, where there is
one.
"""

import base64
import hmac
from collections.abc import Callable, Iterable, Mapping
from ipaddress import ip_address
from socket import AF_INET6
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

USER = "rota"
"""The name to give with the password."""

Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


class Guard:
    """A WSGI application in front of another one: which host, which password.

    Args:
        inner: The other one.
        local: Whether it listens on loopback alone.
        password: `None`: none is asked for.
        headers: Those of a refusal, beside its own.
    """

    def __init__(
        self,
        inner: Application,
        *,
        local: bool,
        password: str | None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.inner = inner
        self._local = local
        self._password = password
        self._headers = {} if headers is None else headers

    def __call__(self, environ: Environ, start: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request, or say what it lacks."""
        if self._local and not _named_here(environ.get("HTTP_HOST", "")):
            return self._refuse(start, "421 Misdirected Request", "Ask for localhost or 127.0.0.1.")
        if self._password is not None and not _knows(self._password, environ):
            asking = ("www-authenticate", 'Basic realm="Rota", charset="UTF-8"')
            return self._refuse(
                start, "401 Unauthorized", f"User {USER}, and the password.", asking
            )
        return self.inner(environ, start)

    def _refuse(
        self, start: Callable[..., Any], status: str, text: str, *more: tuple[str, str]
    ) -> list[bytes]:
        body = text.encode()
        own = {"content-type": "text/plain; charset=utf-8", "content-length": str(len(body))}
        start(status, [*{**self._headers, **own}.items(), *more])
        return [body]


class Server(ThreadingMixIn, WSGIServer):
    """Answers each request in a thread of its own."""

    daemon_threads = True

    def __init__(self, host: str, port: int, app: Application) -> None:
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
