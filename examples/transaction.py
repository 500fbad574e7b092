"""A job that exists if and only if the order it is about exists: plain sqlite3."""

import sqlite3
import tempfile
from contextlib import closing

from rota import Rota, WorkerConfig
from rota.worker import Worker

rota = Rota()


@rota.task
def send_receipt(order: int) -> None:
    """Pretend to send a receipt."""
    print(f"receipt for order {order}")


def main() -> None:
    """Enqueue in a transaction that is rolled back, then in one that is committed."""
    with tempfile.TemporaryDirectory() as folder, rota:
        # Rota's tables lie in the application's own file.
        rota.use(f"sqlite:///{folder}/shop.db")
        rota.ready()
        with closing(sqlite3.connect(f"{folder}/shop.db")) as shop:
            shop.execute("CREATE TABLE orders (id integer PRIMARY KEY)")

            shop.execute("INSERT INTO orders VALUES (41)")
            send_receipt.using(conn=shop).enqueue(41)
            shop.rollback()
            show("rolled back", shop)

            shop.execute("INSERT INTO orders VALUES (42)")
            send_receipt.using(conn=shop).enqueue(42)
            shop.commit()
            show("committed", shop)

        Worker(rota, WorkerConfig(drain=True)).run()


def show(when: str, shop: sqlite3.Connection) -> None:
    """Count what there is."""
    [(orders,)] = shop.execute("SELECT count(*) FROM orders")
    [(jobs,)] = shop.execute("SELECT count(*) FROM rota_job")
    print(f"{when}: {orders} orders, {jobs} jobs")


if __name__ == "__main__":
    main()
