"""The worker: one process that claims jobs and runs them until it is told to stop."""

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from rota.app.app import Rota
from rota.app.executor import Executor
from rota.app.resources import Resources
from rota.app.successor import check_declared
from rota.config import WorkerConfig
from rota.errors import ConfigError, RotaError
from rota.worker.drain import left_over
from rota.worker.executors.process import check_findable
from rota.worker.health import Health, Phase
from rota.worker.lifespans import Entered
from rota.worker.parts import Parts
from rota.worker.signals import on_signals


class Worker:
    """Runs the jobs of an app's tasks.

    Args:
        app: The app whose tasks it runs.
        config: How it behaves.

    Raises:
        ConfigError: There is nothing that it could run, or a task declares a successor that is not there.
    """

    def __init__(self, app: Rota, config: WorkerConfig | None = None) -> None:
        self._app = app
        config = config or WorkerConfig()
        queues = config.queues or tuple(sorted({task.options.queue for task in app.tasks.values()}))
        if not queues:
            message = "this app has no tasks; import the modules that define them, or name queues"
            raise ConfigError(message)
        self._config = replace(config, queues=queues)
        for task in app.tasks.values():
            if task.executor is Executor.PROCESS:
                check_findable(task)
            if task.chained:
                check_declared(task)
        self._stop: asyncio.Event | None = None
        self._abort: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked_to_stop = False
        self._refusals: list[RotaError] = []
        self._parts: Parts | None = None
        self._phase = Phase.STARTING

    def run(self) -> None:
        """Run until SIGTERM or SIGINT, or until `stop`. Blocks.

        The first signal stops claiming, lets running jobs finish within the grace period and gives
        back what was not started; the second one gives back everything at once. Signals reach the main
        thread alone: a worker in another one runs until `stop`.

        Raises:
            StoreError: The database cannot be used at the start.
            ConfigError: The database refuses the role, or what a worker needs to do first; or a
                handler or a lifespan needs a resource that no lifespan yields.
            LifespanFailed: A lifespan could not be entered, or has ended by itself.
        """
        asyncio.run(self.arun())

    async def arun(self, *, signals: bool = True) -> None:
        """`run` on a running event loop; `signals`: SIGTERM and SIGINT stop it, in the main thread."""
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._abort = asyncio.Event()
        if self._asked_to_stop:
            self._stop.set()
        if not signals:
            await self._serve(self._stop, self._abort)
            return
        with on_signals(self._loop, self.stop, self.abort):
            await self._serve(self._stop, self._abort)

    def stop(self) -> None:
        """Ask the worker to stop in order; callable from any thread."""
        self._asked_to_stop = True
        if self._loop is not None and self._stop is not None:
            # A closed loop means that the worker has ended already.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)

    def abort(self) -> None:
        """Ask the worker to give everything back and end now; callable from any thread."""
        self.stop()
        if self._loop is not None and self._abort is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._abort.set)

    def health(self) -> Health:
        """How the worker is, at this moment; callable from any thread, whatever the event loop does."""
        phase, parts = self._phase, self._parts
        return parts.health(phase) if parts is not None else Health(phase)

    async def _serve(self, stop: asyncio.Event, abort: asyncio.Event) -> None:
        subscribers = self._app.events.asynchronous
        if subscribers is None:
            await self._live(stop, abort)
            return
        async with subscribers.hosted():
            await self._live(stop, abort)

    async def _live(self, stop: asyncio.Event, abort: asyncio.Event) -> None:
        self._app.database.allow_transactions(self._config.concurrency)
        await asyncio.to_thread(self._app.database.ready)
        lifespans = Entered(self._app.lifespan.of_worker, self._app.events, self._end)
        try:
            if await _unless(stop, lifespans.enter()):
                await self._work(lifespans.resources, stop, abort)
        finally:
            if self._app.events.asynchronous is not None:
                # They may use what the lifespans have opened.
                await self._app.events.asynchronous.finish()
            await lifespans.leave(abort)
            self._phase = Phase.ENDED
        if self._refusals:
            raise self._refusals[0]

    async def _work(self, resources: Resources, stop: asyncio.Event, abort: asyncio.Event) -> None:
        for task in self._app.tasks.values():
            if task.executor is not Executor.PROCESS:
                resources.of(task)
        parts = Parts(self._app, self._config, resources, self._drain, self._refuse)
        if not await _unless(stop, parts.prepare()):
            return
        await parts.start()
        self._parts, self._phase = parts, Phase.RUNNING
        try:
            await stop.wait()
        finally:
            self._phase = Phase.STOPPING
            await parts.stop(abort)

    def _refuse(self, error: RotaError) -> None:
        """The database refuses for good: end with this error. Called in any thread."""
        self._refusals.append(error)
        self.abort()

    def _end(self, error: RotaError) -> None:
        """The worker cannot go on as it should: stop in order, with this error."""
        self._refusals.append(error)
        self.stop()

    def _drain(self) -> None:
        """No job is left here: stop, unless jobs of these queues wait or run elsewhere."""
        left = left_over(self._app.database, self._config.queues)
        if left is None or self._asked_to_stop:
            return
        for paused in left:
            self._app.events.emit(paused)
        self.stop()


async def _unless(stop: asyncio.Event, first: Coroutine[Any, Any, None]) -> bool:
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
