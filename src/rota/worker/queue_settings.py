"""What holds for the worker's queues, kept up to date while it works."""

from collections.abc import Collection, Mapping

from rota.model.patterns import meaning
from rota.model.queue_settings import QueueSettings
from rota.worker.apps import Apps
from rota.worker.switchboard import Switchboard


class Settings:
    """Keeps the apps' settings up to date, and the claimer's; lives on the event loop."""

    def __init__(self, apps: Apps, queues: Collection[str], switchboard: Switchboard) -> None:
        self._apps = apps
        self._queues = tuple(queues)
        self._switchboard = switchboard
        self._concurrency: dict[str, int] = {}

    def learn(self, stored: Mapping[str, QueueSettings]) -> None:
        """Heed what the database says of queues from now on."""
        self._apps.learn(stored)
        every = self._apps.concurrency()
        mine = {queue: most for queue, most in every.items() if meaning(self._queues, queue)}
        if mine != self._concurrency:
            self._concurrency = mine
            self._switchboard.share(mine)
