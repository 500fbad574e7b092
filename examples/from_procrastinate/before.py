"""A shop's background work with Procrastinate. `after.py` does the same with Rota.

DATABASE_URL names a PostgreSQL database. The worker is in this process here, so that there is one
thing to start.
"""

import asyncio
import os

from procrastinate import App, JobContext, PsycopgConnector, RetryStrategy
from procrastinate.exceptions import AlreadyEnqueued

app = App(connector=PsycopgConnector(conninfo=os.environ.get("DATABASE_URL", "postgresql:///shop")))


@app.task(
    name="shop.send_receipt",
    queue="mail",
    pass_context=True,
    retry=RetryStrategy(max_attempts=4, wait=0, retry_exceptions={ConnectionError}),
)
async def send_receipt(context: JobContext, order: int) -> None:
    """Send a receipt; the mail server is away at first."""
    attempt = context.job.attempts + 1
    if attempt == 1:
        message = "the mail server is away"
        raise ConnectionError(message)
    print(f"receipt for order {order}, attempt {attempt}")


@app.task(name="shop.book")
async def book(customer: int, cents: int) -> None:
    """Book a payment; those of a customer one after another."""
    print(f"customer {customer}: {cents}")


@app.task(name="shop.reindex", queueing_lock="reindex")
async def reindex() -> None:
    """Bring the search up to date; one that waits is enough."""
    print("reindexed")


@app.periodic(cron="0 9 * * *")
@app.task(name="shop.digest")
async def digest(timestamp: int) -> None:
    """The morning's mail."""
    print(f"digest of {timestamp}")


async def main() -> None:
    """Enqueue it all, and run it."""
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        await send_receipt.defer_async(order=42)
        await send_receipt.configure(schedule_in={"seconds": 1}).defer_async(order=43)
        for cents in (10, 20, 30):
            await book.configure(lock="customer:7").defer_async(customer=7, cents=cents)
        await reindex.defer_async()
        try:
            await reindex.defer_async()
        except AlreadyEnqueued:
            print("a reindex waits already")
        while [
            job
            for job in await app.job_manager.list_jobs_async()
            if job.status in {"todo", "doing"}
        ]:
            await app.run_worker_async(wait=False, concurrency=4, install_signal_handlers=False)
            await asyncio.sleep(0.2)


if __name__ == "__main__":
    asyncio.run(main())
