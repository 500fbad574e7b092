"""A shop's background work with Rota. `before.py` does the same with RQ."""

import tempfile

from rota import Backoff, Context, Rota, WorkerConfig
from rota.events import JobDiscarded
from rota.worker import Worker

rota = Rota()

PRICES = {41: 20, 42: 30}


@rota.task(queue="mail", retry=Backoff(first=0.1, factor=1, attempts=5))
def send_receipt(ctx: Context, order: int) -> None:
    """Send a receipt; the mail server is away at first."""
    if order not in PRICES:
        message = f"no order {order}"
        raise LookupError(message)
    if ctx.attempt == 1:
        message = "the mail server is away"
        raise ConnectionError(message)
    print(f"receipt for order {order}, attempt {ctx.attempt}")


@rota.task(store_result=True)
def pack(ctx: Context, order: int) -> int:
    """Pack an order. That it is packed and that it is to be shipped are one commit."""
    print(f"order {order} is packed")
    with ctx.transaction() as tx:
        ship.using(conn=tx).enqueue(order)
        tx.result(PRICES[order])
    return PRICES[order]


@rota.task
def ship(order: int) -> None:
    """Ship an order that is packed."""
    print(f"order {order} is on its way")


@rota.task
def remind(order: int) -> None:
    """Ask whether all is well."""
    print(f"reminder for order {order}")


@rota.on(JobDiscarded)
def give_up(event: JobDiscarded) -> None:
    """Say what nobody will try again."""
    print(f"given up: {event.job.task}, job {event.job.id}")


def main() -> None:
    """Enqueue it all, and run it."""
    with tempfile.TemporaryDirectory() as folder, rota:
        rota.use(f"sqlite:///{folder}/rota.db")
        send_receipt.enqueue(42)
        packed = pack.enqueue(42)
        remind.using(delay=0.2).enqueue(42)
        send_receipt.using(max_attempts=1).enqueue(99)
        Worker(rota, WorkerConfig(drain=True)).run()
        print(f"result: {packed.record().result}")


if __name__ == "__main__":
    main()
