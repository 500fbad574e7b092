"""The workers of a benchmark, each in a process of its own."""

import asyncio
import logging
import os
import resource
import sys
import time
from dataclasses import dataclass

from rota.config import WorkerConfig
from rota.events import JobsClaimed, SettlementsWritten, WorkerStarted
from rota.measure.bench import tasks
from rota.measure.bench.figures import Step
from rota.measure.bench.instruments import NOTHING, instrument
from rota.measure.processes import Group, Line, emptied


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings of all workers."""

    url: str
    keep: bool = True
    queues: tuple[str, ...] = (tasks.QUEUE,)
    concurrency: int = 32
    instrument: str = NOTHING
    # Engines and the addresses of their clusters.
    clusters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """What a worker has seen since it was asked last. Moments are in seconds since the epoch.

    Attributes:
        worker: Which worker it is: its process id.
        began: When the worker had its session.
        cpu: Seconds of processor time since the process started.
        memory: Bytes that the process occupies now.
        idle_memory: Bytes that it occupied before its first claim.
        settlements: When how many jobs were settled.
        claims: When a claim gave how many jobs (at least one), after how many seconds.
        starts: The args of jobs, and when their handlers began.
    """

    worker: int
    began: float
    cpu: float
    memory: int
    idle_memory: int
    settlements: list[Step]
    claims: list[tuple[float, int, float]]
    starts: list[tuple[float, float]]

    @property
    def settled(self) -> int:
        """How many jobs were settled."""
        return sum(count for _, count in self.settlements)


class Crew(Group[Told]):
    """Worker processes; each has begun when it has a session."""

    def __init__(self, plan: Plan, workers: int = 1) -> None:
        super().__init__(_work, plan, workers)


def workers_of(count: int) -> str:
    """So many workers, in words."""
    return f"{count} worker{'s' if count > 1 else ''}"


def _work(line: Line[Told], plan: Plan) -> None:
    from rota.worker import Worker

    app = tasks.open_app(plan.url, keep=plan.keep)
    instrument(app, plan.instrument)
    # Failures on purpose are not logged.
    logging.getLogger("rota").addFilter(lambda record: tasks.flaky.name not in record.getMessage())
    app.database.ready()
    given = dict(plan.clusters)
    config = WorkerConfig(
        queues=plan.queues,
        concurrency=plan.concurrency,
        dask=given.get("dask"),
        ray=given.get("ray"),
    )
    worker = Worker(app, config)
    settlements: list[Step] = []
    claims: list[tuple[float, int, float]] = []
    began, idle = 0.0, 0

    def take() -> Told:
        return Told(
            os.getpid(), began, time.process_time(), memory(), idle,
            emptied(settlements), emptied(claims), emptied(tasks.starts),
        )  # fmt: skip

    def start(_: WorkerStarted) -> None:
        nonlocal began, idle
        began, idle = time.time(), memory()
        line.begin(take, worker.stop)

    def written(event: SettlementsWritten) -> None:
        settlements.append((time.time(), event.count))

    def claimed(event: JobsClaimed) -> None:
        if event.count:
            claims.append((time.time(), event.count, event.seconds))

    app.events.subscribe(WorkerStarted, start)
    app.events.subscribe(SettlementsWritten, written)
    app.events.subscribe(JobsClaimed, claimed)
    line.ready()
    asyncio.run(worker.arun(signals=False))
    line.end(take())


def memory() -> int:
    """Bytes of memory that this process occupies now; not on Linux: at its peak."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - read often
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
