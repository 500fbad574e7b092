"""The seam between a worker and its executors: what each of them does for the handlers it runs.

The worker claims, holds the leases, decides what an end means, and settles. An executor runs
handlers and says what they returned; how much of that happens at once, in which process and on
which machine is its own affair.
"""

import asyncio
from collections.abc import Callable, Collection
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from rota.worker.call import Call, Stop

Places = AbstractAsyncContextManager[object]
"""Around handlers in the worker's own process: as many as its concurrency, beside a cluster's."""


class TimeLimit:
    """How long a call's handler may take from its begin on; `passed` is called after that."""

    __slots__ = ("_passed", "_timer", "seconds")

    def __init__(self, seconds: float | None, passed: Callable[[], None]) -> None:
        self.seconds = seconds
        self._passed = passed
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, later: float = 0.0) -> None:
        """The handler begins, at the latest after so many seconds. Called on the loop."""
        if self.seconds is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self.seconds + later, self._passed)

    def end(self) -> None:
        """The handler has ended, or is not waited for."""
        if self._timer is not None:
            self._timer.cancel()


class HandlerExecutor(Protocol):
    """Runs handlers; used on the event loop alone."""

    @property
    def capacity(self) -> int:
        """How many calls it takes beyond the worker's concurrency."""
        ...

    @property
    def lacking(self) -> Collection[str]:
        """The tasks that it cannot run now: others may."""
        ...

    async def prepare(self) -> None:
        """Find out what would keep it from running handlers, before anything is claimed.

        Raises:
            ConfigError: It cannot be had, or a handler needs a resource that is not there.
            LifespanFailed: A lifespan could not be entered.
        """
        ...

    async def submit(self, call: Call, limit: TimeLimit) -> Any:
        """Run the handler of a call, which begins its time; what it returned.

        Where the task's `executor` is elsewhere, that is the JSON text of the result, if it is
        wanted.

        Raises:
            BaseException: Whatever the handler raises, or what it came to instead.
        """
        ...

    def cancel(self, call: Call, reason: Stop) -> None:
        """Make a call stop that was submitted, as far as that is possible. Its context has been told."""
        ...

    def close(self, *, hurry: bool = False) -> None:
        """End what it has begun, once nothing runs any more; blocks."""
        ...
