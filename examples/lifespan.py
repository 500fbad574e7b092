"""What handlers share is opened once for a worker, given to them, and closed in the right order."""

import sqlite3
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator

from rota import PROVIDED, Context, Rota, WorkerConfig
from rota.worker import Worker

rota = Rota()


class Shop:
    """A database that several threads may use."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.connection = sqlite3.connect(":memory:", check_same_thread=False)
        self.connection.execute("CREATE TABLE sold (item text)")


class Mail:
    """A client that sends what it is given."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop

    async def send(self, item: str) -> None:
        """Send a receipt."""
        print(f"receipt for {item}")


@rota.lifespan
def shop() -> Iterator[Shop]:
    """A `def` lives in a thread of its own."""
    print("open shop")
    shop = Shop()
    yield shop
    print(
        "close shop, which sold",
        *(item for (item,) in shop.connection.execute("SELECT item FROM sold")),
    )
    shop.connection.close()


@rota.lifespan
async def mail(shop: Shop = PROVIDED) -> AsyncIterator[Mail]:
    """An `async def` lives on the worker's loop; this one needs what the first one yields."""
    print("open mail")
    yield Mail(shop)
    print("close mail")


@rota.task
def sell(item: str, shop: Shop = PROVIDED) -> None:
    """Sell something; only the item is stored with the job."""
    with shop.lock, shop.connection:
        shop.connection.execute("INSERT INTO sold VALUES (?)", (item,))
    receipt.enqueue(item)


@rota.task
async def receipt(ctx: Context, item: str) -> None:
    """Ask the context instead."""
    await ctx.resource(Mail).send(item)


def main() -> None:
    """Run two jobs, and those that they enqueue."""
    with tempfile.TemporaryDirectory() as folder, rota:
        rota.use(f"sqlite:///{folder}/rota.db")
        job = sell.enqueue("a lamp")
        Worker(rota, WorkerConfig(drain=True)).run()
        print(f"stored: {job.record().args}")


if __name__ == "__main__":
    main()
