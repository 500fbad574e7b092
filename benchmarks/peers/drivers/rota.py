"""Rota, on PostgreSQL and on SQLite: everything by default."""

from collections.abc import Iterable, Sequence
from importlib.metadata import version

from benchmarks.peers.drivers.driver import Handle, Job
from benchmarks.peers.drivers.serve import URL, serve
from rota import Rota
from rota.store.migrate import migrate
from rota.store.opening import open_store
from rota.worker import Worker

rota = Rota(URL or None)
handlers: list[Handle] = []


@rota.task
async def record(number: int, enqueued: float) -> None:
    """Write down that the job ran."""
    handlers[0](number, enqueued)


class RotaDriver:
    """`enqueue`, `enqueue_many`, a worker with its default concurrency."""

    chunk = 50_000

    def setup(self) -> str:
        """Bring the database up to date."""
        store = open_store(URL)
        migrate(store, store.connect())
        store.close()
        return version("rota")

    def one_by_one(self, jobs: Iterable[Job]) -> None:
        """`enqueue`."""
        for number, moment in jobs:
            record.enqueue(number, moment)

    def in_bulk(self, chunks: Iterable[Sequence[Job]]) -> None:
        """`enqueue_many`."""
        for chunk in chunks:
            record.enqueue_many(chunk)

    def work(self, handle: Handle) -> None:
        """One worker."""
        handlers.append(handle)
        Worker(rota).run()


if __name__ == "__main__":
    serve(RotaDriver())
