"""Work that computes, or may crash, in child processes of the worker.

The child imports the module that has the task, so the task stands at the top level of a module and
the script part behind `if __name__ == "__main__"`.
"""

import logging
import os
import tempfile

from rota import Rota, WorkerConfig
from rota.worker import Worker

rota = Rota()


@rota.task(executor="process", store_result=True)
def biggest_prime(below: int) -> int:
    """The biggest prime below a number, the slow way."""
    candidate = below - 1
    while any(candidate % divisor == 0 for divisor in range(2, candidate)):
        candidate -= 1
    return candidate


@rota.task(executor="process", max_attempts=1)
def crash() -> None:
    """End the whole process, as a defective C library might."""
    os.abort()


def main() -> None:
    """Run both; the crash costs one attempt of one job and nothing else."""
    logging.basicConfig(level=logging.ERROR)
    with tempfile.TemporaryDirectory() as folder, rota:
        rota.use(f"sqlite:///{folder}/rota.db")
        prime, crashed = biggest_prime.enqueue(10_000), crash.enqueue()
        Worker(rota, WorkerConfig(drain=True, processes=2)).run()
        record = crashed.record()
        print(f"crash: {record.state}, {record.errors[-1].message}")
        print(f"biggest prime below 10000: {prime.result()}")


if __name__ == "__main__":
    main()
