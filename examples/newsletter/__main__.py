"""Send an issue to a thousand subscribers, three of whom have moved."""

import logging
import tempfile

from rota import Worker, WorkerConfig
from rota.events import JobRetried

from .jobs import publish, rota


def main() -> None:
    """Publish an issue, and say what became of it."""
    logging.basicConfig(level=logging.CRITICAL)  # mails that fail are part of it
    with tempfile.TemporaryDirectory() as folder, rota:
        rota.use(f"sqlite:///{folder}/rota.db")
        with rota.transaction() as tx:
            tx.execute("CREATE TABLE subscriber (address text PRIMARY KEY)")
            for number, domain in enumerate(["example.org"] * 997 + ["moved.example"] * 3):
                tx.execute("INSERT INTO subscriber VALUES (?)", [f"reader{number}@{domain}"])
        publish.enqueue("What is new in November")
        with rota.events.collect(JobRetried) as retried:
            Worker(rota, WorkerConfig(drain=True)).run()
        print(f"tried again: {len(retried)}")
        with rota.transaction() as tx:
            [(left,)] = tx.execute("SELECT count(*) FROM subscriber").fetchall()
        print(f"subscribers: {left}, after those who have moved")


if __name__ == "__main__":
    main()
