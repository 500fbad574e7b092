"""A worker in a process of its own, and what it can tell about itself."""

import multiprocessing
import os
import resource
import sys
import threading
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

from rota.bench import tasks
from rota.config import WorkerConfig
from rota.events import SettlementsWritten, WorkerStarted


@dataclass
class Told:
    """A worker's own measurements; memory in bytes, times in seconds since the epoch."""

    began: float = 0.0
    ended: float = 0.0
    written: int = 0
    idle_memory: int = 0
    peak_memory: int = 0
    started: dict[int, float] = field(default_factory=dict)


class WorkerProcess:
    """Runs a worker until it has settled `jobs` jobs, or until it is stopped."""

    def __init__(self, url: str, *, jobs: int, keep: bool, concurrency: int = 32) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_main, args=(theirs, url, jobs, keep, concurrency), daemon=True
        )
        self._process.start()
        theirs.close()
        self._told: Told | None = None
        self._settled = 0
        self._pipe.recv()

    def progress(self) -> int | None:
        """How many jobs have been settled by now; `None` once the worker has ended."""
        while self._told is None and self._pipe.poll(0.1):
            message = self._pipe.recv()
            if isinstance(message, Told):
                self._told = message
            else:
                self._settled = message
        return None if self._told else self._settled

    def wait(self) -> Told:
        """What the worker measured, once it has ended."""
        while self._told is None:
            self.progress()
        self._process.join()
        return self._told

    def stop(self) -> Told:
        """Stop the worker; what it measured."""
        self._pipe.send("stop")
        return self.wait()


def _main(pipe: Connection, url: str, jobs: int, keep: object, concurrency: int) -> None:
    from rota.worker import Worker

    app, _ = tasks.make(url, keep=bool(keep))
    config = WorkerConfig(queues=(tasks.QUEUE,), concurrency=concurrency)
    worker = Worker(app, config)
    told = Told()

    def began(_: WorkerStarted) -> None:
        told.idle_memory = memory()
        told.began = time.time()
        pipe.send("started")

    def written(event: SettlementsWritten) -> None:
        told.ended = time.time()
        told.written += event.count
        told.peak_memory = max(told.peak_memory, memory())
        if time.monotonic() - reported[0] > 0.1:  # noqa: PLR2004 - ten times a second
            reported[0] = time.monotonic()
            pipe.send(told.written)
        if told.written >= jobs:
            worker.stop()

    reported = [0.0]
    app.events.subscribe(WorkerStarted, began)
    app.events.subscribe(SettlementsWritten, written)

    def listen() -> None:
        try:
            pipe.recv()
        except EOFError:
            os._exit(1)
        worker.stop()

    threading.Thread(target=listen, daemon=True).start()
    worker.run()
    told.started = tasks.started
    pipe.send(told)


def memory() -> int:
    """Bytes of memory that this process occupies now (elsewhere than on Linux: at its peak)."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - read often
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
