"""The worker: one process that claims jobs and runs them until it is told to stop."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from rota.app.app import Rota
from rota.app.lifespan import Lifespans
from rota.app.shards import Shards
from rota.app.successor import check_declared
from rota.config import WorkerConfig
from rota.errors import ConfigError, RotaError
from rota.events import PausedLeft, UnknownLeft
from rota.worker.apps import Apps
from rota.worker.drain import Draining
from rota.worker.executors.process import Nursery
from rota.worker.executors.remote import check_findable
from rota.worker.health import Health, Phase
from rota.worker.homes import Homes
from rota.worker.lifespans import Entered
from rota.worker.signals import on_signals
from rota.worker.slots import Share, Slots
from rota.worker.station import Station, unless
from rota.worker.stations import Stations

if TYPE_CHECKING:
    from rota.subscribers import AsyncSubscribers


class Worker:
    """Runs the jobs of one app, of several that share a database, or of one with several databases.

    Args:
        app: The app whose tasks it runs, or several.
        config: How it behaves.
        begin_child: Called first of all in each child process, to set up logging, for example. It
            must be importable: a function at the top level of a module, or a `functools.partial` of
            one.

    Raises:
        ConfigError: There is nothing to run, or a task declares a successor that is not there.
        TaskAlreadyRegistered: Two apps have a task of one name.
        CronEntryExists: Two apps declare a cron entry of one name.
    """

    def __init__(
        self,
        app: Rota | Iterable[Rota] | Shards,
        config: WorkerConfig | None = None,
        *,
        begin_child: Callable[[], object] | None = None,
    ) -> None:
        self._begin_child = begin_child
        given = app.values() if isinstance(app, Shards) else (app,)
        self._databases = [Apps(apps) for apps in given]
        self._config = config or WorkerConfig()
        self._configs = [self._checked(apps) for apps in self._databases]
        self._draining = Draining(self._configs, self._databases, self._drained)
        self._stop: asyncio.Event | None = None
        self._abort: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked_to_stop = False
        self._refusals: list[RotaError] = []
        self._station: Station | Stations | None = None
        self._phase = Phase.STARTING

    def _checked(self, apps: Apps) -> WorkerConfig:
        """How it behaves on the database of these apps.

        Raises:
            ConfigError: There is nothing that it could run there, or a task declares a successor
                that is not there.
        """
        queues = self._config.queues or tuple(sorted(apps.queues))
        if not queues:
            message = "this app has no tasks; import the modules that define them, or name queues"
            raise ConfigError(message)
        apps.relays(queues)
        for task in apps.tasks.values():
            if task.executor.elsewhere:
                check_findable(task)
            if task.chained:
                check_declared(task)
        return replace(self._config, queues=queues)

    def run(self) -> None:
        """Run until SIGTERM or SIGINT, or until `stop`. Blocks.

        The first signal stops claiming, lets running jobs finish within the grace period and gives
        back jobs that have not started; the second one gives back all jobs at once. Signals reach
        only the main thread: a worker in another one runs until `stop`.

        Raises:
            StoreError: The database cannot be used at the start.
            ConfigError: The database refuses the role, or what a worker needs to do first; the apps
                have several databases; or a handler or a lifespan needs a resource that no lifespan
                yields.
            LifespanFailed: A lifespan could not be entered, or has ended by itself.
        """
        asyncio.run(self.arun())

    async def arun(self, *, signals: bool = True) -> None:
        """`run` on a running event loop.

        With `signals`, in the main thread, SIGTERM and SIGINT stop it.
        """
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
        """Ask the worker to stop gracefully; callable from any thread."""
        self._asked_to_stop = True
        if self._loop is not None and self._stop is not None:
            # A closed loop means that the worker has ended already.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)

    def abort(self) -> None:
        """Ask the worker to give back all jobs and end now; callable from any thread."""
        self.stop()
        if self._loop is not None and self._abort is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._abort.set)

    def health(self) -> Health:
        """The worker's health at this moment; callable from any thread, whatever the event loop does."""
        phase, station = self._phase, self._station
        return Health(phase) if station is None else station.health(phase)

    async def _serve(self, stop: asyncio.Event, abort: asyncio.Event) -> None:
        async with contextlib.AsyncExitStack() as stack:
            for subscribers in self._subscribers():
                await stack.enter_async_context(subscribers.hosted())
            await self._live(stop, abort)

    def _subscribers(self) -> "list[AsyncSubscribers]":
        every = [app.events.asynchronous for app in self._every_app()]
        return [subscribers for subscribers in every if subscribers is not None]

    async def _live(self, stop: asyncio.Event, abort: asyncio.Event) -> None:
        for app in self._every_app():
            app.database.allow_transactions(self._config.concurrency)
        if len(self._databases) == 1:
            await asyncio.to_thread(self._databases[0].ready)
        # Several databases of one app have the same lifespans.
        lifespans: dict[Lifespans, Entered] = {}
        for app in self._every_app():
            if app.lifespan not in lifespans:
                one = Entered(app.lifespan.of_worker, app.events, self._end)
                lifespans[app.lifespan] = one
        entered = [*lifespans.values()]
        try:
            if await unless(stop, _enter(entered)):
                await self._work(self._stations(lifespans), stop, abort)
        finally:
            for subscribers in self._subscribers():
                # They may use what the lifespans have opened.
                await subscribers.finish()
            for one in reversed(entered):
                await one.leave(abort)
            self._phase = Phase.ENDED
        if self._refusals:
            raise self._refusals[0]

    def _stations(self, lifespans: Mapping[Lifespans, Entered]) -> Station | Stations:
        """What works on the databases.

        Raises:
            ConfigError: A handler needs a resource that no lifespan yields.
        """
        config = self._config
        clustered = config.dask is not None or config.ray is not None
        slots = Slots(config.concurrency, clustered=clustered)
        nursery = Nursery(config.children, self._begin_child)
        makers = []
        for apps, own in zip(self._databases, self._configs, strict=True):
            homes = Homes((app, lifespans[app.lifespan].resources) for app in apps)
            homes.check()
            makers.append(
                partial(self._station_on, apps, own, homes, slots.share(), nursery=nursery)
            )
        return makers[0](self._refuse) if len(makers) == 1 else Stations(makers)

    def _station_on(
        self,
        apps: Apps,
        config: WorkerConfig,
        homes: Homes,
        share: Share,
        refuse: Callable[[RotaError], None],
        *,
        nursery: Nursery,
    ) -> Station:
        drain = partial(self._draining.look, apps)
        return Station(apps, config, homes, share, drain=drain, refuse=refuse, nursery=nursery)

    async def _work(
        self, station: Station | Stations, stop: asyncio.Event, abort: asyncio.Event
    ) -> None:
        self._station = station
        try:
            if await station.begin(stop):
                self._phase = Phase.RUNNING
                await stop.wait()
        finally:
            self._phase = Phase.STOPPING
            await station.end(abort)

    def _refuse(self, error: RotaError) -> None:
        """The database refuses for good: end with this error. Called in any thread."""
        self._refusals.append(error)
        self.abort()

    def _end(self, error: RotaError) -> None:
        """The worker cannot go on as it should: stop in order, with this error."""
        self._refusals.append(error)
        self.stop()

    def _drained(self, left: Iterable[tuple[Apps, PausedLeft | UnknownLeft]]) -> None:
        """No job is left but these, which would stay: stop. Called in any thread."""
        if self._asked_to_stop:
            return
        for apps, one in left:
            apps.events.emit(one)
        self.stop()

    def _every_app(self) -> list[Rota]:
        return [app for apps in self._databases for app in apps]


async def _enter(lifespans: Iterable[Entered]) -> None:
    """Enter those of one app after those of another."""
    for entered in lifespans:
        await entered.enter()
