"""A shop's background work with Rota. `before.py` does the same with Celery."""

import tempfile
from datetime import timedelta

from rota import Backoff, Context, Discard, Rota, WorkerConfig
from rota.worker import Worker

rota = Rota()

PRICES = {40: 10, 41: 20, 42: 30}


@rota.task(name="shop.send_receipt", queue="mail", retry=Backoff(first=0.1, factor=1, attempts=5))
def send_receipt(ctx: Context, order: int) -> None:
    """Send a receipt; the mail server is away at first."""
    if order not in PRICES:
        raise Discard(f"no order {order}")
    if ctx.attempt == 1:
        message = "the mail server is away"
        raise ConnectionError(message)
    print(f"receipt for order {order}, attempt {ctx.attempt}")


@rota.task(name="shop.remind")
def remind(order: int) -> None:
    """Ask whether all is well."""
    print(f"reminder for order {order}")


@rota.task(name="shop.price")
def price(order: int) -> int:
    """The price of an order."""
    return PRICES[order]


@rota.task(name="shop.total")
def total(prices: list[int]) -> None:
    """The sum of all prices."""
    print(f"total: {sum(prices)}")


@rota.cron("0 9 * * *", timezone="Europe/Rome", missed="latest")
@rota.task(name="shop.digest")
def digest() -> None:
    """The morning's mail."""


def main() -> None:
    """Enqueue it all, and run it."""
    with tempfile.TemporaryDirectory() as folder, rota:
        rota.use(f"sqlite:///{folder}/rota.db")
        send_receipt.enqueue(42)
        remind.using(delay=timedelta(seconds=0.2)).enqueue(42)
        with rota.flow("total") as f:
            f.add(total, f.map(price, PRICES).results)
        refused = send_receipt.enqueue(99)
        Worker(rota, WorkerConfig(drain=True)).run()
        [error] = refused.record().errors
        print(f"kept: {refused.status}, {error.message}")


if __name__ == "__main__":
    main()
