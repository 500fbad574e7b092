"""A worker of the swarm: `python -m tests.swarm.worker`, as its environment says.

Its tables are so small that the rings turn all the time.
"""

import logging
import os
import sys

from rota import StoreError, WorkerConfig
from rota.events import SessionLost
from rota.store.postgres import rings
from rota.worker import Worker
from tests.swarm.tasks import QUEUES, ledger, rota

UNREACHABLE = 3
"""The exit status where the database could not be reached at the start."""

SIZES = {
    "LOG_SIZE": 256 * 1024,
    "CURSOR_SIZE": 64 * 1024,
    "LEASE_SIZE": 32 * 1024,
    "TALLY_SIZE": 64 * 1024,
    "MARK_SIZE": 32 * 1024,
    "LIMIT_SIZE": 32 * 1024,
    "FINISHED_SIZE": 256 * 1024,
}


def main() -> None:
    """Run until SIGTERM."""
    logging.basicConfig(level="INFO", format="%(asctime)s %(levelname)-7s %(message)s")
    for name, size in SIZES.items():
        setattr(rings, name, size)
    rota.on(SessionLost)(lambda _: ledger.say("lost"))
    config = WorkerConfig(
        queues=QUEUES,
        concurrency=24,
        processes=1,
        session_timeout=float(os.environ["SWARM_TIMEOUT"]),
        grace=3.0,
    )
    try:
        Worker(rota, config).run()
    except StoreError as error:
        logging.getLogger("rota").warning("cannot begin: %s", error)
        sys.exit(UNREACHABLE)


if __name__ == "__main__":
    main()
