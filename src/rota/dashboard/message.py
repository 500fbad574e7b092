"""A request and its response, as values: what skins and the core exchange."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from rota.dashboard.access import Access


@dataclass(frozen=True, slots=True)
class Among:
    """Which database of several a request is about: the name of a shard, empty for all of them."""

    name: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """What a browser or a program asks for.

    Attributes:
        path: Below the mount; begins with a slash.
        query: Of names that come twice, the last.
        headers: Their names in small letters.
        form: The fields of a body, like `query`.
        access: What it may do.
        streams: Whether the skin can send news as they come.
        among: Where there are several databases, which one it is about.
    """

    method: str
    path: str
    access: Access
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    streams: bool = False
    among: Among | None = None

    @property
    def changes(self) -> bool:
        """Whether its method may change something."""
        return self.method not in {"GET", "HEAD"}

    @property
    def json(self) -> bool:
        """Whether it asks for JSON: names it, and does not prefer HTML."""
        accept = self.headers.get("accept", "")
        return "application/json" in accept and "text/html" not in accept


@dataclass(frozen=True, slots=True)
class Response:
    """What is sent back."""

    status: HTTPStatus
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Page:
    """What a page shows: plain data, and the template that shows it to people.

    Attributes:
        data: What `Accept: application/json` gets; ids of jobs are texts in it.
        extra: What the template needs beside it, such as the fields of a form.
    """

    template: str
    title: str
    data: Mapping[str, Any]
    extra: Mapping[str, Any] = field(default_factory=dict)
    status: HTTPStatus = HTTPStatus.OK


@dataclass(frozen=True, slots=True)
class Moved:
    """See another page, after something was done there.

    Attributes:
        to: A path below the mount.
        data: What a program gets instead.
    """

    to: str
    query: Mapping[str, str]
    data: Mapping[str, Any]


class NotThere(Exception):
    """There is no such page, or what it was about is gone; the message says what."""


class Refused(Exception):
    """The request may see the page and not what it asks of it; the message says what that needs."""
