"""Producers of a benchmark, each in a process of its own: jobs arrive steadily, or all they can."""

import threading
import time
from dataclasses import dataclass

from rota.measure.bench import tasks
from rota.measure.processes import Group, Line, emptied


@dataclass(frozen=True, slots=True)
class Load:
    """How jobs arrive.

    Attributes:
        rate: Jobs per second, evenly spaced; `None` for as many as one can.
        batch: Jobs per call: 1 is `enqueue`, more is `enqueue_many`.
        jobs: End after so many; `None` for never.
    """

    url: str
    rate: float | None
    batch: int = 1
    jobs: int | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """What a producer has done since it was asked last.

    Attributes:
        began: When it began, in seconds since the epoch.
        jobs: How many were enqueued.
        due: How many its rate demanded.
        seconds: How long each call took.
        ended: When the last of its `jobs` was enqueued; 0 while it goes on.
    """

    began: float
    jobs: int
    due: float
    seconds: list[float]
    ended: float


class Producers(Group[Sent]):
    """Some producers with the same load."""

    def __init__(self, load: Load, count: int = 1) -> None:
        super().__init__(_produce, load, count)


def _produce(line: Line[Sent], load: Load) -> None:
    app = tasks.open_app(load.url)
    app.database.ready()
    stopping = threading.Event()
    calls: list[float] = []
    sent, reported, ended = 0, 0.0, 0.0

    def take() -> Sent:
        nonlocal reported
        now = ended or time.time()
        due = (load.rate or 0.0) * (now - max(reported, began))
        reported = now
        seconds = emptied(calls)
        return Sent(began, len(seconds) * load.batch, due, seconds, ended)

    line.ready()
    began = time.time()
    line.begin(take, stopping.set)
    due = time.monotonic()
    while not stopping.is_set() and (load.jobs is None or sent < load.jobs):
        called = time.time()
        if load.batch == 1:
            tasks.stamp.enqueue(called)
        else:
            tasks.stamp.enqueue_many([(called,)] * load.batch)
        calls.append(time.time() - called)
        sent += load.batch
        if load.rate is not None:
            due += load.batch / load.rate
            # One that has fallen behind does not pause: it tries to catch up.
            if (pause := due - time.monotonic()) > 0:
                stopping.wait(pause)
    if not stopping.is_set():
        ended = time.time()
        stopping.wait()
    app.close()
    line.end(take())
