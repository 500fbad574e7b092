"""What people who look at the overview cost, while it changes by itself."""

import asyncio
import time
from typing import Any

from rota.app.app import Rota
from rota.dashboard.access import Access
from rota.measure.bench.observer import Observer
from rota.measure.reports.report import Figures
from rota.terminal.progress import Progress

PURPOSE = "dashboard"
"""Ends the name of the dashboard's connections, by which their processor time is found."""


def watch(
    app: Rota, observer: Observer, viewers: int, seconds: float, progress: Progress
) -> Figures:
    """Keep so many overviews open, as browsers do by server-sent events, and count processor time.

    Returns what the server's processes use for it, where they can be seen, and this process, in
    percent of a core.
    """
    progress.begin(f"{viewers} open", seconds)
    before, used, began = observer.processor(), time.process_time(), time.monotonic()
    events = asyncio.run(_open(app, viewers, seconds))
    took = time.monotonic() - began
    after = observer.processor()
    server = None
    if before is not None and after is not None:
        server = after.get(PURPOSE, 0.0) - before.get(PURPOSE, 0.0)
    progress.at(seconds)
    return {
        "events": events,
        "server_percent": None if server is None else round(100 * server / took, 2),
        "own_percent": round(100 * (time.process_time() - used) / took, 2),
    }


async def _open(app: Rota, viewers: int, seconds: float) -> int:
    """The events that all of them got."""
    application = app.dashboard(access=Access.all())
    closed = asyncio.Event()
    seen = [asyncio.Event() for _ in range(viewers)]
    open_ones = [asyncio.create_task(_view(application, one, closed)) for one in seen]
    for one in seen:
        await one.wait()
    await asyncio.sleep(seconds)
    closed.set()
    return sum(await asyncio.gather(*open_ones))


async def _view(application: Any, seen: asyncio.Event, closed: asyncio.Event) -> int:
    """One browser: it comes again when a stream has ended. `seen` is set when it shows something."""
    events = 0
    scope = {
        "type": "http", "method": "GET", "path": "/", "query_string": b"part=stream", "root_path": "",
        "headers": [(b"host", b"localhost")],
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        await closed.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        nonlocal events
        if b"data: " in message.get("body", b""):
            events += 1
            seen.set()

    while not closed.is_set():
        await application(scope, receive, send)
    return events
