"""Limits and fair shares: a tenant with many jobs, and a tenant with few.

python examples/tenants.py
"""

import asyncio
import tempfile
from collections import Counter

from rota import Limit, Rota, Worker, WorkerConfig

folder = tempfile.TemporaryDirectory()
rota = Rota(f"sqlite:///{folder.name}/rota.db")

started: list[str] = []
running: Counter[str] = Counter()
most: Counter[str] = Counter()


@rota.task(fair="tenant:{tenant}")
async def report(tenant: str, number: int) -> None:
    """Note whose job has started; the queue is shared between the tenants."""
    del number
    started.append(tenant)


@rota.task(limit=Limit("api:{tenant}", running=2))
async def call_api(tenant: str) -> None:
    """At most two calls for a tenant at once."""
    running[tenant] += 1
    most[tenant] = max(most[tenant], running[tenant])
    await asyncio.sleep(0.01)
    running[tenant] -= 1


def main() -> None:
    """Enqueue, run everything, and look back."""
    report.enqueue_many(("big", number) for number in range(200))
    report.enqueue_many(("small", number) for number in range(5))
    Worker(rota, WorkerConfig(concurrency=4, drain=True)).run()
    last = max(number for number, tenant in enumerate(started) if tenant == "small")
    print(f"the small tenant's 5 jobs were among the first {last + 1 - (last + 1) % -20} of 205")

    call_api.enqueue_many([("acme",)] * 10 + [("other",)] * 10)
    Worker(rota, WorkerConfig(concurrency=10, drain=True)).run()
    print(f"at most at once: {most['acme']} for acme, {most['other']} for other")


if __name__ == "__main__":
    with folder:
        main()
