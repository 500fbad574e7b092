"""A worker's stations, one per database: each begins once that can be reached, and delays no other.

A database that is away when the worker starts, or that refuses, is tried again after growing
pauses, as a thread of a station does later on. Where none of them can be used at the start, the
worker ends, as that of one database does.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from rota.errors import RotaError
from rota.events import StoreLost, StoreRecovered
from rota.worker.health import Health, Phase
from rota.worker.loop import FIRST_PAUSE, LONGEST_PAUSE, REMINDER
from rota.worker.station import Station

LEAVE = 2.0
"""Seconds that a station has to begin where the worker is told to stop meanwhile."""

PART = "worker"
"""What cannot go on, as `StoreLost` tells it."""

Refuse = Callable[[RotaError], None]


class Stations:
    """Those of one worker; used as a `Station` is.

    Args:
        makers: Make the station of each database, which is told where to say that it refuses.
    """

    def __init__(self, makers: Sequence[Callable[[Refuse], Station]]) -> None:
        self._every = [Tended(make) for make in makers]
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self, stop: asyncio.Event) -> bool:
        """Begin with usable databases, and go on trying others; false: told to stop before that.

        Raises:
            RotaError: None of them can be used: what the first one says.
        """
        self._tasks = [asyncio.create_task(each.tend(stop)) for each in self._every]
        waiting: set[asyncio.Future[Any]] = {each.tried for each in self._every}
        stopping: asyncio.Future[Any] = asyncio.ensure_future(stop.wait())
        while waiting and not stop.is_set() and not any(each.begun for each in self._every):
            await asyncio.wait({*waiting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            waiting = {tried for tried in waiting if not tried.done()}
        stopping.cancel()
        errors = [each.tried.result() for each in self._every if each.tried.done()]
        if len(errors) == len(self._every) and None not in errors:
            raise next(filter(None, errors))
        return not stop.is_set()

    async def end(self, abort: asyncio.Event) -> None:
        """End all of them, at the same time."""
        both = zip(self._tasks, self._every, strict=True)
        if late := [task for task, each in both if not each.begun]:
            await asyncio.wait(late, timeout=LEAVE)
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        await asyncio.gather(*(each.station.end(abort) for each in self._every if each.begun))

    def health(self, phase: Phase) -> Health:
        """How they are together: ready as long as one of them is."""
        every = [each.station.health(phase) for each in self._every if each.begun]
        if not every:
            return Health(phase)
        best = next((health for health in every if health.ready), every[0])
        return Health(
            best.phase,
            best.session,
            running=sum(health.running for health in every),
            ended=tuple(name for health in every for name in health.ended),
            trouble=best.trouble,
            stuck=best.stuck,
        )


class Tended:
    """One station, which is begun again and again until its database lets it.

    Attributes:
        begun: Whether it works.
        tried: Done after the first try; the error, if that failed.
    """

    def __init__(self, make: Callable[[Refuse], Station]) -> None:
        self.station = make(self._refuse)
        self.begun = False
        self._loop = asyncio.get_running_loop()
        self.tried: asyncio.Future[RotaError | None] = self._loop.create_future()
        self._refused: asyncio.Future[RotaError] = self._loop.create_future()

    async def tend(self, stop: asyncio.Event) -> None:
        """Begin, and begin anew whenever the database has refused, until the worker stops."""
        events = self.station.apps.events
        pause = remind = 0.0
        while not stop.is_set():
            error = await self._try(stop)
            if not self.tried.done():
                self.tried.set_result(error)
            if error is None and not self.begun:
                return
            if error is None:
                if pause:
                    events.emit(StoreRecovered(PART))
                pause = 0.0
                error = await self._refused
                self.begun = False
                await self.station.end(_set())
            if not pause or time.monotonic() >= remind:
                events.emit(StoreLost(error, PART))
                remind = time.monotonic() + REMINDER
            pause = min(max(pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), pause)

    async def _try(self, stop: asyncio.Event) -> RotaError | None:
        """Begin; why that was not possible, if so."""
        self._refused = self._loop.create_future()
        try:
            await asyncio.to_thread(self.station.apps.ready)
            self.begun = await self.station.begin(stop)
        except RotaError as error:
            return error
        except BaseException as error:
            if not self.tried.done():
                self.tried.set_exception(error)
            raise
        return None

    def _refuse(self, error: RotaError) -> None:
        """The database refuses for good. Called in any thread."""

        def tell() -> None:
            if not self._refused.done():
                self._refused.set_result(error)

        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(tell)


def _set() -> asyncio.Event:
    """An event that has happened."""
    event = asyncio.Event()
    event.set()
    return event
