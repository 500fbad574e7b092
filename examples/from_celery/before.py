"""A shop's background work with Celery. `after.py` does the same with Rota.

Broker, results and worker are in this process here, so that there is one thing to start.
"""

from celery import Celery, Task, chord
from celery.contrib.testing.worker import start_worker
from celery.exceptions import Reject
from celery.schedules import crontab

app = Celery("shop", broker="memory://", backend="cache+memory://")
app.conf.update(
    broker_transport_options={"polling_interval": 0.01},
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    timezone="Europe/Rome",
    # The process `celery beat` sends these.
    beat_schedule={"digest": {"task": "shop.digest", "schedule": crontab(hour=9, minute=0)}},
    task_routes={"shop.send_receipt": {"queue": "mail"}},
)

PRICES = {40: 10, 41: 20, 42: 30}


@app.task(
    name="shop.send_receipt",
    bind=True,
    autoretry_for=(ConnectionError,),
    retry_kwargs={"max_retries": 4, "countdown": 0.1},
)
def send_receipt(self: Task, order: int) -> None:
    """Send a receipt; the mail server is away at first."""
    if order not in PRICES:
        raise Reject(f"no order {order}", requeue=False)
    if self.request.retries == 0:
        message = "the mail server is away"
        raise ConnectionError(message)
    print(f"receipt for order {order}, attempt {self.request.retries + 1}")


@app.task(name="shop.remind")
def remind(order: int) -> None:
    """Ask whether all is well."""
    print(f"reminder for order {order}")


@app.task(name="shop.price")
def price(order: int) -> int:
    """The price of an order."""
    return PRICES[order]


@app.task(name="shop.total")
def total(prices: list[int]) -> int:
    """The sum of all prices."""
    return sum(prices)


@app.task(name="shop.digest", expires=3600)
def digest() -> None:
    """The morning's mail."""


def main() -> None:
    """Enqueue it all, and run it."""
    with start_worker(
        app, pool="threads", concurrency=4, perform_ping_check=False, queues="celery,mail"
    ):
        receipt = send_receipt.delay(42)
        reminder = remind.apply_async((42,), countdown=0.2)
        sum_of_all = chord(price.s(order) for order in PRICES)(total.s())
        send_receipt.delay(99)  # rejected: nothing keeps it
        print(f"total: {sum_of_all.get(timeout=10)}")
        receipt.get(timeout=10)
        reminder.get(timeout=10)


if __name__ == "__main__":
    main()
