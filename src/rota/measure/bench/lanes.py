"""Lanes to spread jobs over: a lane is one queue and one priority."""

from itertools import islice, product

from rota.measure.bench import tasks
from rota.terminal.progress import Progress

WIDE = 32
"""Queues at most; further lanes have further priorities."""


class Lanes:
    """`count` lanes, in up to 32 queues."""

    def __init__(self, count: int) -> None:
        queues = min(count, WIDE)
        priorities = -(-count // queues)
        self.queues = tuple(f"{tasks.QUEUE}_{n}" for n in range(queues))
        self.pairs = list(islice(product(range(priorities), self.queues), count))

    def fill(self, url: str, jobs: int, progress: Progress) -> None:
        """Enqueue `jobs` jobs in all, as evenly as possible."""
        app = tasks.open_app(url)
        progress.begin(f"enqueue: {len(self.pairs):,} lanes", jobs)
        each, more = divmod(jobs, len(self.pairs))
        done = 0
        for number, (priority, queue) in enumerate(self.pairs):
            count = each + (number < more)
            lane = tasks.noop.using(queue=queue, priority=priority)
            lane.enqueue_many((n,) for n in range(count))
            done += count
            progress.at(done)
        app.close()
