"""The settler: a thread that writes settlements in batches, whole leases where it can.

If the connection breaks during a settlement, it may have been written or not. It is sent again; the
fence then refuses what was written the first time, which is no lost lease.
"""

import logging
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rota.dispatch import Events
from rota.errors import StoreUnavailable
from rota.events import LeasesLost, SettlementsWritten
from rota.model.headers import NodeId
from rota.model.job import ClaimedJob, JobId, LeaseId, SessionId
from rota.model.settlement import Completions, Settlement
from rota.store.membership import arrived
from rota.store.protocol import Store
from rota.worker.deciding import Deciding
from rota.worker.leases import Leases
from rota.worker.loop import Repeating, repeat
from rota.worker.note_writer import NoteWriter
from rota.worker.slots import Share
from rota.worker.switchboard import Switchboard

logger = logging.getLogger("rota")

GATHER = 0.002
"""Seconds between two looks at leases of which some jobs have ended and others run."""

HOLD = 0.01
"""Seconds that settlements wait for the rest of their lease, times the number of databases that
have jobs for this worker: they take turns, and so a lease takes that much longer.
"""

LARGEST = 5000
"""Settlements per transaction."""

OF_A_JOB = 3
"""Entries for a job that has completed."""


@dataclass(slots=True)
class Ended:
    """What has ended of one lease and is not written.

    `completed` are the plain jobs, by how long they stay and by their node.
    """

    since: float
    settlements: list[Settlement] = field(default_factory=list)
    completed: dict[tuple[float, NodeId | None], list[JobId]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.settlements) + sum(map(len, self.completed.values()))


class Batch(NamedTuple):
    """What is written in one transaction."""

    session: SessionId
    settlements: list[Settlement]
    completions: list[Completions]

    def add(self, lease: LeaseId, ended: Ended) -> None:
        """Write this, too."""
        self.settlements.extend(ended.settlements)
        self.completions.extend(
            Completions(lease, keep, jobs, node) for (keep, node), jobs in ended.completed.items()
        )


class Settler:
    """Takes settlements from any thread and writes them."""

    def __init__(
        self,
        store: Store,
        events: Events,
        leases: Leases,
        note_writer: NoteWriter,
        switchboard: Switchboard,
        *,
        share: Share,
    ) -> None:
        self._store = store
        self._share = share
        self._events = events
        self._leases = leases
        self._note_writer = note_writer
        self._switchboard = switchboard
        self._connection = store.connect("settler")
        self._ended: deque[Settlement] = deque()
        # A job, how long it stays, its node; the next job, and so on. With a tuple for each job,
        # the garbage collector has half as much again to do.
        self._completed: deque[Any] = deque()
        self._told: deque[NodeId] = deque()
        self._deciding = Deciding(store, self._connection)
        self._waiting: dict[LeaseId, Ended] = {}
        self._batches: list[Batch] = []
        self._uncertain = False
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._hurry = False
        self._thread: Repeating | None = None

    def start(self) -> None:
        """Begin to write."""
        self._thread = repeat(
            "settler", self._step, self._stopping, self._events, self._switchboard.refuse
        )

    def put(self, settlement: Settlement) -> None:
        """Have a settlement written soon."""
        self._ended.append(settlement)
        if not self._news.is_set():
            self._news.set()

    def complete(self, job: ClaimedJob, keep: float, node: NodeId | None = None) -> None:
        """Have it written soon that a job has completed, of which nothing else is to be written.

        A settlement for each would cost more than all else that is done here.
        """
        self._completed.extend((job, keep, node))
        if len(self._completed) == OF_A_JOB:
            # Else the settler has not come to the one before, either.
            self._news.set()

    def decide(self, node: NodeId) -> None:
        """Look soon what follows of the end of a job of this node."""
        self._told.append(node)
        self._news.set()

    def stop(self, timeout: float) -> bool:
        """Write everything that was put, for up to `timeout` seconds; whether all is written."""
        deadline = time.monotonic() + timeout
        self._hurry = True
        while self._pending and self._writes and time.monotonic() < deadline:
            self._news.set()
            time.sleep(GATHER)
        self._stopping.set()
        self._news.set()
        if self._thread is not None:
            self._thread.join(max(0.1, deadline - time.monotonic()))
        self._connection.close()
        return not self._pending

    @property
    def thread(self) -> Repeating | None:
        """What does its work, once it has begun."""
        return self._thread

    @property
    def _writes(self) -> bool:
        """Whether there is a thread that writes: it ends where the database refuses for good."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def _pending(self) -> bool:
        return bool(
            self._ended
            or self._completed
            or self._waiting
            or self._batches
            or self._told
            or self._deciding
        )

    def _step(self) -> None:
        if not self._batches:
            if not self._waiting:
                self._news.wait(self._decide())
            if self._stopping.is_set() and not self._pending:
                return
            self._news.clear()
            self._gather()
            self._batches = self._ripe()
            if not self._batches:
                time.sleep(GATHER)
        if self._batches:
            self._write()
            self._decide()

    def _decide(self) -> float | None:
        """Look at nodes of flows that are due; in how many seconds others are."""
        while self._told:
            self._deciding.add((self._told.popleft(),))
        if not self._deciding:
            return None
        return self._deciding.step(idle=not self._leases.held_jobs, hurry=self._hurry)

    def _gather(self) -> None:
        now = time.monotonic()
        while self._ended:
            settlement = self._ended.popleft()
            self._of(settlement.lease, now).settlements.append(settlement)
        lease, keep, node, jobs = None, None, None, list[JobId]()
        take = self._completed.popleft
        while self._completed:
            job: ClaimedJob = take()
            kept: float = take()
            member: NodeId | None = take()
            # Nearly always it is as the one before.
            if job.lease != lease or kept != keep or member != node:
                lease, keep, node = job.lease, kept, member
                jobs = self._of(lease, now).completed.setdefault((keep, node), [])
            jobs.append(job.id)

    def _of(self, lease: LeaseId, now: float) -> Ended:
        ended = self._waiting.get(lease)
        if ended is None:
            ended = self._waiting[lease] = Ended(now)
        return ended

    def _ripe(self) -> list[Batch]:
        due = time.monotonic() - (0 if self._hurry else HOLD * self._share.busy)
        batches: dict[SessionId, Batch] = {}
        count = 0
        for lease, ended in list(self._waiting.items()):
            if ended.since <= due or len(ended) >= self._leases.left(lease):
                session = self._leases.session(lease)
                batches.setdefault(session, Batch(session, [], [])).add(lease, ended)
                del self._waiting[lease]
                count += len(ended)
                if count >= LARGEST:
                    break
        return list(batches.values())

    def _write(self) -> None:
        session, settlements, completions = self._batches[0]
        began = time.monotonic()
        # Plain jobs have no context, so they cannot have told anything.
        self._note_writer.before(self._connection, settlements)
        try:
            settled = self._connection.run(self._store.settle(session, settlements, completions))
        except StoreUnavailable:
            self._uncertain = True
            raise
        del self._batches[0]
        self._deciding.add(arrived(settlements, completions) - settled.decided)
        self._switchboard.settled()
        for settlement in settlements:
            self._leases.settled(settlement.lease)
        for lease, _, jobs, _ in completions:
            self._leases.settled(lease, len(jobs))
        if settled:
            self._report(settled)
        self._uncertain = False
        self._events.following(settled.following)
        if self._events.wanted(SettlementsWritten):
            count = len(settlements) + sum(len(alike.jobs) for alike in completions)
            written = count - len(settled)
            self._events.emit(SettlementsWritten(written, time.monotonic() - began))

    def _report(self, refused: list[JobId]) -> None:
        if self._uncertain:
            logger.info("%d settlements were written before the connection broke", len(refused))
            return
        self._events.emit(LeasesLost(tuple(refused)))
