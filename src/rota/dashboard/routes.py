"""The table of routes: which path is which page, and which right it needs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from rota.dashboard.access import Right
from rota.dashboard.message import Moved, Page, Request, Response
from rota.errors import ConfigError
from rota.model.job import possible

if TYPE_CHECKING:
    from rota.app.app import Rota
    from rota.dashboard.looks import Looks


class Call(NamedTuple):
    """What a page gets: the app, the shared look at its database, the request, its path's parts."""

    app: "Rota"
    looks: "Looks"
    request: Request
    parts: Mapping[str, str]


Answer = Page | Moved | Response


class Asked(Protocol):
    """What each page gets, of one database or of several: the request, and the parts of its path."""

    @property
    def request(self) -> Request:
        """What was asked for."""
        ...

    @property
    def parts(self) -> Mapping[str, str]:
        """The parts of its path, by their names."""
        ...


C = TypeVar("C")
"""What the pages of a table get."""


@dataclass(frozen=True, slots=True)
class Route(Generic[C]):
    """One path and method.

    Attributes:
        path: With `{name}` for a part that may be anything.
        right: What a request needs for it, beside `read`. The core checks it before the page is
            called.
        live: Whether it has a part that changes while it is open.
    """

    method: str
    path: str
    right: Right
    page: Callable[[C], Answer]
    live: bool = False

    def parts(self, path: str) -> dict[str, str] | None:
        """The parts of a path that this route is for; `None` where it is not."""
        own, given = self.path.split("/"), path.split("/")
        if len(own) != len(given):
            return None
        found = {}
        for pattern, part in zip(own, given, strict=True):
            if pattern.startswith("{") and part:
                found[pattern[1:-1]] = part
            elif pattern != part:
                return None
        return found


def find(
    routes: Sequence[Route[C]], method: str, path: str
) -> tuple[Route[C], dict[str, str]] | frozenset[str]:
    """The route and the parts of the path; else the methods that there are for that path."""
    methods = set()
    for route in routes:
        parts = route.parts(path)
        if parts is None:
            continue
        if method == route.method or (method == "HEAD" and route.method == "GET"):
            return route, parts
        methods.add(route.method)
    return frozenset(methods)


def fields(query: Mapping[str, str], *names: str) -> dict[str, str]:
    """The fields of a form as they were given; empty where they were not."""
    return {name: query.get(name, "").strip() for name in names}


def before(call: Call, what: str) -> int | None:
    """Below which id a page of jobs or flows begins: `what` they are.

    Raises:
        ConfigError: It is no id.
    """
    text = call.request.query.get("before", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and possible(int(text))):
        message = f"before: must be the id of a {what}, not {text[:30]!r}"
        raise ConfigError(message)
    return int(text)
