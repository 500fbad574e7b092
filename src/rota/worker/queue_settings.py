"""What holds for the worker's queues, kept up to date while it works."""

from collections.abc import Callable, Collection, Mapping

from rota.app.app import Rota
from rota.model.queue_settings import QueueSettings


class Settings:
    """Passes on what is set for queues; lives on the event loop.

    `share` is called with the concurrency of those queues of the worker that have one, at the
    beginning and whenever it changes.
    """

    def __init__(
        self, app: Rota, queues: Collection[str], share: Callable[[Mapping[str, int]], None]
    ) -> None:
        self._app = app
        self._queues = frozenset(queues)
        self._share = share
        self._concurrency: dict[str, int] = {}

    def learn(self, stored: Mapping[str, QueueSettings]) -> None:
        """Take what the database says of queues from now on."""
        self._app.queues.learn(stored)
        every = self._app.queues.concurrency()
        mine = {queue: most for queue, most in every.items() if queue in self._queues}
        if mine != self._concurrency:
            self._concurrency = mine
            self._share(mine)
