"""The parts of a running worker: put together, connected, started and stopped."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from rota.app.successor import of_discarded
from rota.config import WorkerConfig
from rota.errors import RotaError
from rota.events import QueueStrange, WorkerStarted, WorkerStopped, WorkerStopping
from rota.model.patterns import strange
from rota.model.settlement import released
from rota.worker.apps import Apps
from rota.worker.calls import Calls
from rota.worker.claim import Claimer
from rota.worker.executors.process import Nursery
from rota.worker.forwarder import Forwarder
from rota.worker.health import Health, Phase, examined
from rota.worker.homes import Homes
from rota.worker.in_doubt import InDoubt
from rota.worker.job_transactions import JobTransactions
from rota.worker.leases import Leases
from rota.worker.note_writer import NoteWriter
from rota.worker.plain import PlainJobs
from rota.worker.queue_settings import Settings
from rota.worker.runners import Runners
from rota.worker.session import Session
from rota.worker.settle import Settler
from rota.worker.slots import Share
from rota.worker.switchboard import Switchboard, on_loop
from rota.worker.upkeep import Upkeep

LAST_WORDS = 10.0
"""Seconds that the last settlements may take when the worker stops."""


class Parts:
    """What a running worker consists of.

    Args:
        apps: The apps whose tasks it runs.
        config: How it behaves; names its queues.
        homes: What the handlers of each app are given, and what is around them.
        drain: Called in the claimer's thread when no job is left, neither here nor to claim.
        refuse: Called in any thread when the database refuses for good.
        share: The slots that its jobs may have.
        nursery: The child processes of the worker.
    """

    def __init__(
        self,
        apps: Apps,
        config: WorkerConfig,
        homes: Homes,
        drain: Callable[[], None],
        refuse: Callable[[RotaError], None],
        *,
        share: Share,
        nursery: Nursery,
    ) -> None:
        store, events, board = apps.first.database.store, apps.events, Switchboard()
        self._apps = apps
        self._config, self._events = config, events
        relays = apps.relays(config.queues)
        sent = {relay.queue for relay in relays}
        claimed = tuple(queue for queue in config.queues if queue not in sent)
        claiming = replace(config, queues=claimed)
        leases = Leases()
        self._note_writer = NoteWriter(store, events)
        self._settler = Settler(store, events, leases, self._note_writer, board, share=share)
        self._session = Session(
            store,
            config,
            events,
            board,
            leases=leases,
            entries=apps.declarations,
            tasks=apps.tasks,
        )
        self._upkeep = Upkeep(
            store,
            claiming,
            events,
            session=self._session,
            keep=apps.discarded,
            follow=partial(of_discarded, apps.tasks),
            switchboard=board,
        )
        self._claimer = Claimer(
            store,
            claiming,
            events,
            session=self._session,
            leases=leases,
            switchboard=board,
            share=share,
        )
        self._forwarders = [
            Forwarder(relay, store, config, events, session=self._session, switchboard=board)
            for relay in relays
        ]
        self._settings = Settings(apps, config.queues, board)
        self._in_doubt = InDoubt(store, events, leases, board)
        notes = self._note_writer.notes
        self._calls = Calls(
            apps.tasks,
            config,
            events,
            homes=homes,
            notes=notes,
            effects=JobTransactions(apps, leases, board, notes),
            nursery=nursery,
            places=share.places,
            changed=self._adapt,
        )
        plain = PlainJobs(apps.tasks, homes, events, board)
        self._runners = Runners(
            share, self._calls, apps.batch, events, board, plain=plain, context=apps.context
        )
        self._connect(board, drain, refuse)

    def _connect(
        self,
        board: Switchboard,
        drain: Callable[[], None],
        refuse: Callable[[RotaError], None],
    ) -> None:
        """Give each message its receiver."""
        loop = asyncio.get_running_loop()
        board.deliver = on_loop(loop, self._runners.deliver)
        board.adopt = on_loop(loop, self._runners.adopt)
        board.cancel = on_loop(loop, self._runners.cancel)
        board.lose = on_loop(loop, self._runners.lose)
        board.learn = on_loop(loop, self._settings.learn)
        board.free = self._claimer.free
        board.allow = self._claimer.allow
        board.share = self._claimer.share
        board.wake = self._claimer.wake
        board.settled = self._claimer.settled
        board.doubt = self._claimer.doubt
        board.claimed = self._claimer.claimed
        board.settle = self._settler.put
        board.complete = self._settler.complete
        board.decide = self._settler.decide
        board.look = self._upkeep.look
        board.nudge = self._upkeep.nudge
        board.leave_in_doubt = self._in_doubt.put
        board.drain = drain
        board.refuse = refuse

    async def prepare(self) -> None:
        """Find out what would keep handlers from running, before anything is claimed.

        Raises:
            LifespanFailed: A lifespan of child processes could not be entered.
            ConfigError: One of them or a handler needs a resource that no lifespan yields.
        """
        try:
            await self._calls.prepare()
        except BaseException:
            await self._give_up()
            raise

    async def _give_up(self) -> None:
        """End what was prepared for nothing."""
        self._session.close()
        self._claimer.stop()
        await asyncio.to_thread(self._calls.close, hurry=True)

    def _adapt(self) -> None:
        """What the executors can do has changed."""
        self._runners.widen(self._calls.capacity)
        self._session.leave_out(self._calls.unable)
        self._claimer.wake()

    async def start(self) -> None:
        """Open the session, and begin to claim.

        Raises:
            StoreError: The database cannot be reached or refuses.
        """
        try:
            self._number = await asyncio.to_thread(self._session.open)
            known = await asyncio.to_thread(self._queues)
        except RotaError:
            await self._give_up()
            raise
        self._events.emit(
            WorkerStarted(self._number, self._config.queues, self._config.concurrency)
        )
        for queue, nearest in strange(self._config.queues, known).items():
            self._events.emit(QueueStrange(queue, nearest))
        self._settler.start()
        if self._config.upkeep:
            self._upkeep.start()
        self._claimer.start()
        for forwarder in self._forwarders:
            forwarder.start()

    def _queues(self) -> set[str]:
        """The queues that exist, and those of the apps' tasks."""
        database = self._apps.first.database
        return self._apps.queues.union(database.run(database.store.queue_names()))

    def health(self, phase: Phase) -> Health:
        """How its threads are, in the phase in which they shall run."""
        if phase is not Phase.RUNNING:
            return Health(phase, running=self._runners.running)
        parts = (self._session, self._claimer, self._settler, self._upkeep)
        threads = [part.thread for part in parts]
        threads += [forwarder.thread for forwarder in self._forwarders]
        return examined(
            {thread.name.removeprefix("rota-"): thread for thread in threads if thread},
            self._session.held,
            self._config,
            running=self._runners.running,
        )

    async def stop(self, abort: asyncio.Event) -> None:
        """Stop claiming, give back, let finish (until `abort`), write the rest, close the session."""
        # Another session than at the start, if that one was lost meanwhile.
        number = self._session.current or self._number
        for forwarder in self._forwarders:
            forwarder.ask_to_stop()
        await asyncio.to_thread(self._claimer.stop)
        # What the claimer delivered last is still on its way to the inbox.
        await asyncio.sleep(0)
        unstarted = self._runners.drop()
        for job in unstarted:
            settlement = released(job)
            self._settler.put(settlement)
            self._events.settled(job, settlement)
        self._events.emit(WorkerStopping(self._config.grace, len(self._calls)))
        finishing = asyncio.create_task(self._runners.finish(self._config.grace))
        aborting = asyncio.create_task(abort.wait())
        await asyncio.wait({finishing, aborting}, return_when=asyncio.FIRST_COMPLETED)
        for waiting in (finishing, aborting):
            waiting.cancel()
        stopped = await self._runners.abandon()
        for forwarder in self._forwarders:
            await asyncio.to_thread(forwarder.stop)
        await asyncio.to_thread(self._upkeep.stop)
        await asyncio.to_thread(self._settler.stop, LAST_WORDS)
        await asyncio.to_thread(self._note_writer.stop)
        await asyncio.to_thread(self._in_doubt.stop)
        await asyncio.to_thread(self._session.close)
        await asyncio.to_thread(self._calls.close, hurry=abort.is_set())
        self._events.emit(WorkerStopped(number, len(unstarted) + stopped))
