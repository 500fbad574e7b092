"""Celery on Redis: processes, a large prefetch, no results, and nothing that workers tell each other."""

import os
from collections.abc import Iterable, Sequence
from importlib.metadata import version

from celery import Celery

from benchmarks.peers.drivers.driver import Handle, Job
from benchmarks.peers.drivers.serve import URL, WORKERS, serve

PREFETCH = 64
"""Messages that a process of a worker may have beforehand."""

app = Celery(
    "peers", broker=URL.replace("unix://", "redis+socket://").replace("?db=", "?virtual_host=")
)
app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=PREFETCH,
    broker_connection_retry_on_startup=True,
    worker_hijack_root_logger=False,
)
handlers: list[Handle] = []


def run(number: int, enqueued: float) -> None:
    """Write down that the job ran."""
    handlers[0](number, enqueued)


record = app.task(name="record")(run)


class CeleryDriver:
    """`delay`, and the same over one producer for many; there is no call in bulk."""

    chunk = 100

    def setup(self) -> str:
        """Nothing: Redis has no tables."""
        return version("celery")

    def one_by_one(self, jobs: Iterable[Job]) -> None:
        """`delay`."""
        for number, moment in jobs:
            record.delay(number, moment)

    def in_bulk(self, chunks: Iterable[Sequence[Job]]) -> None:
        """`apply_async` with a producer that is kept."""
        with app.producer_pool.acquire(block=True) as producer:
            for chunk in chunks:
                for job in chunk:
                    record.apply_async(job, producer=producer)

    def work(self, handle: Handle) -> None:
        """One worker: of two processes where it is alone, of one beside others."""
        handlers.append(handle)
        processes = 2 if WORKERS == 1 else 1
        app.worker_main([
            "worker", f"--concurrency={processes}", "--pool=prefork", "--without-gossip",
            "--without-mingle", "--without-heartbeat", "--loglevel=ERROR", f"--hostname=w{os.getpid()}@peers",
        ])  # fmt: skip


if __name__ == "__main__":
    serve(CeleryDriver())
