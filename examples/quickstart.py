"""The shortest way from a function to a job that has run.

Everything happens in one process here, so that there is one thing to start. In an application the
worker is a process of its own: `rota worker MODULE:APP`.
"""

import tempfile

from rota import Rota, WorkerConfig
from rota.worker import Worker

rota = Rota()


@rota.task(store_result=True)
async def greet(name: str) -> str:
    """Say hello."""
    return f"Hello, {name}!"


def main() -> None:
    """Enqueue a job, run it, look at what came of it."""
    with tempfile.TemporaryDirectory() as folder, rota:
        # An application says this once: Rota("postgresql:///shop"), or ROTA_DATABASE_URL.
        rota.use(f"sqlite:///{folder}/rota.db")

        job = greet.enqueue("Ada")
        print(f"stored: {job.status}")

        Worker(rota, WorkerConfig(drain=True)).run()  # drain: stop when nothing is left to do
        print(f"ran: {job.status}")
        print(job.result())


if __name__ == "__main__":
    main()
