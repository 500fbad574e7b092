"""The executor of async handlers: the worker's event loop."""

import asyncio
from typing import Any

from rota.worker.arguments import Arguments
from rota.worker.call import Call, Stop
from rota.worker.ending import too_long
from rota.worker.executors.seam import Places, TimeLimit


class Loop:
    """Awaits handlers in the tasks of their runners, which can be cancelled."""

    capacity = 0
    lacking: tuple[str, ...] = ()

    def __init__(self, arguments: Arguments, places: Places) -> None:
        self._arguments = arguments
        self._places = places

    async def prepare(self) -> None:
        """There is nothing to prepare."""

    async def submit(self, call: Call, limit: TimeLimit) -> Any:
        """Await the handler.

        Raises:
            TimeoutError: Its time is up.
        """
        args, kwargs = self._arguments.of(call)
        timeout = asyncio.timeout(limit.seconds)
        try:
            async with self._places, timeout:
                return await call.task.function(*args, **kwargs)
        except TimeoutError as error:
            if timeout.expired():
                raise too_long(call.job) from error
            raise

    def cancel(self, call: Call, reason: Stop) -> None:
        """Cancel what the handler waits for."""
        del reason
        call.runner.cancel()

    def close(self, *, hurry: bool = False) -> None:
        """There is nothing to end."""
