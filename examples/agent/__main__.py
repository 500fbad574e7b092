"""A conversation that is interrupted by the end of its worker, and by a person who takes time."""

import asyncio
import tempfile

from rota import JobHandle, Rota, State, Worker, WorkerConfig

from .jobs import rota, support
from .model import thoughts


async def until_it_waits(app: Rota, job: JobHandle[str]) -> None:
    """Run a worker until the job waits for a person, and end it."""
    worker = Worker(app)
    running = asyncio.create_task(worker.arun(signals=False))
    async for change in job.changes():
        if change.record.state is State.SCHEDULED:
            break
    worker.stop()
    await running


def main() -> None:
    """Ask, let a person agree while no worker runs, and go on in another worker."""
    with tempfile.TemporaryDirectory() as folder, rota:
        rota.use(f"sqlite:///{folder}/rota.db")
        with rota.transaction() as tx:
            tx.execute("CREATE TABLE refund (order_id integer, cents integer)")

        job = support.enqueue("My lamp arrived broken. The order is 42.")
        asyncio.run(until_it_waits(rota, job))
        for step in job.steps():
            print(f"{step.name}: {step.state}")

        print("no worker runs, and Bo agrees")
        job.signal("decision", {"yes": True, "by": "Bo"}, id="click 1")
        job.signal(
            "decision", {"yes": True, "by": "Bo"}, id="click 1"
        )  # a double click counts once

        Worker(rota, WorkerConfig(drain=True)).run()
        print(f"answer: {job.result()}")
        with rota.transaction() as tx:
            print("refunds:", tx.execute("SELECT * FROM refund").fetchall())
        print(f"the model was asked {len(thoughts)} times")


if __name__ == "__main__":
    main()
