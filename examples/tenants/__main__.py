"""A large tenant orders 200 exports, a small one 5; the small one then takes a larger plan."""

import json
import tempfile
from collections import Counter

from rota import Worker, WorkerConfig
from rota.events import JobSettled, JobStarted

from .jobs import FREE, PRO, order_exports, rota

started: list[str] = []
running: Counter[str] = Counter()
most: Counter[str] = Counter()


@rota.on(JobStarted)
def starts(event: JobStarted) -> None:
    """Note whose export starts, and how many of that tenant's run."""
    tenant = json.loads(event.job.args)["tenant"]
    started.append(tenant)
    running[tenant] += 1
    most[tenant] = max(most[tenant], running[tenant])


@rota.on(JobSettled)
def ends(event: JobSettled) -> None:
    """Note whose export has ended."""
    running[json.loads(event.job.args)["tenant"]] -= 1


def work() -> None:
    """Run what there is."""
    started.clear()
    most.clear()
    Worker(rota, WorkerConfig(queues=("exports",), concurrency=10, drain=True)).run()


def main() -> None:
    """Let the tenants meet, twice."""
    with tempfile.TemporaryDirectory() as folder, rota:
        rota.use(f"sqlite:///{folder}/rota.db")
        order_exports("large", PRO, range(200))
        order_exports("small", FREE, range(5))
        work()
        last = max(place for place, tenant in enumerate(started) if tenant == "small")
        print(f"the small tenant's 5 exports started among the first {-(-last // 25) * 25} of 205")
        print(f"at once: {most['large']} of the large tenant, {most['small']} of the small one")

        order_exports("small", PRO, range(5, 25))
        work()
        print(f"with a larger plan: {most['small']} of the small one")


if __name__ == "__main__":
    main()
