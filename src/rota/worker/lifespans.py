"""A worker's lifespans: entered before it claims, left after its last handler.

Each lives in one place from its entry to its end: an async one in an asyncio task, since what it
holds may belong to that task (cancel scopes, task groups); a sync one in a thread of its own, since
it may load or connect for long and would hold up the loop, which is a web server's own where the
worker runs inside of one. The thread is a daemon: no lifespan that hangs keeps the process from
ending.

What can fail. An entry that raises ends the worker before it claims. A lifespan that ends by itself
stops the worker in order. One that raises as it is left, or takes longer than its timeout, is told
by an event, and the others are left all the same. Known weakness: an async one that goes on after
its cancellation, again and again, keeps `asyncio.run` waiting.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rota.app.lifespan import Lifespan
from rota.app.resources import Resources
from rota.dispatch import Events
from rota.errors import ConfigError, LifespanFailed
from rota.events import LifespanOverdue, LifespanRaised

HURRY = 1.0
"""Seconds that each lifespan has to be left where the worker was told to end now."""


class Life:
    """One lifespan, from its entry to its end.

    Attributes:
        entered: Has what it yields.
        ended: Done when it has been left, or has failed.
    """

    def __init__(self, lifespan: Lifespan, manager: Any) -> None:
        self.lifespan = lifespan
        self._loop = asyncio.get_running_loop()
        self.entered: asyncio.Future[object] = self._loop.create_future()
        self.ended: asyncio.Future[None]
        if hasattr(manager, "__aenter__"):
            leaving = asyncio.Event()
            self.leave: Callable[[], object] = leaving.set
            self.ended = asyncio.ensure_future(self._in_task(manager, leaving))
        else:
            told = threading.Event()
            self.leave = told.set
            self.ended = self._loop.create_future()
            threading.Thread(
                target=self._in_thread,
                args=(manager, told),
                name=f"rota-lifespan-{lifespan.name}",
                daemon=True,
            ).start()

    async def _in_task(self, manager: Any, leaving: asyncio.Event) -> None:
        async with manager as value:
            self.entered.set_result(value)
            await leaving.wait()

    def _in_thread(self, manager: Any, leaving: threading.Event) -> None:
        error: BaseException | None = None
        try:
            with manager as value:
                self._tell(self.entered, value)
                leaving.wait()
        except BaseException as raised:  # noqa: BLE001 - raised again where the worker waits
            error = raised
        self._tell(self.ended, None, error)

    def _tell(
        self, future: "asyncio.Future[Any]", value: object, error: BaseException | None = None
    ) -> None:
        """Tell the loop what has come of the thread, unless it has closed meanwhile."""

        def tell() -> None:
            if future.done():
                return
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(_carried(error))

        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(tell)


class Entered:
    """The lifespans of one run of a worker.

    Args:
        lifespans: In the order in which they are entered.
        events: Told what goes wrong as they are left.
        stop: Called when one has ended by itself, while the worker runs.
    """

    def __init__(
        self,
        lifespans: Sequence[Lifespan],
        events: Events,
        stop: Callable[[LifespanFailed], None],
    ) -> None:
        self.resources = Resources()
        self._lifespans = lifespans
        self._events = events
        self._stop = stop
        self._lives: list[Life] = []
        self._leaving = False

    async def enter(self) -> None:
        """Enter them, one after another.

        Raises:
            ConfigError: One needs a resource that none before it yields, or is no context manager.
            LifespanFailed: One has raised.
        """
        for lifespan in self._lifespans:
            try:
                manager = lifespan.manager(self.resources)
                life = Life(lifespan, manager)
            except ConfigError:
                raise
            except Exception as error:
                raise lifespan.failed(error) from error
            self._lives.append(life)
            await asyncio.wait((life.entered, life.ended), return_when=asyncio.FIRST_COMPLETED)
            if not life.entered.done():
                self._lives.pop()
                why = _error(life)
                raise lifespan.failed(why) from why
            self.resources.add(lifespan.name, life.entered.result())
            life.ended.add_done_callback(partial(self._ended, life))

    async def leave(self, abort: asyncio.Event) -> None:
        """Leave them in reverse order; each within its timeout, and hurriedly once `abort` is set."""
        self._leaving = True
        aborting = asyncio.ensure_future(abort.wait())
        while self._lives:
            life = self._lives.pop()
            life.leave()
            if not life.entered.done():
                life.ended.cancel()
            await self._until_it_ends(life, aborting)
        aborting.cancel()

    async def _until_it_ends(self, life: Life, aborting: "asyncio.Future[Any]") -> None:
        name, timeout = life.lifespan.name, life.lifespan.timeout
        if not aborting.done():
            waited = {life.ended, aborting}
            await asyncio.wait(waited, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if not life.ended.done() and aborting.done():
            timeout = min(timeout, HURRY)
            await asyncio.wait({life.ended}, timeout=timeout)
        if not life.ended.done():
            self._events.emit(LifespanOverdue(name, timeout))
            life.ended.cancel()
            # A task notices at its next step; the thread of a sync one is left behind.
            await asyncio.sleep(0)
        elif not life.ended.cancelled() and (error := life.ended.exception()) is not None:
            self._events.emit(LifespanRaised(name, error))

    def _ended(self, life: Life, _: "asyncio.Future[None]") -> None:
        if not self._leaving:
            self._lives.remove(life)
            error = _error(life)
            failed = life.lifespan.failed(error)
            failed.__cause__ = error
            self._stop(failed)


def _error(life: Life) -> BaseException:
    """Why a lifespan has ended that was not to end."""
    if life.ended.cancelled():
        return asyncio.CancelledError("it was cancelled")
    return life.ended.exception() or RuntimeError("it ended while the worker ran")


def _carried(error: BaseException) -> BaseException:
    """The error, in a form that a future carries: StopIteration it refuses."""
    if not isinstance(error, StopIteration):
        return error
    carrier = RuntimeError("it raised StopIteration")
    carrier.__cause__ = error
    return carrier
