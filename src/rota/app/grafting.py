"""Grafting: a job of a flow adds nodes to it while it runs.

What was added is stored in the transaction that completes the job, so a failed attempt leaves
nothing; and what waits for the job's node waits for these nodes, too.
"""

from typing import TYPE_CHECKING

from rota.app.enqueue import Enqueuer
from rota.app.flow_building import Builder, Group
from rota.errors import ConfigError
from rota.model.flow import Graft
from rota.model.headers import node_of
from rota.model.job import ClaimedJob

if TYPE_CHECKING:
    from rota.app.enqueuing import Enqueuing


class Grafting(Group):
    """Adds to the flow of a job that runs: `ctx.flow.add(…)`, `ctx.flow.map(…)`."""

    def __init__(self, enqueuing: "Enqueuing", job: ClaimedJob) -> None:
        node = node_of(job.headers)
        if node is None:
            message = (
                f"ctx.flow: job {job.id} ({job.task}) belongs to no flow; enqueue others by their tasks, or "
                "build a flow with rota.flow(…)"
            )
            raise ConfigError(message)
        # Each job adds once, so its id makes the names its own.
        home = single(enqueuing)
        super().__init__(Builder(home, f"@{job.id}"), "")
        self._node = node
        self._queues = home.queues

    def graft(self) -> Graft | None:
        """What was added, if anything was."""
        orders = self._builder.orders(self._queues)
        return Graft(self._node, orders) if orders else None


def single(enqueuing: "Enqueuing") -> Enqueuer:
    """What stores the jobs of an app that has one database.

    Raises:
        ConfigError: It has several.
    """
    if not isinstance(enqueuing, Enqueuer):
        message = "ctx.flow: all jobs of a flow are in one database, and this app has several; use the app of a shard"
        raise ConfigError(message)
    return enqueuing
