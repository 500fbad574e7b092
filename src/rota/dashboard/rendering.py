"""Pages as HTML for people and as JSON for programs."""

from datetime import UTC, datetime
from functools import cache
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from rota.dashboard.access import Right
from rota.dashboard.charts import path
from rota.dashboard.files import version
from rota.dashboard.message import Moved, Page, Request, Response
from rota.dashboard.sparks import spark
from rota.dashboard.told import NUMBERS, told
from rota.doctor.amounts import duration
from rota.terminal.output import formatted
from rota.top.figures import age, number, rate

PART = "part"
"""The parameter that asks for a page's live part alone, as `live`, or its stream, as `stream`."""

LONGEST = 20_000
"""Characters of a text that a page shows; JSON has all of it."""

NAVIGATION = (
    ("Overview", "/", Right.READ),
    ("Queues", "/queues", Right.READ),
    ("Jobs", "/jobs", Right.READ),
    ("Flows", "/flows", Right.READ),
    ("Discarded", "/discarded", Right.READ),
    ("History", "/history", Right.READ),
    ("Cron", "/cron", Right.READ),
    ("Limits", "/limits", Right.ARGS),
    ("Workers", "/workers", Right.READ),
    ("Doctor", "/doctor", Right.READ),
    ("Audit", "/audit", Right.READ),
)

KEYS = {"/queues": "q", "/jobs": "j", "/flows": "f", "/cron": "c", "/workers": "w"}
"""Pages to which a single key leads; other keys are in `static/keys.js`."""


def response(request: Request, page: Page, *, live: bool) -> Response:
    """A page as it was asked for."""
    if request.json:
        body = msgspec.json.encode(page.data, enc_hook=str)
        return Response(page.status, body, {"content-type": "application/json"})
    values = _values(request, page, live=live)
    template = _environment().get_template(page.template)
    if live and request.query.get(PART) == "live":
        text = "".join(template.blocks["live"](template.new_context(values)))
    else:
        text = template.render(values)
    return Response(
        page.status, text.encode(errors="replace"), {"content-type": "text/html; charset=utf-8"}
    )


def moved(request: Request, answer: Moved) -> Response:
    """The way to another page; a program gets what was done."""
    if request.json:
        body = msgspec.json.encode(answer.data)
        return Response(HTTPStatus.OK, body, {"content-type": "application/json"})
    location = relative(request.path, quote(answer.to))
    return Response(
        HTTPStatus.SEE_OTHER, headers={"location": f"{location}?{urlencode(answer.query)}"}
    )


def relative(here: str, to: str) -> str:
    """The link from one path to another, so that it holds wherever the dashboard is mounted."""
    up = "../" * (here.count("/") - 1)
    return (up or "./") + to.removeprefix("/")


def _values(request: Request, page: Page, *, live: bool) -> dict[str, Any]:
    def url(path: str, **query: object) -> str:
        asked = {name: str(value) for name, value in query.items() if value not in {None, ""}}
        link = relative(request.path, quote(path))
        return f"{link}?{urlencode(asked)}" if asked else link

    def again(**changes: object) -> str:
        """The same page with other parameters."""
        query: dict[str, object] = {**request.query, **changes}
        query = {
            name: query[name]
            for name in query
            if name not in {PART, "done", *NUMBERS} or name in changes
        }
        return url(request.path, **query)

    return {
        **page.data,
        **page.extra,
        "title": page.title,
        "navigation": [one for one in _pages(request) if request.access.may(one[2])],
        "keys": KEYS,
        "section": _section(request.path),
        "shard": request.among.name if request.among else "",
        "shards_nav": _shards(request),
        "url": url,
        "again": again,
        "asset": lambda name: url(f"/static/{name}", v=version(name)),
        "live": live,
        "streams": request.streams,
        "may": lambda right: request.access.may(Right(right)),
        "told": told(request.query),
        "now": datetime.now(UTC),
    }


def _pages(request: Request) -> tuple[tuple[str, str, Right], ...]:
    """The navigation: there is one page about all databases, which the shards' names lead to."""
    return () if request.among is not None and not request.among.name else NAVIGATION


def _shards(request: Request) -> list[tuple[str, str, bool]]:
    """With several databases, the way to all and to each: name, link, whether it is this one."""
    if (among := request.among) is None:
        return []
    top = "../" * (request.path.count("/") - 1 + (2 if among.name else 0)) or "./"
    # To the same page of another one, but for a page about a single thing, which another one may
    # not have.
    section = request.path if request.path in {path for _, path, _ in NAVIGATION} else "/"
    each = [
        (name, f"{top}shard/{quote(name)}{section}", name == among.name) for name in among.names
    ]
    return [("All", top, not among.name), *each]


def _section(path: str) -> str:
    """The entry of the navigation that a path belongs to."""
    first = path.split("/")[1]
    return {"queue": "/queues"}.get(first, f"/{first}")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("rota.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "rate": rate,
        "age": age,
        "duration": duration,
        "moment": _moment,
        "short": _short,
        "pretty": lambda text: _short(formatted(text)),
        "spark": spark,
        "path": path,
        "figure": _figure,
        "clock": lambda at: f"{at.astimezone(UTC):%m-%d %H:%M}",
        "ago": _ago,
    }
    return environment


def _moment(at: datetime) -> str:
    """Such as "2026-11-23 16:20:55 UTC"."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _figure(value: float) -> str:
    """A number of jobs that may have a fraction: such as "0.2", "12", "4,711"."""
    return f"{value:.2g}" if 0 < value < 10 and value != round(value) else number(round(value))  # noqa: PLR2004


def _ago(at: datetime, now: datetime) -> str:
    """Such as "12s ago", "in 3m05s"."""
    seconds = (now - at).total_seconds()
    return f"in {age(-seconds)}" if seconds < 0 else f"{age(seconds)} ago"


def _short(text: str) -> str:
    """A text without its middle, where it is too long for a page."""
    if len(text) <= LONGEST:
        return text
    left = len(text) - LONGEST
    first, last = LONGEST // 4, LONGEST - LONGEST // 4
    return f"{text[:first]}\n… {left:,} characters left out; the JSON of this page has them all …\n{text[-last:]}"
