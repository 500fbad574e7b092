"""The dashboard under WSGI: Flask and all servers that speak it. Open pages ask every 2 seconds."""

from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qsl

from rota.dashboard.access import Access, Accessing, granted
from rota.dashboard.core import Answers
from rota.dashboard.message import Request, Response

LARGEST = 65_536
"""Bytes that a form may have."""

Environ = dict[str, Any]


class Wsgi:
    """A WSGI application. `access` gets the environ."""

    def __init__(self, core: Answers, access: Access | Accessing) -> None:
        self._core = core
        self._access = access

    def __call__(self, environ: Environ, start: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request."""
        access = self._access
        found = access if isinstance(access, Access) else granted(access(environ))
        answer = self.answer(environ, found)
        start(
            f"{answer.status.value} {answer.status.phrase}",
            [*answer.headers.items(), ("content-length", str(len(answer.body)))],
        )
        return [answer.body]

    def answer(self, environ: Environ, access: Access) -> Response:
        """The response to what an environ asks for."""
        headers = {
            name.removeprefix("HTTP_").replace("_", "-").lower(): str(value)
            for name, value in environ.items()
            if name.startswith("HTTP_")
        }
        # WSGI has bytes of UTF-8 as if they were Latin-1.
        path = environ.get("PATH_INFO", "").encode("latin-1", "replace").decode("utf-8", "replace")
        root = environ.get("SCRIPT_NAME", "")
        if root and not path:
            return self._core.with_slash(root)
        request = Request(
            method=environ["REQUEST_METHOD"],
            path=path or "/",
            access=access,
            query=dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)),
            headers=headers,
            form=_form(environ),
        )
        return self._core.answer(request)


def _form(environ: Environ) -> dict[str, str]:
    length = environ.get("CONTENT_LENGTH") or "0"
    size = int(length) if length.isascii() and length.isdigit() else 0
    if environ["REQUEST_METHOD"] in {"GET", "HEAD"} or not 0 < size <= LARGEST:
        return {}
    return dict(parse_qsl(environ["wsgi.input"].read(size).decode("utf-8", "replace")))
