"""The claimer: a thread that keeps the runners in work without hoarding it.

It asks for as many jobs as may run at once and, beyond these, for about a tenth of a second's work
at the rate of the moment: a worker with slow jobs holds none that others could run. Half of this it
asks for at a time, so that the database makes one claim while the jobs of the last one run. Where
claims take long, since other connections have their turns first, it is more: else claims would
become the smaller the longer they wait, and more of them wait. Where batches are gathered it asks
for what is missing in them, too.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rota.config import WorkerConfig
from rota.dispatch import Events
from rota.errors import LeaseLost
from rota.events import JobsClaimed, LimitsReached
from rota.model.job import ClaimedJob, SessionId
from rota.store.connections import Wake, Waker
from rota.store.protocol import Store
from rota.worker.leases import Leases
from rota.worker.loop import Repeating, finish, hurried, repeat
from rota.worker.session import Session
from rota.worker.slots import Share
from rota.worker.suspects import LOOK, Suspects
from rota.worker.switchboard import Switchboard
from rota.worker.turns import Turns

PREFETCH_TIME = 0.1
"""Seconds of work that are claimed ahead, at the rate of the moment."""

CLAIMS_AHEAD = 4
"""The same in the time that claims take, where that is longer."""

LONGEST_PREFETCH = 0.3
"""Seconds of work that are claimed ahead at the most."""

FIRST_WINDOW = 0.002
"""Seconds over which the rate is measured after a rest, then twice as long each time up to
`PREFETCH_TIME`: a worker that wakes to a backlog is soon at its full rate."""

SHORTEST_NAP = 0.002
"""Seconds until the second look after the first one found nothing; then longer each time. The
first ones catch jobs that were being committed while this worker fell asleep."""

LATER = 0.02
"""Seconds after which a worker looks that stands by."""

BREATH = 0.0004
"""Seconds for which the claimer keeps still where it has just handed over all there was."""

LULL = 0.02
"""The same where the next commit wakes it: most often it does so before a look would be due."""

LONGER = 15
"""Where upkeep looks for jobs once a `poll`, this thread sleeps so many times longer."""


NOTHING: tuple[SessionId, list[ClaimedJob]] = (SessionId(0), [])
"""What the claimer keeps where it has handed over everything."""


class Measured(NamedTuple):
    """The beginning of the rate's measuring: when, how many jobs had ended, and how many ran."""

    at: float
    ended: int
    running: int


class Claimer:
    """Claims jobs of the session's tasks and delivers them to the event loop."""

    def __init__(
        self,
        store: Store,
        config: WorkerConfig,
        events: Events,
        *,
        session: Session,
        leases: Leases,
        switchboard: Switchboard,
        share: Share,
    ) -> None:
        self._store = store
        self._config = config
        self._share = share
        share.held = lambda: self.outstanding
        self._queues = list(config.queues)
        self._events = events
        self._session = session
        self._leases = leases
        self._switchboard = switchboard
        self._waker = store.waker(config.queues, session.tasks)
        self._connection = self._waker.connection
        self._stopping = threading.Event()
        self._thread: Repeating | None = None
        self._room = threading.Event()
        self._claimed = 0
        self._spare = 0
        self._ended = 0
        self._enough = 0
        self._nap = SHORTEST_NAP
        # Upkeep looks for jobs that no notification announced, and wakes this thread.
        looked_for = config.upkeep and not config.drain
        self._longest = config.poll * (LONGER if looked_for else 1)
        self._kept = NOTHING
        self._suspects = Suspects(store, leases)
        self._news = False
        self._doubtful = False
        self._turns: Turns | None = None
        self._new_turns: deque[Turns | None] = deque()
        self._looking_again = False
        self._ahead = 0.0
        self._window = FIRST_WINDOW
        self._measured = Measured(time.monotonic(), 0, 0)
        self._took = [0.0]

    def start(self) -> None:
        """Begin to claim."""
        self._thread = repeat(
            "claimer", self._step, self._stopping, self._events, self._switchboard.refuse
        )

    def stop(self) -> None:
        """Claim no more; returns when no claim is under way."""
        self._stopping.set()
        self._room.set()
        self._waker.wake()
        if self._thread is not None:
            finish(self._thread, self._connection)
            if not self._thread.is_alive():
                with hurried(self._connection):
                    self._waker.busy()
        self._pass_on()
        self._waker.close()

    @property
    def thread(self) -> Repeating | None:
        """What does its work, once it has begun."""
        return self._thread

    def free(self, count: int) -> None:
        """So many jobs have ended, or were dropped: there is room for others. Called on the loop."""
        self._ended += count
        # Woken for each, this thread and the loop's would take the interpreter from each other.
        if self.outstanding <= self._enough and not self._room.is_set():
            self._room.set()
        self._ask_for_the_end()

    def allow(self, count: int) -> None:
        """So many jobs may be held beyond the concurrency, for batches. Called on the loop."""
        more, self._spare = count > self._spare, count
        if more and not self._room.is_set():
            self._room.set()

    def wake(self) -> None:
        """Something may have become available."""
        self._waker.wake()

    def settled(self) -> None:
        """Jobs have been settled, whose leases are still known."""
        if self._leases.limited:
            # Other jobs may have waited for these to end.
            self.wake()
        else:
            self._ask_for_the_end()

    def _ask_for_the_end(self) -> None:
        """Where the queues are to be emptied, look whether that was the last job."""
        if self._config.drain and self.outstanding == 0:
            self.wake()

    def share(self, most: Mapping[str, int]) -> None:
        """From now on claim so many jobs of these queues as may run at once."""
        turns = Turns(most, self._config.prefetch, self._look_again) if most else None
        self._new_turns.append(turns)
        self._look_again()

    def _look_again(self) -> None:
        """There may be something to claim that there was no room for."""
        if not self._looking_again:
            self._looking_again = True
            self._room.set()
            self._waker.wake()

    def doubt(self) -> None:
        """There may be leases of the session that the worker does not know of: give them back."""
        self._doubtful = True

    def claimed(self) -> int:
        """How many jobs were claimed so far."""
        return self._claimed

    @property
    def outstanding(self) -> int:
        """Jobs that were claimed and have not ended."""
        return self._claimed - self._ended

    def _step(self) -> None:
        self._looking_again = False
        while self._new_turns:
            # The runners get them behind everything that was claimed before.
            self._pass_on()
            self._turns = self._new_turns.popleft()
            self._switchboard.adopt(self._turns)
        session = self._session.current
        if session is not None and self._suspects.apart(session):
            self._run_apart(session)
            return
        if session is not None:
            self._waker.belong(session)
        want = self._want()
        if session is None or want <= 0:
            self._pass_on()
            self._room.clear()
            if session is None or self._want() <= 0:
                self._room.wait(self._config.poll)
            return
        began = time.monotonic()
        self._share.asking(want)
        try:
            jobs = self._claim(session, want)
        except LeaseLost:
            self._await_session()
            return
        except Exception:
            # The claim may have been written all the same; then its jobs would run nowhere.
            self._doubtful = True
            raise
        finally:
            self._share.asking(0)
        seconds = time.monotonic() - began
        self._took.append(seconds)
        self._tell(jobs, seconds)
        if jobs:
            self._found(session, jobs, full=len(jobs) >= want)
        elif not self._suspects.apart(session):
            self._rest()

    def _run_apart(self, session: SessionId) -> None:
        """Begin the next lot of suspects once all else has been settled, and claim nothing."""
        self._pass_on()
        # Until then another worker shall hear of new jobs.
        self._waker.busy()
        try:
            lot = self._suspects.next_lot(self._connection)
        except LeaseLost:
            self._await_session()
            return
        if lot:
            if self._turns is not None:
                self._turns.count(lot)
            self._claimed += len(lot)
            self._switchboard.deliver(session, lot)
        self._stopping.wait(LOOK)

    def _await_session(self) -> None:
        """The session's own thread finds out that it is lost, and opens another one."""
        self._stopping.wait(self._config.heartbeat)

    def _claim(self, session: SessionId, want: int) -> list[ClaimedJob]:
        """Hand over what was found last while the database makes the next claim."""
        turns = self._turns
        room = None if turns is None else turns.room()
        try:
            if self._doubtful:
                self._pass_on()
                self._doubtful = False
                with self._leases.held(session) as held:
                    self._connection.run(self._store.release(session, held))
            claim = self._store.claim(
                session, self._queues, want, woken=self._news, most=room, tasks=self._session.tasks
            )
            self._news = False
            answer = self._connection.send(claim)
        finally:
            self._pass_on()
        claimed = answer()
        self._leases.add(session, claimed)
        if claimed:
            self._session.stir()
        jobs = self._suspects.set_aside(session, claimed)
        if turns is not None and room is not None:
            turns.took(jobs, room)
        return jobs

    def _tell(self, jobs: list[ClaimedJob], seconds: float) -> None:
        if self._events.wanted(JobsClaimed):
            self._events.emit(JobsClaimed(len(jobs), seconds))
        if self._events.wanted(LimitsReached):
            reached = tuple(job.filled for job in jobs if job.filled is not None)
            if reached:
                self._events.emit(LimitsReached(reached))

    def _found(self, session: SessionId, jobs: list[ClaimedJob], *, full: bool) -> None:
        self._claimed += len(jobs)
        self._nap = SHORTEST_NAP
        self._kept = session, jobs
        # One queue must not always come first among equal priorities.
        self._queues.append(self._queues.pop(0))
        if full:
            # So many were there that there are more: the next claim need not look first.
            self._news = True
            if not self._waker.busy():
                # The next claim has to wait for another connection; these jobs need not.
                self._pass_on()
        else:
            self._pass_on()
            if self._waker.heard() > LULL:
                self._sleep(LULL)
            else:
                # Else this thread would keep the interpreter while the loop's wants to start the
                # jobs.
                self._stopping.wait(BREATH)

    def _pass_on(self) -> None:
        """Deliver what the last claim found, if that was not done yet."""
        (session, jobs), self._kept = self._kept, NOTHING
        if jobs:
            self._switchboard.deliver(session, jobs)

    def _rest(self) -> None:
        if self._config.drain and self.outstanding == 0:
            self._switchboard.drain()
        # What was being committed while this worker fell asleep is ever less likely to be left.
        nap = min(max(self._nap, self._waker.heard()), self._longest)
        woken = self._sleep(nap)
        if self.outstanding == 0:
            # What comes next may be slow, whatever the last jobs were.
            self._ahead = 0.0
            if self._turns is not None:
                self._turns.rest()
            self._window = FIRST_WINDOW
            self._measured = Measured(time.monotonic(), self._ended, 0)
        self._nap = SHORTEST_NAP if woken else min(self._nap * 2, self._longest)

    def _sleep(self, seconds: float) -> bool:
        """Sleep for so long, unless news come; whether they have."""
        wakes = goes_first(self._waker, seconds, self._session.peers.stands_by)
        if wakes:
            self._news = True
            if not self._looking_again and any(wake.timed for wake in wakes):
                self._switchboard.nudge()
        return bool(wakes)

    def _want(self) -> int:
        """How many jobs to claim now: what may run, and half of what is ahead, unless more is held."""
        now = time.monotonic()
        since, ended, running = self._measured
        if now - since >= self._window:
            # Those that ran at its beginning may have run for long: they say nothing of a rate.
            quick = max(0, self._ended - ended - running)
            self._ahead = quick / (now - since) * self._prefetch_time()
            self._took = self._took[-1:]
            if self._turns is not None:
                self._turns.measure(now - since, PREFETCH_TIME)
            running = min(self.outstanding, self._config.concurrency)
            self._measured = Measured(now, self._ended, running)
            self._window = min(2 * self._window, PREFETCH_TIME)
        ahead = min(int(self._ahead), self._config.prefetch)
        # What is held for its queue's turn takes no place.
        held = 0 if self._turns is None else self._turns.held
        outstanding = self.outstanding - self._spare - held
        slots = self._share.most
        half = slots + ahead // 2
        # Of what is held for its queue's turn, no end of a job tells this thread.
        self._enough = half + self._spare if self._turns is None else self._claimed
        if ahead and outstanding > half:
            return 0
        most = half + self._spare + held
        return min(most, slots + ahead - outstanding)

    def _prefetch_time(self) -> float:
        """Seconds of work to claim ahead."""
        took = sum(self._took) / len(self._took)
        # Rates count what is claimed, though it has not begun.
        longest = PREFETCH_TIME if self._leases.limited else LONGEST_PREFETCH
        return min(max(PREFETCH_TIME, CLAIMS_AHEAD * took) * self._share.busy, longest)


def goes_first(waker: Waker, timeout: float, stands_by: Callable[[str], bool]) -> Sequence[Wake]:
    """Sleep; what woke this worker, if it is the one that claims.

    One that stands by looks `LATER`, as if its time were up, in case the first one could not. By
    then one look serves many wakes. The others sleep on: upkeep looks.
    """
    deadline = time.monotonic() + timeout
    while wakes := waker.wait(deadline - time.monotonic()):
        if any(wake.mine for wake in wakes):
            return wakes
        if any(stands_by(wake.queue) for wake in wakes):
            deadline = min(deadline, time.monotonic() + LATER)
    return ()
