"""Rota's own store, through its public API: tasks, `Worker`, and the command `rota`.

A worker process is one `Worker` with its defaults: it claims in batches, and settles in batches.
Like the other designs it keeps nothing of a job that is completed.
"""

import asyncio
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import cached_property
from typing import Any

from rota import Rota, State, Task, Worker, WorkerConfig
from rota.errors import StoreUnavailable
from rota.events import JobsClaimed, StoreLost
from rota_lab.databases import Database
from rota_lab.shift import Shift
from rota_lab.strategy import Job, Strategy


class RotaStore(Strategy):
    """A job log that is only added to, and claims in batches under leases."""

    name = "rota"
    summary = (
        "Appends jobs to a log and hands them out in batches, by moving a cursor under a lease."
        " Claims meet no dead rows, and the jobs of a worker that has died are rescued."
    )
    databases = (Database.POSTGRES, Database.SQLITE)
    defaults = {"concurrency": 32, "prefetch": 2000, "session_timeout": 15}

    shift: Shift
    """The shift whose work the handler does, while this process has a worker."""

    @cached_property
    def app(self) -> Rota:
        return Rota(self.location.url, retention=0)

    @cached_property
    def task(self) -> Task[[str], Coroutine[Any, Any, None], None]:
        # What has failed comes back at once, as with the designs that roll back.
        @self.app.task(
            name="lab.work", queue="lab", max_attempts=1000, retry=lambda _attempt, _error: 0.0
        )
        async def work(text: str) -> None:
            self.shift.work(text)

        return work

    def open(self) -> None:
        self.app.database.ready()

    def close(self) -> None:
        if "app" in vars(self):
            self.app.close()
        super().close()

    def make(self) -> None:
        self._command("migrate")

    def enqueue(self, jobs: Sequence[Job]) -> None:
        by_priority: dict[int, list[tuple[str]]] = defaultdict(list)
        for job in jobs:
            by_priority[job.priority].append((job.text,))
        for priority, texts in by_priority.items():
            # With Rota the smaller number comes first.
            task = self.task.using(priority=-priority)
            if len(texts) == 1:
                task.enqueue(*texts[0])
            else:
                task.enqueue_many(texts)

    def left(self) -> int:
        [*queues] = json.loads(self._command("queues", "list", "--json"))["queues"]
        return sum(
            count
            for queue in queues
            for state, count in queue["jobs"].items()
            if not State(state).finished
        )

    def counts(self) -> Mapping[str, Callable[[], object]]:
        return {
            # What the command asks; without the time that a program takes to start.
            "counters": self.app.admin.queues,
            "counters, by the command": self.left,
        }

    def run(self, shift: Shift) -> None:
        self.shift = shift
        config = WorkerConfig(
            queues=(self.task.options.queue,),
            concurrency=int(self.settings["concurrency"]),
            prefetch=int(self.settings["prefetch"]),
            session_timeout=self.settings["session_timeout"],
            drain=shift.drain,
        )
        worker = Worker(self.app, config)
        lost: list[Exception] = []

        def claimed(event: JobsClaimed) -> None:
            if event.count:
                shift.claimed(event.seconds)

        def gone(event: StoreLost) -> None:
            # A worker waits for its database to come back; an experiment does not.
            lost.append(event.error)
            worker.abort()

        self.app.events.subscribe(JobsClaimed, claimed)
        self.app.events.subscribe(StoreLost, gone)
        shift.at_the_end(worker.stop)
        asyncio.run(worker.arun(signals=False))
        if lost:
            raise StoreUnavailable(str(lost[0])) from lost[0]

    def _command(self, *words: str) -> str:
        """Run `rota` as a user would."""
        done = subprocess.run(
            [sys.executable, "-m", "rota", *words, "--url", self.location.url],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise StoreUnavailable(done.stderr.strip().removeprefix("Error: "))
        return done.stdout
