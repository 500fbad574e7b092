"""Upkeep: what has to be done now and then, done by the worker that comes first.

There is no leader. Each worker looks when it is its turn, so that together they look at least once
a second (`Peers`), and does what it sees: stages due jobs, makes those of cron entries, rescues the
jobs of dead sessions, tidies up, writes down the minute that is over. Between two looks it asks
only when the next job is due, where something was enqueued. Two workers that do the same at once do
no harm: the store sees to that.
"""

import random
import threading
import time
from collections.abc import Callable, Mapping

from rota.config import WorkerConfig
from rota.dispatch import Events
from rota.events import JobsStaged, SessionRescued, Tidied
from rota.model.look import Look
from rota.store.following import Follow
from rota.store.protocol import Store
from rota.worker.cron import CronWatch
from rota.worker.loop import Repeating, finish, repeat
from rota.worker.session import Session
from rota.worker.switchboard import Switchboard

STAGE_SIZE = 5000
"""Due jobs per staging."""

NUDGE = 0.02
"""Seconds after which news are looked at."""

SPACING = 0.05
"""Seconds between two looks that news ask for: under load there are news all the time."""

EARLY = 0.9
"""The share of `poll` after which it looks again: what it finds is claimed and begins within `poll`."""

PACE = 0.01
"""Seconds between two looks at the least, however soon the next job is due."""

SQUEEZE = 1.0
"""Seconds between two looks at the counters, while there is work."""

TIDY = 5.0
"""Seconds between two rounds of housekeeping where something cannot wait."""

TIDY_ANYWAY = 60.0
"""Seconds between two rounds of housekeeping where nothing seems to be urgent; longer, as all
pauses between these rounds, in one of many workers.
"""


class Upkeep:
    """A thread that stages, rescues, counts and tidies.

    It looks for jobs of the session's tasks; `keep` says how long discarded jobs of single queues
    stay, `follow` which successors they have.
    """

    def __init__(
        self,
        store: Store,
        config: WorkerConfig,
        events: Events,
        *,
        session: Session,
        keep: Callable[[], Mapping[str, float]],
        follow: Follow,
        switchboard: Switchboard,
    ) -> None:
        self._store = store
        self._config = config
        self._events = events
        self._tasks = session.tasks
        self._keep = keep
        self._follow = follow
        self._switchboard = switchboard
        self._counted = 0
        self._connection = store.connect("upkeep")
        self._stopping = threading.Event()
        self._nudge = threading.Event()
        self._thread: Repeating | None = None
        self._look_at = 0.0
        self._rescue_at = 0.0
        self._peers = session.peers
        self._rhythm = session.peers.rhythm
        self._fewer = threading.Event()
        self._squeeze_at = 0.0
        self._tidied = self._asked = time.monotonic()
        self._ordered = 0
        # Workers that start together shall not tidy together.
        self._spread = random.uniform(0.2, 1.2)  # noqa: S311 - no secret
        self._cron = CronWatch(store, self._connection, config, events, switchboard)

    def start(self) -> None:
        """Begin."""
        self._thread = repeat(
            "upkeep", self._step, self._stopping, self._events, self._switchboard.refuse
        )

    def stop(self) -> None:
        """End; returns when nothing is under way."""
        self._stopping.set()
        self._nudge.set()
        if self._thread is not None:
            finish(self._thread, self._connection)
        self._connection.close()

    @property
    def thread(self) -> Repeating | None:
        """What does its work, once it has begun."""
        return self._thread

    def look(self) -> None:
        """Look around soon: others that did it are gone."""
        self._fewer.set()
        self._nudge.set()

    def nudge(self) -> None:
        """Look at the timers now: something was enqueued, perhaps with an early time."""
        self._nudge.set()

    def _step(self) -> None:
        self._nudge.clear()
        if self._fewer.is_set():
            self._fewer.clear()
            self._look_at = min(self._look_at, time.monotonic() + EARLY * self._config.poll)
        if time.monotonic() >= self._look_at:
            due = self._look()
        else:
            due = self._connection.run(self._store.due())
        if due == 0:
            due = self._stage()
        now = time.monotonic()
        self._squeeze(now)
        wait = self._look_at - now
        if self._nudge.wait(max(wait if due is None else min(wait, due), PACE)):
            # The claim that was woken by the same news goes first.
            self._stopping.wait(max(NUDGE, now + SPACING - time.monotonic()))

    def _look(self) -> float | None:
        """Do what there is to do; in how many seconds jobs are to be staged."""
        cron = self._cron.wants_to_know()
        untidy = self._wants_order(time.monotonic())
        looking = self._store.look(self._config.queues, tasks=self._tasks, cron=cron, untidy=untidy)
        look = self._connection.run(looking)
        self._rhythm.look(look.clock)
        heard = self._rescue(look)
        if look.available or look.unwatched:
            self._switchboard.wake()
        soon = self._cron.step(look, known=cron)
        now = time.monotonic()
        if look.untidy or now >= self._tidied + self._pause(TIDY_ANYWAY):
            self._tidy()
        wait = EARLY * self._config.poll
        if look.clock is not None:
            wait = self._peers.until_turn(wait, look.clock)
        if soon is not None:
            wait = min(wait, soon)
        if not heard:
            wait = min(wait, self._rhythm.hurry)
        self._look_at = now + wait
        if look.undecided:
            self._connection.run(self._store.flows.overlook())
        if look.unrecorded:
            self._connection.run(self._store.history.record())
        return look.due

    def _wants_order(self, now: float) -> bool:
        """Whether the next look shall say if something is untidy.

        Where no job was claimed meanwhile, it shall do so rarely.
        """
        claimed = self._switchboard.claimed()
        since = self._tidied if claimed != self._ordered else self._asked
        if now < since + self._pause(TIDY):
            return False
        self._asked, self._ordered = now, claimed
        return True

    def _tidy(self) -> None:
        began = time.monotonic()
        if done := self._connection.run(self._store.tidy()):
            self._events.emit(Tidied(tuple(done)))
        self._tidied = self._asked = began
        # Drawn once a round: drawn at every look, the shortest pause would come true.
        self._spread = random.uniform(0.8, 1.2)  # noqa: S311 - no secret

    def _pause(self, seconds: float) -> float:
        return seconds * self._spread * self._peers.share

    def _stage(self) -> float | None:
        """Stage what is due; in how many seconds the next job is."""
        staging = self._connection.run(self._store.stage(STAGE_SIZE))
        if staging.staged:
            self._events.emit(JobsStaged(staging.staged))
            self._switchboard.wake()
        return staging.next_due

    def _squeeze(self, now: float) -> None:
        # An idle worker has nothing to count; a command that asks adds up what others enqueue.
        claimed = self._switchboard.claimed()
        if now >= self._squeeze_at and claimed != self._counted:
            self._connection.run(self._store.squeeze())
            self._counted = claimed
            self._squeeze_at = now + SQUEEZE

    def _rescue(self, look: Look) -> bool:
        """Rescue the jobs of dead workers; false: silent ones may only not have been heard."""
        now = time.monotonic()
        if look.clock is not None and look.silent and not self._rhythm.steady:
            return False
        if look.silent and now >= self._rescue_at:
            for rescue in self._connection.run(self._store.rescue(self._keep(), self._follow)):
                self._events.emit(SessionRescued(rescue))
                self._events.following(rescue.following)
                if rescue.available:
                    self._switchboard.wake()
            self._rescue_at = now + self._config.session_timeout / 6
        return True
