"""A shop's background work with RQ. `after.py` does the same with Rota.

REDIS_URL names the server. The worker is in this process here, so that there is one thing to start.
"""

import os
from datetime import timedelta

from redis import Redis
from rq import Callback, Queue, Retry, SimpleWorker, get_current_job
from rq.job import Job

PRICES = {41: 20, 42: 30}


def send_receipt(order: int) -> None:
    """Send a receipt; the mail server is away at first."""
    if order not in PRICES:
        message = f"no order {order}"
        raise LookupError(message)
    job = get_current_job()
    attempt = 5 - (job.retries_left or 0 if job else 0)
    if attempt == 1:
        message = "the mail server is away"
        raise ConnectionError(message)
    print(f"receipt for order {order}, attempt {attempt}")


def pack(order: int) -> int:
    """Pack an order."""
    print(f"order {order} is packed")
    return PRICES[order]


def ship(order: int) -> None:
    """Ship an order that is packed."""
    print(f"order {order} is on its way")


def remind(order: int) -> None:
    """Ask whether all is well."""
    print(f"reminder for order {order}")


def give_up(job: Job, *_: object) -> None:
    """Say what nobody will try again."""
    print(f"given up: {job.func_name} {job.args}")


def main() -> None:
    """Enqueue it all, and run it."""
    connection = Redis.from_url(os.environ.get("REDIS_URL", "redis://localhost"))
    queue, mail = Queue("default", connection=connection), Queue("mail", connection=connection)
    retry = Retry(max=4)

    mail.enqueue("before.send_receipt", 42, retry=retry)
    packed = queue.enqueue("before.pack", 42, result_ttl=86400)
    queue.enqueue("before.ship", 42, depends_on=packed)
    reminder = queue.enqueue_in(timedelta(seconds=0.2), "before.remind", 42)
    mail.enqueue("before.send_receipt", 99, on_failure=Callback("before.give_up"))

    worker = SimpleWorker([mail, queue], connection=connection)
    while not reminder.is_finished:
        worker.work(burst=True, with_scheduler=True, logging_level="CRITICAL")
    print(f"result: {packed.return_value()}")


if __name__ == "__main__":
    main()
