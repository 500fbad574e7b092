"""The executor of plain handlers: the worker's threads, which can be told to stop, not stopped."""

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from typing import Any

from rota.app.middleware import wrapped
from rota.dispatch import Events
from rota.events import JobOverdue
from rota.worker.arguments import Arguments
from rota.worker.call import Call, Stop
from rota.worker.executors.seam import Places, TimeLimit


class Threads:
    """As many threads as the worker's concurrency says; `events` are told of handlers that overstay."""

    capacity = 0
    lacking: tuple[str, ...] = ()

    def __init__(self, count: int, arguments: Arguments, events: Events, places: Places) -> None:
        self._arguments = arguments
        self._places = places
        self._events = events
        self._loop = asyncio.get_running_loop()
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="rota-handler")
        self._waiting: set[Call] = set()

    async def prepare(self) -> None:
        """There is nothing to prepare."""

    async def submit(self, call: Call, limit: TimeLimit) -> Any:
        """Call the handler in a thread, inside the middleware around those."""
        args, kwargs = self._arguments.of(call)
        function: Callable[[], Any] = functools.partial(call.task.function, *args, **kwargs)
        if call.home.around_threads:
            function = wrapped(call.home.around_threads, self._arguments.context(call), function)
        self._waiting.add(call)
        try:
            async with self._places:
                self._waiting.discard(call)
                limit.begin()
                value, error = await self._loop.run_in_executor(
                    self._pool, contained, copy_context(), function
                )
        finally:
            self._waiting.discard(call)
        if error is not None:
            raise error
        return value

    def cancel(self, call: Call, reason: Stop) -> None:
        """Leave the thread behind when the worker stops; else it goes on, and is waited for.

        A handler that waits for a place does not begin.
        """
        if reason is Stop.RELEASE or call in self._waiting:
            call.runner.cancel()
        elif reason is Stop.TIMEOUT:
            self._events.emit(JobOverdue(call.job))

    def close(self, *, hurry: bool = False) -> None:
        """End the threads that have nothing to do."""
        del hurry
        self._pool.shutdown(wait=False, cancel_futures=True)


def contained(variables: Context, call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Call with these context variables; an exception comes back as a value.

    A future cannot carry every exception: StopIteration would leave it pending for ever.
    """
    try:
        return variables.run(call), None
    except BaseException as error:  # noqa: BLE001 - raised again where the result is awaited
        return None, error
