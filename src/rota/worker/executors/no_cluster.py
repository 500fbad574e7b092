"""What a worker has in the place of a cluster that it was not given."""

import asyncio
import logging
from typing import NoReturn

from rota.worker.call import Call, Stop
from rota.worker.executors.seam import TimeLimit

logger = logging.getLogger("rota")


class NoCluster:
    """Runs nothing: the jobs of these tasks are for other workers."""

    capacity = 0

    def __init__(self, tasks: frozenset[str]) -> None:
        self.lacking = tasks

    async def prepare(self) -> None:
        """Say what will not run here."""
        if self.lacking:
            names = ", ".join(sorted(self.lacking))
            logger.info("without a cluster, this worker leaves the jobs of %s to others", names)

    async def submit(self, call: Call, limit: TimeLimit) -> NoReturn:
        """Pass on the job of a task that was not known when the worker began.

        Raises:
            CancelledError: Always.
        """
        del limit
        call.stop = Stop.UNABLE
        raise asyncio.CancelledError

    def cancel(self, call: Call, reason: Stop) -> None:
        """Nothing runs."""

    def close(self, *, hurry: bool = False) -> None:
        """There is nothing to end."""
