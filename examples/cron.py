"""Cron: an entry in code, another one added while the worker runs, and when entries are due."""

import asyncio
import itertools
import logging
import tempfile
from datetime import datetime

from rota import Rota, WorkerConfig
from rota.cron.times import due_times
from rota.worker import Worker

rota = Rota()
seen: list[datetime] = []


@rota.cron("* * * * * *", due="at")
@rota.task
async def tick(at: datetime) -> None:
    """Run every second, and get told which."""
    seen.append(at)


@rota.task(store_result=True)
async def report(tenant: int) -> str:
    """Write a report for a tenant."""
    return f"report for tenant {tenant}"


async def main() -> None:
    """Run a worker until the entries have made their jobs."""
    logging.basicConfig(level=logging.ERROR)
    with tempfile.TemporaryDirectory() as folder, rota:
        rota.use(f"sqlite:///{folder}/rota.db")
        worker = Worker(rota, WorkerConfig())
        running = asyncio.create_task(worker.arun(signals=False))
        while not seen[1:]:  # noqa: ASYNC110 - a program would have better things to do
            await asyncio.sleep(0.05)
        apart = (seen[1] - seen[0]).total_seconds()
        print(f"two ticks, {apart:.0f} second apart")

        await rota.cron.aadd(
            "report of 7", "@daily", report, args={"tenant": 7}, timezone="Asia/Tokyo"
        )
        job = await rota.cron.arun("report of 7")  # not waiting for midnight in Tokyo
        print(await job.aresult(timeout=10))
        worker.stop()
        await running

    # The clock in Rome is put forward in the night of 29 March 2026, from 2:00 to 3:00.
    start = datetime.fromisoformat("2026-03-28T00:00+01:00")
    for due in itertools.islice(due_times("30 2 * * *", "Europe/Rome", start), 3):
        print("nightly:", due)


if __name__ == "__main__":
    asyncio.run(main())
