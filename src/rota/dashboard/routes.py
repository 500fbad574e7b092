"""The table of routes: which path is which page, and which right it needs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rota.dashboard.access import Right
from rota.dashboard.message import Moved, Page, Request, Response

if TYPE_CHECKING:
    from rota.app.app import Rota
    from rota.dashboard.looks import Looks


class Call(NamedTuple):
    """What a page gets: the app, the shared look at its database, the request, and the parts of its path."""

    app: "Rota"
    looks: "Looks"
    request: Request
    parts: Mapping[str, str]


Answer = Page | Moved | Response


@dataclass(frozen=True, slots=True)
class Route:
    """One path and method.

    Attributes:
        path: With `{name}` for a part that may be anything.
        right: What a request needs for it, beside `read`. The core checks it before the page is called.
        live: Whether it has a part that changes while it is open.
    """

    method: str
    path: str
    right: Right
    page: Callable[[Call], Answer]
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
    routes: Sequence[Route], method: str, path: str
) -> tuple[Route, dict[str, str]] | frozenset[str]:
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
