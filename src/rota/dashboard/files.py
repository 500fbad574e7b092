"""The dashboard's style sheet, scripts and what they came from, as they are sent."""

from functools import cache
from hashlib import sha256
from http import HTTPStatus
from importlib import resources

from rota.dashboard.message import NotThere, Response
from rota.dashboard.routes import Asked

KINDS = {
    "rota.css": "text/css; charset=utf-8",
    "theme.js": "text/javascript; charset=utf-8",
    "keys.js": "text/javascript; charset=utf-8",
    "live.js": "text/javascript; charset=utf-8",
    "select.js": "text/javascript; charset=utf-8",
    "htmx.min.js": "text/javascript; charset=utf-8",
    "charts.css": "text/css; charset=utf-8",
    "charts.js": "text/javascript; charset=utf-8",
    "uplot.min.css": "text/css; charset=utf-8",
    "uplot.min.js": "text/javascript; charset=utf-8",
    "idiomorph.min.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""The files that are sent, and nothing else is."""

FOR_EVER = "private, max-age=31536000, immutable"
"""Each link has the file's version in it."""


def file(call: Asked) -> Response:
    """One file."""
    name = call.parts["name"]
    if name not in KINDS:
        message = "There is no such file."
        raise NotThere(message)
    kept = {"cache-control": FOR_EVER} if call.request.query.get("v") == version(name) else {}
    return Response(HTTPStatus.OK, _read(name), {"content-type": KINDS[name], **kept})


def version(name: str) -> str:
    """What tells this version of a file from others."""
    return sha256(_read(name)).hexdigest()[:12]


@cache
def _read(name: str) -> bytes:
    return (resources.files("rota.dashboard") / "static" / name).read_bytes()
