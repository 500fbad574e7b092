"""The dashboard under ASGI: Starlette, FastAPI and every server that speaks it.

Pages are made in a thread, so that the event loop never waits for the database. A page that is open
gets its live part anew whenever that has changed, over one connection (server-sent events).
"""

import asyncio
import inspect
from collections.abc import AsyncIterator
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as Asked
from starlette.responses import Response as Sent
from starlette.responses import StreamingResponse

from rota.dashboard.access import Access, Accessing, granted
from rota.dashboard.core import Answers
from rota.dashboard.message import Request, Response
from rota.dashboard.rendering import PART
from rota.dashboard.safety import HEADERS

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

EVERY = 1.0
"""Seconds between two looks at whether a live part has changed."""

LONGEST = 30.0
"""Seconds that a stream lasts; then the browser returns. A server that stops waits no longer."""

LARGEST = 65_536
"""Bytes that a form may have."""


class Asgi:
    """An ASGI application."""

    def __init__(self, core: Answers, access: Access | Accessing) -> None:
        self._core = core
        self._access = access

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        asked = Asked(scope, receive)
        if (root := scope.get("root_path", "")) and scope["path"] == root:
            await _sent(self._core.with_slash(root))(scope, receive, send)
            return
        request = await self._request(asked)
        if request.query.get(PART) == "stream" and self._core.live(request):
            answer: Sent = await self._stream(request, asked)
        else:
            answer = _sent(await run_in_threadpool(self._core.answer, request))
        await answer(scope, receive, send)

    async def _request(self, asked: Asked) -> Request:
        root, path = asked.scope.get("root_path", ""), asked.scope["path"]
        if root and path.startswith(f"{root}/"):
            path = path[len(root) :]
        body = await _body(asked) if asked.method not in {"GET", "HEAD"} else b""
        return Request(
            method=asked.method,
            path=path or "/",
            access=await self._granted(asked),
            query=dict(asked.query_params),
            headers={name.lower(): value for name, value in asked.headers.items()},
            form=dict(parse_qsl(body.decode("utf-8", "replace"))),
            streams=True,
        )

    async def _granted(self, asked: Asked) -> Access:
        access = self._access
        if isinstance(access, Access):
            return access
        found = (
            access(asked)
            if inspect.iscoroutinefunction(access)
            else await run_in_threadpool(access, asked)
        )
        return granted(await found if inspect.isawaitable(found) else found)

    async def _stream(self, request: Request, asked: Asked) -> Sent:
        """The live part now, and again whenever it has changed; a refusal, where the page is refused."""
        request = replace(request, query={**request.query, PART: "live"})
        first = await run_in_threadpool(self._core.answer, request)
        if first.status.value >= HTTPStatus.BAD_REQUEST:
            return _sent(first)
        headers = {**HEADERS, "x-accel-buffering": "no"}
        news = self._news(request, first, asked)
        return StreamingResponse(news, headers=headers, media_type="text/event-stream")

    async def _news(self, request: Request, shown: Response, asked: Asked) -> AsyncIterator[bytes]:
        # A browser that comes again may have missed something in between.
        yield b"retry: 1000\n" + _event(shown.body)
        for _ in range(round(LONGEST / EVERY)):
            await asyncio.sleep(EVERY)
            if await asked.is_disconnected():
                return
            # Whether it may still see this is asked each time, as for any request.
            request = replace(request, access=await self._granted(asked))
            now = await run_in_threadpool(self._core.answer, request)
            if now.status.value >= HTTPStatus.BAD_REQUEST:
                return
            if now.body != shown.body:
                shown = now
                yield _event(now.body)


def _sent(response: Response) -> Sent:
    return Sent(response.body, response.status, dict(response.headers))


def _event(body: bytes) -> bytes:
    lines = body.replace(b"\r", b"").split(b"\n")
    return b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"


async def _body(asked: Asked) -> bytes:
    """The body of a request, as far as a form can go."""
    found = bytearray()
    async for piece in asked.stream():
        found += piece
        if len(found) > LARGEST:
            return b""
    return bytes(found)
