"""How fast does a relay send into Redis Streams?"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from rota.app.app import Rota
from rota.config import WorkerConfig
from rota.events import SettlementsWritten, WorkerStarted
from rota.measure.bench.scratch import Scratch
from rota.measure.reports.report import Bars, Figures, Result
from rota.measure.servers.redis import RedisServer
from rota.relay import RedisStream
from rota.terminal.progress import Progress
from rota.worker import Worker

CHUNK = 20_000
"""Messages in one `enqueue_many`."""

NOTES = (
    (
        "One worker, in this process, sends to a Redis server of the benchmark's own on the same machine, "
        "without persistence. rate: messages / seconds from the worker's session to the commit of the last "
        "batch. processor: seconds of this process in that time. in_order: whether the stream has each "
        "message once, and those of each key in their order."
    ),
)


def relay(
    scratch: Scratch, *, jobs: int, keys: int, batches: Sequence[int], progress: Progress
) -> Result:
    """Send so many messages, in batches of each size, each on a database of its own."""
    runs: dict[str, Figures] = {}
    rates: dict[str, float] = {}
    with RedisServer.start() as server:
        for batch in batches:
            with scratch.fresh() as url:
                name = f"batch of {batch}"
                rates[name], runs[name] = _run(url, server.url, (jobs, keys, batch), progress)
    figures: Figures = {"jobs": jobs, "keys": keys, "runs": runs}
    chart = Bars("Messages into Redis Streams", "messages per second", {"rate": rates})
    return Result(figures=figures, series={}, charts=(chart,), notes=NOTES)


def _run(
    url: str, redis_url: str, size: tuple[int, int, int], progress: Progress
) -> tuple[float, Figures]:
    jobs, keys, batch = size
    stream = f"bench.{batch}"
    with closing(Rota(url)) as app:
        sent = app.relay("bench", to=RedisStream(redis_url, stream=stream), batch=batch)
        progress.begin(f"enqueue: batch of {batch}", jobs)
        for start in range(0, jobs, CHUNK):
            end = min(start + CHUNK, jobs)
            sent.enqueue_many((str(n % keys), "Counted", {"n": n}) for n in range(start, end))
            progress.at(end)
        watch = _Watch(progress)
        app.events.subscribe(WorkerStarted, watch.begin)
        app.events.subscribe(SettlementsWritten, watch.written)
        progress.begin(f"send: batch of {batch}", jobs)
        asyncio.run(Worker(app, WorkerConfig(drain=True)).arun(signals=False))
    seconds, processor = watch.ended[0] - watch.began[0], watch.ended[1] - watch.began[1]
    return jobs / seconds, {
        "rate": round(jobs / seconds),
        "processor": round(processor, 2),
        "in_order": _in_order(redis_url, stream, jobs, keys),
    }


class _Watch:
    """Notes when a worker began and when it last wrote: by the clock, and its processor time."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._count = 0
        self.began = self.ended = (0.0, 0.0)

    def begin(self, _: WorkerStarted) -> None:
        """The worker has its session."""
        self.began = time.perf_counter(), time.process_time()

    def written(self, event: SettlementsWritten) -> None:
        """A batch was committed."""
        self.ended = time.perf_counter(), time.process_time()
        self._count += event.count
        self._progress.at(self._count)


def _in_order(url: str, stream: str, jobs: int, keys: int) -> bool:
    """Whether all messages are there once, and those of each key in the order of their enqueue."""
    import msgspec
    import redis

    numbers: list[list[int]] = [[] for _ in range(keys)]
    with closing(redis.Redis.from_url(url)) as client:
        found: Any = client.xrange(stream)
    for _, entry in found:
        numbers[int(entry[b"aggregateid"])].append(msgspec.json.decode(entry[b"payload"])["n"])
    return numbers == [list(range(key, jobs, keys)) for key in range(keys)]
