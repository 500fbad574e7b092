"""Huey on SQLite: one thread, no results, SQLite's own durability."""

import logging
from collections.abc import Iterable, Sequence
from importlib.metadata import version

from huey import SqliteHuey

from benchmarks.peers.drivers.driver import Handle, Job
from benchmarks.peers.drivers.serve import URL, serve

huey = SqliteHuey("peers", filename=URL.partition("///")[2], results=False)
handlers: list[Handle] = []


def run(number: int, enqueued: float) -> None:
    """Write down that the job ran."""
    handlers[0](number, enqueued)


record = huey.task(name="record")(run)


class HueyDriver:
    """A call of the task; there is no call in bulk."""

    chunk = 100

    def setup(self) -> str:
        """Nothing: the tables were made when the file was opened."""
        return version("huey")

    def one_by_one(self, jobs: Iterable[Job]) -> None:
        """A call enqueues."""
        for number, moment in jobs:
            record(number, moment)

    def in_bulk(self, chunks: Iterable[Sequence[Job]]) -> None:
        """The same, again and again."""
        for chunk in chunks:
            self.one_by_one(chunk)

    def work(self, handle: Handle) -> None:
        """A consumer of one thread."""
        handlers.append(handle)
        logging.disable(logging.CRITICAL)
        huey.create_consumer(workers=1, worker_type="thread", periodic=False).run()


if __name__ == "__main__":
    serve(HueyDriver())
