"""PgQueuer: large batches, lists of jobs, uvloop as its command has it."""

import asyncio
import signal
import struct
from collections.abc import Iterable, Sequence
from datetime import timedelta
from importlib.metadata import version

import asyncpg  # type: ignore[import-untyped]  # it has none
import uvloop
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job as PgQueuerJob
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

from benchmarks.peers.drivers.driver import Handle, Job
from benchmarks.peers.drivers.serve import URL, serve

BATCH = 1000
"""The best of 10 (its default, with half the rate), 100, 500 and 1,000."""

PAYLOAD = struct.Struct("<qd")


class PgQueuerDriver:
    """`enqueue` of one and of lists, a queue manager."""

    chunk = 1000

    def setup(self) -> str:
        """Install the schema."""
        uvloop.run(self._setup())
        return version("pgqueuer")

    def one_by_one(self, jobs: Iterable[Job]) -> None:
        """`enqueue` of one job."""
        uvloop.run(self._one_by_one(jobs))

    def in_bulk(self, chunks: Iterable[Sequence[Job]]) -> None:
        """`enqueue` of lists."""
        uvloop.run(self._in_bulk(chunks))

    def work(self, handle: Handle) -> None:
        """One queue manager."""
        uvloop.run(self._work(handle))

    async def _setup(self) -> None:
        await (await _queries()).install()

    async def _one_by_one(self, jobs: Iterable[Job]) -> None:
        queries = await _queries()
        for number, moment in jobs:
            await queries.enqueue("record", PAYLOAD.pack(number, moment))

    async def _in_bulk(self, chunks: Iterable[Sequence[Job]]) -> None:
        queries = await _queries()
        for chunk in chunks:
            count = len(chunk)
            payloads = [PAYLOAD.pack(number, moment) for number, moment in chunk]
            await queries.enqueue(["record"] * count, payloads, [0] * count)

    async def _work(self, handle: Handle) -> None:
        manager = QueueManager(await _queries())

        async def record(job: PgQueuerJob) -> None:
            handle(*PAYLOAD.unpack(job.payload))

        manager.entrypoint("record")(record)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, manager.shutdown.set)
        await manager.run(batch_size=BATCH, dequeue_timeout=timedelta(seconds=30))


async def _queries() -> Queries:
    return Queries(AsyncpgDriver(await asyncpg.connect(URL)))


if __name__ == "__main__":
    serve(PgQueuerDriver())
