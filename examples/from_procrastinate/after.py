"""A shop's background work with Rota. `before.py` does the same with Procrastinate."""

import tempfile
from datetime import datetime

from rota import Backoff, Context, JobExists, Limit, Rota, Unique, WorkerConfig
from rota.worker import Worker

rota = Rota()


@rota.task(name="shop.send_receipt", queue="mail", retry=Backoff(first=0.05, factor=1, attempts=5))
async def send_receipt(ctx: Context, order: int) -> None:
    """Send a receipt; the mail server is away at first."""
    if ctx.attempt == 1:
        message = "the mail server is away"
        raise ConnectionError(message)
    print(f"receipt for order {order}, attempt {ctx.attempt}")


@rota.task(name="shop.book", limit=Limit("customer:{customer}", running=1))
async def book(customer: int, cents: int) -> None:
    """Book a payment; those of a customer one after another."""
    print(f"customer {customer}: {cents}")


@rota.task(name="shop.reindex", unique=Unique(on_conflict="raise", while_=("waiting",)))
async def reindex() -> None:
    """Bring the search up to date; one that waits is enough."""
    print("reindexed")


@rota.cron("0 9 * * *", due="due")
@rota.task(name="shop.digest")
async def digest(due: datetime) -> None:
    """The morning's mail."""
    print(f"digest of {due}")


def main() -> None:
    """Enqueue it all, and run it."""
    with tempfile.TemporaryDirectory() as folder, rota:
        rota.use(f"sqlite:///{folder}/rota.db")
        send_receipt.enqueue(order=42)
        send_receipt.using(delay=1).enqueue(order=43)
        book.enqueue_many((7, cents) for cents in (10, 20, 30))
        reindex.enqueue()
        try:
            reindex.enqueue()
        except JobExists:
            print("a reindex waits already")
        Worker(rota, WorkerConfig(drain=True)).run()


if __name__ == "__main__":
    main()
