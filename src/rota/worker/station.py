"""A station: what a worker does with one database, from start to end."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from rota.config import WorkerConfig
from rota.errors import RotaError
from rota.worker.apps import Apps
from rota.worker.executors.process import Nursery
from rota.worker.health import Health, Phase
from rota.worker.homes import Homes
from rota.worker.parts import Parts
from rota.worker.slots import Share


class Station:
    """Its parts, put together anew for each start.

    Args:
        apps: The apps of the database.
        config: How the worker behaves; names the queues.
        homes: What the handlers of each app are given.
        share: The slots that its jobs may have.
        drain: Called in a thread when it has no job left.
        refuse: Called in any thread when the database refuses for good.
        nursery: The child processes of the worker.
    """

    def __init__(
        self,
        apps: Apps,
        config: WorkerConfig,
        homes: Homes,
        share: Share,
        *,
        drain: Callable[[], None],
        refuse: Callable[[RotaError], None],
        nursery: Nursery,
    ) -> None:
        self.apps = apps
        self._config = config
        self._homes = homes
        self._share = share
        self._drain = drain
        self._refuse = refuse
        self._nursery = nursery
        self._parts: Parts | None = None

    async def begin(self, stop: asyncio.Event) -> bool:
        """Begin to claim; false: the worker was told to stop before that.

        Raises:
            StoreError: The database cannot be reached or refuses.
            ConfigError: A lifespan of child processes or a handler needs a resource that is not
                there.
            LifespanFailed: A lifespan of child processes could not be entered.
        """
        parts = Parts(
            self.apps,
            self._config,
            self._homes,
            self._drain,
            self._refuse,
            share=self._share,
            nursery=self._nursery,
        )
        if not await unless(stop, parts.prepare()):
            return False
        await parts.start()
        self._parts = parts
        return True

    async def end(self, abort: asyncio.Event) -> None:
        """Stop claiming, let finish (until `abort`), write the rest, close the session."""
        if self._parts is not None:
            await self._parts.stop(abort)

    def health(self, phase: Phase) -> Health:
        """How it is, in the phase in which the worker is."""
        return Health(phase) if self._parts is None else self._parts.health(phase)


async def unless(stop: asyncio.Event, first: Coroutine[Any, Any, object]) -> bool:
    """Do what has to be done first, or give it up when the worker is told to stop; whether it is done.

    Raises:
        Exception: What it raises.
    """
    doing, stopping = asyncio.ensure_future(first), asyncio.ensure_future(stop.wait())
    try:
        # What does not wait at all is done, even if the worker is to stop.
        await asyncio.wait((doing, stopping), return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            doing.result()
        return doing.done()
    finally:
        doing.cancel()
        stopping.cancel()
        await asyncio.wait((doing,))
