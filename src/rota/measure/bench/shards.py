"""Do several databases drain, in sum, as fast as one of them on the same cores?"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack

from rota.app.app import Rota
from rota.config import WorkerConfig
from rota.events import SettlementsWritten, WorkerStarted
from rota.measure.bench.scratch import Scratch
from rota.measure.reports.report import Bars, Figures, Result
from rota.terminal.progress import Progress
from rota.worker import Worker

CHUNK = 20_000
"""Jobs in one `enqueue_many`."""

POLL = 0.05
"""Seconds between two looks of a worker that drains: its end is not measured."""

NOTES = (
    (
        "One worker, in this process, runs async handlers that do nothing; the same number of jobs in sum lies on each "
        "number of databases of one server, in turns. rate: jobs / seconds from the first session to the commit of the "
        "last settlement. processor: seconds of this process in that time."
    ),
)


def shards(
    scratch: Scratch, *, jobs: int, counts: Sequence[int], turns: int, progress: Progress
) -> Result:
    """Drain so many jobs on each of these numbers of databases, in turns."""
    runs: dict[str, Figures] = {}
    rates: dict[str, float] = {}
    for turn in range(turns):
        # In both orders: what the machine does meanwhile falls on all alike.
        for count in counts if turn % 2 == 0 else reversed(counts):
            name = f"{count} database{'s' if count > 1 else ''}"
            rate, runs[f"{name}, turn {turn + 1}"] = _run(scratch, count, jobs, name, progress)
            rates[name] = max(rate, rates.get(name, 0))
    figures: Figures = {"jobs": jobs, "runs": runs}
    chart = Bars(
        "Jobs from several databases by one worker", "jobs per second, best turn", {"rate": rates}
    )
    return Result(figures=figures, series={}, charts=(chart,), notes=NOTES)


def _run(
    scratch: Scratch, count: int, jobs: int, name: str, progress: Progress
) -> tuple[float, Figures]:
    with ExitStack() as stack:
        urls = {f"shard-{number}": stack.enter_context(scratch.fresh()) for number in range(count)}
        app = stack.enter_context(Rota.shards(urls))

        @app.task(name="nothing", retention=0)
        async def nothing(number: int) -> None:
            del number

        for shard in app:
            with app.on(shard):
                for start in range(0, jobs // count, CHUNK):
                    end = min(start + CHUNK, jobs // count)
                    nothing.enqueue_many((number,) for number in range(start, end))
        watch = _Watch(progress)
        app.on(WorkerStarted)(watch.begin)
        app.on(SettlementsWritten)(watch.written)
        progress.begin(f"drain: {name}", jobs)
        asyncio.run(Worker(app, WorkerConfig(drain=True, poll=POLL)).arun(signals=False))
    seconds, processor = watch.ended[0] - watch.began[0], watch.ended[1] - watch.began[1]
    rate = watch.count / seconds
    return rate, {
        "rate": round(rate),
        "processor": round(processor, 2),
        "jobs": watch.count,
    }


class _Watch:
    """Notes when a worker began and when it last wrote: by the clock, and its processor time."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.count = 0
        self.began = self.ended = (0.0, 0.0)

    def begin(self, _: WorkerStarted) -> None:
        """The worker has a session, perhaps not its first one."""
        if self.began == (0.0, 0.0):
            self.began = time.perf_counter(), time.process_time()

    def written(self, event: SettlementsWritten) -> None:
        """A batch was committed."""
        self.ended = time.perf_counter(), time.process_time()
        self.count += event.count
        self._progress.at(self.count)
