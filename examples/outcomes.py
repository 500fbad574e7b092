"""What a handler can say besides a value (fail, snooze, discard), and what becomes of its job."""

import logging
import tempfile
from typing import Any

from rota import Backoff, Context, Discard, JobHandle, Rota, Snooze, WorkerConfig
from rota.worker import Worker

rota = Rota()
quickly = Backoff(first=0.05, factor=1, jitter=0)


@rota.task(retry=quickly)
def flaky(ctx: Context, needed: int) -> None:
    """Work at a certain attempt. The worker passes the context."""
    if ctx.attempt < needed:
        message = "not yet"
        raise ConnectionError(message)


calls = 0


@rota.task
def snoozing() -> Snooze | None:
    """Ask to be called again; no attempt is spent on that."""
    global calls  # noqa: PLW0603 - a real handler would look at the world instead
    calls += 1
    return Snooze(0.05) if calls == 1 else None


@rota.task
def hopeless() -> None:
    """Give up at once: another attempt would not help."""
    message = "no such address"
    raise Discard(message)


@rota.task(retry=quickly, max_attempts=2)
def broken() -> None:
    """Fail until there is no attempt left."""
    message = "it never works"
    raise ValueError(message)


def main() -> None:
    """Run one job of each task and say how it ended."""
    logging.basicConfig(level=logging.ERROR)
    with tempfile.TemporaryDirectory() as folder, rota:
        rota.use(f"sqlite:///{folder}/rota.db")
        jobs: list[JobHandle[Any]] = [
            flaky.enqueue(3),
            snoozing.enqueue(),
            hopeless.enqueue(),
            broken.enqueue(),
        ]
        Worker(rota, WorkerConfig(drain=True)).run()
        for job in jobs:
            record = job.record()
            name = record.task.rpartition(".")[2]
            why = f", {record.errors[-1].message}" if record.state == "discarded" else ""
            print(f"{name}: {record.state} after {record.attempt} attempts{why}")


if __name__ == "__main__":
    main()
