"""The worker: one process that claims jobs and runs them until it is told to stop."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rota.app.app import Rota
from rota.app.executor import Executor
from rota.app.successor import check_declared
from rota.config import WorkerConfig
from rota.errors import ConfigError, RotaError
from rota.worker.apps import Apps
from rota.worker.drain import left_over
from rota.worker.executors.process import check_findable
from rota.worker.health import Health, Phase
from rota.worker.homes import Homes
from rota.worker.lifespans import Entered
from rota.worker.parts import Parts
from rota.worker.signals import on_signals

if TYPE_CHECKING:
    from rota.subscribers import AsyncSubscribers


class Worker:
    """Runs the jobs of an app's tasks, or of several apps' that have one database.

    Args:
        app: The app whose tasks it runs, or several.
        config: How it behaves.
        begin_child: Called first of all in each child process, where it sets up the log, say. It must be
            possible to import it: a function at the top level of a module, or a `functools.partial` of one.

    Raises:
        ConfigError: There is nothing that it could run, or a task declares a successor that is not there.
        TaskAlreadyRegistered: Two apps have a task of one name.
        CronEntryExists: Two apps declare a cron entry of one name.
    """

    def __init__(
        self,
        app: Rota | Iterable[Rota],
        config: WorkerConfig | None = None,
        *,
        begin_child: Callable[[], object] | None = None,
    ) -> None:
        self._begin_child = begin_child
        self._apps = Apps(app)
        config = config or WorkerConfig()
        tasks = self._apps.tasks.values()
        queues = config.queues or tuple(sorted(self._apps.queues))
        if not queues:
            message = "this app has no tasks; import the modules that define them, or name queues"
            raise ConfigError(message)
        self._config = replace(config, queues=queues)
        self._apps.relays(queues)
        for task in tasks:
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
            ConfigError: The database refuses the role, or what a worker needs to do first; the apps have
                several databases; or a handler or a lifespan needs a resource that no lifespan yields.
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
        async with contextlib.AsyncExitStack() as stack:
            for subscribers in self._subscribers():
                await stack.enter_async_context(subscribers.hosted())
            await self._live(stop, abort)

    def _subscribers(self) -> "list[AsyncSubscribers]":
        every = [app.events.asynchronous for app in self._apps]
        return [subscribers for subscribers in every if subscribers is not None]

    async def _live(self, stop: asyncio.Event, abort: asyncio.Event) -> None:
        for app in self._apps:
            app.database.allow_transactions(self._config.concurrency)
        await asyncio.to_thread(self._apps.ready)
        lifespans = [Entered(app.lifespan.of_worker, app.events, self._end) for app in self._apps]
        homes = Homes(
            (app, entered.resources) for app, entered in zip(self._apps, lifespans, strict=True)
        )
        try:
            if await _unless(stop, _enter(lifespans)):
                await self._work(homes, stop, abort)
        finally:
            for subscribers in self._subscribers():
                # They may use what the lifespans have opened.
                await subscribers.finish()
            for entered in reversed(lifespans):
                await entered.leave(abort)
            self._phase = Phase.ENDED
        if self._refusals:
            raise self._refusals[0]

    async def _work(self, homes: Homes, stop: asyncio.Event, abort: asyncio.Event) -> None:
        homes.check()
        parts = Parts(
            self._apps,
            self._config,
            homes,
            self._drain,
            self._refuse,
            begin_child=self._begin_child,
        )
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
        left = left_over(self._apps.first.database, self._config.queues)
        if left is None or self._asked_to_stop:
            return
        for paused in left:
            self._apps.events.emit(paused)
        self.stop()


async def _enter(lifespans: Iterable[Entered]) -> None:
    """Enter those of one app after those of another."""
    for entered in lifespans:
        await entered.enter()


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
