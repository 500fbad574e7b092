"""The worker: one process that claims jobs and runs them until it is told to stop."""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from rota.app.app import Rota
from rota.app.task import Executor
from rota.config import WorkerConfig
from rota.errors import ConfigError, RotaError
from rota.events import PausedLeft, WorkerStarted, WorkerStopped, WorkerStopping
from rota.model.job import JobFilter, JobId, SessionId
from rota.model.queue_settings import QueueSettings
from rota.model.settlement import released
from rota.model.states import State
from rota.worker.batch_run import BatchRunners
from rota.worker.claim import Claimer
from rota.worker.executors.process import check_findable
from rota.worker.job_transactions import Effects
from rota.worker.leases import Leases
from rota.worker.queue_settings import Settings
from rota.worker.runners import Runners
from rota.worker.scribe import Scribe
from rota.worker.session import Session
from rota.worker.settle import Settler
from rota.worker.signals import on_signals
from rota.worker.upkeep import Upkeep

LAST_WORDS = 10.0
"""Seconds that the last settlements may take when the worker stops."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a running worker consists of."""

    session: Session
    upkeep: Upkeep
    claimer: Claimer
    runners: Runners
    settler: Settler
    scribe: Scribe
    effects: Effects


class Worker:
    """Runs the jobs of an app's tasks.

    Args:
        app: The app whose tasks it runs.
        config: How it behaves.

    Raises:
        ConfigError: There is nothing that it could run.
    """

    def __init__(self, app: Rota, config: WorkerConfig | None = None) -> None:
        self._app = app
        self._config = config or WorkerConfig()
        self._queues = self._config.queues or tuple(
            sorted({task.options.queue for task in app.tasks.values()})
        )
        if not self._queues:
            message = "this app has no tasks; import the modules that define them, or name queues"
            raise ConfigError(message)
        for task in app.tasks.values():
            if task.executor is Executor.PROCESS:
                check_findable(task)
        self._stop: asyncio.Event | None = None
        self._abort: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked_to_stop = False

    def run(self) -> None:
        """Run until SIGTERM or SIGINT, or until `stop`. Blocks.

        The first signal stops claiming, lets running jobs finish within the grace period and gives
        back what was not started; the second one gives back everything at once. Signals reach the main
        thread alone: a worker in another one runs until `stop`.

        Raises:
            StoreError: The database cannot be used at the start.
            ConfigError: The database refuses the role, or what a worker needs to do first.
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

    async def _serve(self, stop: asyncio.Event, abort: asyncio.Event) -> None:
        app, config = self._app, self._config
        await asyncio.to_thread(app.database.ready)
        loop = asyncio.get_running_loop()
        leases = Leases()
        refusals: list[RotaError] = []

        def refused(error: RotaError) -> None:
            refusals.append(error)
            self.abort()

        scribe = Scribe(app.database.store, app.events)
        settler = Settler(
            app.database.store,
            app.events,
            leases,
            scribe=scribe,
            freed=lambda: claimer.wake(),  # noqa: PLW0108 - made below
            refused=refused,
        )

        def lost(_: SessionId) -> None:
            loop.call_soon_threadsafe(lose)

        def lose() -> None:
            claimer.ended(len(runners.lose()))

        def cancel(jobs: frozenset[JobId]) -> None:
            loop.call_soon_threadsafe(runners.cancel, jobs)

        def learn(said: Mapping[str, QueueSettings]) -> None:
            loop.call_soon_threadsafe(settings.learn, said)

        session = Session(
            app.database.store,
            config,
            self._queues,
            app.events,
            lost=lost,
            cancel=cancel,
            learn=learn,
            refused=refused,
            entries=app.cron.declarations(),
        )
        upkeep = Upkeep(
            app.database.store,
            config,
            self._queues,
            app.events,
            available=lambda: claimer.wake(),  # noqa: PLW0108 - made below
            claimed=lambda: claimer.claimed,
            keep=app.queues.discarded,
            refused=refused,
        )
        claimer = Claimer(
            app.database.store,
            config,
            self._queues,
            events=app.events,
            session=session,
            leases=leases,
            loop=loop,
            deliver=lambda jobs: runners.deliver(jobs),  # noqa: PLW0108 - made below
            woken=upkeep.nudge,
            dry=self._dry if config.drain else _nothing,
            shared=lambda turns: runners.share(turns),  # noqa: PLW0108 - made below
            refused=refused,
        )
        settings = Settings(app, self._queues, claimer.share)
        effects = Effects(app, leases, claimer, scribe.notes)
        runners = BatchRunners(
            app.tasks,
            config,
            app.events,
            settler.put,
            claimer.ended,
            effects=effects,
            notes=scribe.notes,
            middleware=app.middleware,
            batch_tasks=app.tasks.batch,
            spare=claimer.spare,
        )
        try:
            number = await asyncio.to_thread(session.open)
        except RotaError:
            session.close()
            claimer.stop()
            raise
        app.events.emit(WorkerStarted(number, self._queues))
        settler.start()
        if config.upkeep:
            upkeep.start()
        claimer.start()
        try:
            await stop.wait()
        finally:
            parts = Parts(session, upkeep, claimer, runners, settler, scribe, effects)
            # Another one than at the start, if that one was lost meanwhile.
            number = session.current or number
            count = await self._wind_down(abort, parts)
            app.events.emit(WorkerStopped(number, count))
        if refusals:
            raise refusals[0]

    async def _wind_down(self, abort: asyncio.Event, parts: "Parts") -> int:
        """Stop claiming, give back, let finish, write the rest, close the session."""
        await asyncio.to_thread(parts.claimer.stop)
        # What the claimer delivered last is still on its way to the inbox.
        await asyncio.sleep(0)
        unstarted = parts.runners.drop()
        for job in unstarted:
            settlement = released(job)
            parts.settler.put(settlement)
            self._app.events.settled(job, settlement)
        self._app.events.emit(WorkerStopping(self._config.grace))
        finishing = asyncio.create_task(parts.runners.finish(self._config.grace))
        aborting = asyncio.create_task(abort.wait())
        await asyncio.wait({finishing, aborting}, return_when=asyncio.FIRST_COMPLETED)
        for waiting in (finishing, aborting):
            waiting.cancel()
        stopped = await parts.runners.abandon()
        await asyncio.to_thread(parts.upkeep.stop)
        await asyncio.to_thread(parts.settler.stop, LAST_WORDS)
        await asyncio.to_thread(parts.scribe.stop)
        await asyncio.to_thread(parts.effects.stop)
        await asyncio.to_thread(parts.session.close)
        parts.runners.close()
        return len(unstarted) + stopped

    def _dry(self) -> None:
        """Nothing is left to claim: stop, unless jobs of these queues wait or run elsewhere.

        What waits in a paused queue would be waited for without end.
        """
        store = self._app.database.store
        paused = {one.name for one in self._app.database.run(store.queues()) if one.paused}
        awaited = [
            (queue, state)
            for queue in self._queues
            for state in State
            if not state.finished and (state is State.RUNNING or queue not in paused)
        ]
        for queue, state in awaited:
            wanted = JobFilter(state=state, queue=queue, limit=1)
            if self._app.database.run(store.list_jobs(wanted)):
                return
        # A job that moved from one state to another between these looks was in none of them.
        # The counts are a single look.
        left = [
            (one.name, state, count)
            for one in self._app.database.run(store.queues())
            for state, count in one.counts.items()
            if one.name in self._queues and not state.finished and count
        ]
        if self._asked_to_stop or any((queue, state) in awaited for queue, state, _ in left):
            return
        for name in sorted({queue for queue, _, _ in left}):
            count = sum(count for queue, _, count in left if queue == name)
            self._app.events.emit(PausedLeft(name, count))
        self.stop()


def _nothing() -> None:
    """What a worker that does not drain does about an empty queue."""
