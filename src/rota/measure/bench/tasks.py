"""The tasks of the benchmarks' workers: handlers that do nothing, or note when they began.

The app is a module's global, because a child process (`executor="process"`) imports its task.
"""

import time
from collections.abc import Sequence

from rota.app.app import Rota
from rota.app.context import Context
from rota.app.results import Results
from rota.config import DAY

QUEUE = "bench"

app = Rota("sqlite:///rota-bench-unused.db")
"""`open_app` sets the database; this URL is never opened."""

starts: list[tuple[float, float]] = []
"""The key of each `stamp`, and when its handler began, in seconds since the epoch."""


@app.task(name="bench.noop", queue=QUEUE)
async def noop(n: int) -> None:
    """Do nothing."""
    del n


@app.task(name="bench.carry", queue=QUEUE)
async def carry(load: str) -> None:
    """Do nothing, with args of some size."""
    del load


@app.task(name="bench.carry_in_thread", queue=QUEUE)
def carry_in_thread(load: str) -> None:
    """Do nothing, in a thread."""
    del load


@app.task(name="bench.carry_in_process", queue=QUEUE, executor="process")
def carry_in_process(load: str) -> None:
    """Do nothing, in a child process."""
    del load


def take(seconds: float) -> None:
    """Take so long, without a processor."""
    if seconds:
        time.sleep(seconds)


@app.task(name="bench.take_on_dask", queue=QUEUE, executor="dask")
def take_on_dask(seconds: float) -> None:
    """Take so long, on a cluster."""
    take(seconds)


@app.task(name="bench.take_on_ray", queue=QUEUE, executor="ray")
def take_on_ray(seconds: float) -> None:
    """Take so long, on a cluster."""
    take(seconds)


def take_each(bundle: Sequence[float]) -> None:
    """The same calls in a bare task of the engine's."""
    for seconds in bundle:
        take(seconds)


@app.task(name="bench.stamp", queue=QUEUE)
async def stamp(key: float) -> None:
    """Note when this job began; the caller chooses the key, such as the time of its call."""
    starts.append((key, time.time()))


@app.task(name="bench.keyed", queue=QUEUE)
async def keyed(key: int) -> None:
    """Do nothing, for a key that may have a limit."""
    del key


@app.task(name="bench.give", queue=QUEUE)
async def give(n: int) -> int:
    """Return the number."""
    return n


@app.task(name="bench.store", queue=QUEUE, store_result=True)
async def store(n: int) -> int:
    """Return the number, to be stored."""
    return n


@app.task(name="bench.gather", queue=QUEUE)
async def gather(numbers: Results[int]) -> None:
    """Read the results of a map."""
    count = 0
    async for _ in numbers:
        count += 1
    if count != len(numbers):
        raise Failed


class Failed(Exception):
    """What `flaky` raises."""


RETRY_DELAY = 1.0
"""Seconds between two attempts of `flaky`."""


@app.task(
    name="bench.flaky", queue=QUEUE, max_attempts=100, retry=lambda _attempt, _error: RETRY_DELAY
)
async def flaky(ctx: Context, number: int, failures: int) -> None:
    """Fail `failures` times; each attempt is noted as `number + attempt / 1000`."""
    starts.append((number + ctx.attempt / 1000, time.time()))
    if ctx.attempt <= failures:
        raise Failed


def open_app(url: str, *, keep: bool = True) -> Rota:
    """The app on a database; `keep` retains completed jobs."""
    app.use(url)
    for task in app.tasks.values():
        task.keeps.retain(DAY if keep else 0)
    starts.clear()
    return app
