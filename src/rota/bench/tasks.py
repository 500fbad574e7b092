"""The app of the benchmarks' workers: handlers that do nothing, or note when they began."""

import time
from typing import Any

from rota.app import Rota
from rota.task import Task

QUEUE = "bench"

started: dict[int, float] = {}
"""When the handler of `stamp` began, by its argument, in seconds since the epoch."""


def make(url: str, *, keep: bool = True) -> tuple[Rota, Task[..., Any, Any]]:
    """An app on a database with the task that is measured; `keep` retains completed jobs."""
    app = Rota(url, retention=86400 if keep else 0)

    @app.task(name="bench.noop", queue=QUEUE)
    async def noop(n: int) -> None:
        del n

    @app.task(name="bench.stamp", queue=QUEUE)
    async def stamp(n: int) -> None:
        started[n] = time.time()

    del stamp
    return app, app.find_task(noop.name)
