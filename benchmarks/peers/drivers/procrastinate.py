"""Procrastinate: the fastest of several concurrencies, finished jobs kept as by default."""

import asyncio
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Any

import procrastinate

from benchmarks.peers.drivers.driver import Handle, Job
from benchmarks.peers.drivers.serve import URL, serve

CONCURRENCY = 4
"""The best of 1, 4, 10 and 20."""


class ProcrastinateDriver:
    """`defer` and `batch_defer` through the synchronous connector, an async worker."""

    chunk = 1000

    def setup(self) -> str:
        """Apply the schema."""
        with self._producer().open() as app:
            app.schema_manager.apply_schema()
        return version("procrastinate")

    def one_by_one(self, jobs: Iterable[Job]) -> None:
        """`defer`."""
        with self._producer().open() as app:
            deferrer = app.configure_task("record", allow_unknown=True)
            for number, moment in jobs:
                deferrer.defer(number=number, enqueued=moment)

    def in_bulk(self, chunks: Iterable[Sequence[Job]]) -> None:
        """`batch_defer`."""
        with self._producer().open() as app:
            deferrer = app.configure_task("record", allow_unknown=True)
            for chunk in chunks:
                deferrer.batch_defer(
                    *(dict[str, Any](number=number, enqueued=moment) for number, moment in chunk)
                )

    def work(self, handle: Handle) -> None:
        """One worker, with a connection for each job that runs."""
        asyncio.run(self._work(handle))

    async def _work(self, handle: Handle) -> None:
        connector = procrastinate.PsycopgConnector(
            conninfo=URL, min_size=CONCURRENCY, max_size=CONCURRENCY + 4
        )
        app = procrastinate.App(connector=connector)

        async def record(number: int, enqueued: float) -> None:
            handle(number, enqueued)

        app.task(name="record")(record)
        async with app.open_async():
            await app.run_worker_async(concurrency=CONCURRENCY, wait=True)

    def _producer(self) -> procrastinate.App:
        connector = procrastinate.SyncPsycopgConnector(conninfo=URL, min_size=1, max_size=1)
        return procrastinate.App(connector=connector)


if __name__ == "__main__":
    serve(ProcrastinateDriver())
