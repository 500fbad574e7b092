"""Turns: where a worker runs only so many jobs of a queue at once.

A worker in which no queue has a concurrency of its own has no `Turns`, and does nothing of what is
here. Where there is one, it is asked from two threads:

- The claimer asks how much `room` a queue has: as many jobs as may run, and about a tenth of a
  second's work at the rate of the moment beyond these. So it holds no jobs that others could run.
- The runners, on the event loop, ask before each job whether it may start. A job that may not is
  held here, out of the way of others, until a job of its queue ends. That makes the number exact,
  whatever was claimed.

Each thread writes numbers of its own, and reads the other's. A change of the settings makes a new
`Turns`. It has no room until the runners have adopted it, which is when all that was claimed before
has reached them.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain

from rota.model.job import ClaimedJob, JobId


class Turns:
    """Which jobs may start in the queues that have a concurrency.

    Args:
        most: For each of them, how many jobs may run at once.
        prefetch: How many jobs of one queue may be held beyond those, at the most.
        wake: Called when there is room again in a queue that had too little for the last claim.
    """

    def __init__(self, most: Mapping[str, int], prefetch: int, wake: Callable[[], None]) -> None:
        self.most = dict(most)
        self._prefetch = prefetch
        self._wake = wake
        # The event loop's.
        self._adopted = False
        self._running: dict[str, set[JobId]] = {queue: set() for queue in most}
        self._held: dict[str, deque[ClaimedJob]] = {queue: deque() for queue in most}
        self._ended: Counter[str] = Counter()
        self.held = 0
        # The claimer's.
        self._claimed: Counter[str] = Counter()
        self._ahead = dict.fromkeys(most, 0)
        self._measured: Counter[str] = Counter()
        self._short: Collection[str] = ()

    # The claimer asks ------------------------------------------------------------------------

    def room(self) -> dict[str, int]:
        """How many jobs of each queue to claim; none while more than half of what is ahead is left."""
        # Before anything is read: what ends from now on wakes the claimer.
        self._short = self.most
        return {queue: self._room(queue) for queue in self.most}

    def took(self, jobs: Iterable[ClaimedJob], room: Mapping[str, int]) -> None:
        """Count what a claim with so much room has given."""
        taken = self.count(jobs)
        # The other queues had no more, and are announced when they have.
        self._short = {queue for queue, size in room.items() if taken[queue] >= size}

    def count(self, jobs: Iterable[ClaimedJob]) -> Counter[str]:
        """Count jobs that are about to be delivered, by queue."""
        taken = Counter(job.queue for job in jobs if job.queue in self.most)
        self._claimed.update(taken)
        return taken

    def measure(self, span: float, time_ahead: float) -> None:
        """Claim ahead what is done in `time_ahead` seconds, as fast as in the last `span`."""
        for queue in self.most:
            # The first ones to end in this time may have run for long: they say nothing of a rate.
            quick = max(0, self._ended[queue] - self._measured[queue] - self.most[queue])
            self._measured[queue] = self._ended[queue]
            self._ahead[queue] = min(int(quick / span * time_ahead), self._prefetch)

    def rest(self) -> None:
        """Nothing is left to run: claim nothing ahead of what comes, which may be slow."""
        for queue in self.most:
            self._measured[queue] = self._ended[queue]
            self._ahead[queue] = 0

    def _room(self, queue: str) -> int:
        if not self._adopted:
            return 0
        most, ahead = self.most[queue], self._ahead[queue]
        outstanding = self._claimed[queue] - self._ended[queue]
        if ahead and outstanding > most + ahead // 2:
            return 0
        return max(0, most + ahead - outstanding)

    # The runners ask -------------------------------------------------------------------------

    def adopt(self, inbox: deque[ClaimedJob], running: Iterable[ClaimedJob]) -> list[ClaimedJob]:
        """Begin with what the worker has; takes from the inbox, and gives, what is too much."""
        here = [job for job in running if job.queue in self.most]
        for job in here:
            self._running[job.queue].add(job.id)
        left = {queue: most - len(self._running[queue]) for queue, most in self.most.items()}
        excess: list[ClaimedJob] = []
        for job in [inbox.popleft() for _ in range(len(inbox))]:
            if job.queue in left:
                left[job.queue] -= 1
                if left[job.queue] < 0:
                    excess.append(job)
                    continue
                here.append(job)
            inbox.append(job)
        self._ended.subtract(job.queue for job in here)
        self._measured = self._ended.copy()
        self._adopted = True
        self._wake()
        return excess

    def take(self, job: ClaimedJob) -> bool:
        """Whether a job may start now; it is held if not."""
        if (most := self.most.get(job.queue)) is None:
            return True
        running = self._running[job.queue]
        if len(running) < most:
            running.add(job.id)
            return True
        self._held[job.queue].append(job)
        self.held += 1
        # It takes no place from others, so there may be room for these.
        self._wake()
        return False

    def give(self, job: ClaimedJob) -> ClaimedJob | None:
        """A job has ended; the next one of its queue, if one was held."""
        queue = job.queue
        if queue not in self.most:
            return None
        self._running[queue].discard(job.id)
        self._ended[queue] += 1
        if queue in self._short and self._room(queue):
            self._wake()
        if self._held[queue] and len(self._running[queue]) < self.most[queue]:
            self.held -= 1
            return self._held[queue].popleft()
        return None

    def pull(self, jobs: Collection[JobId]) -> list[ClaimedJob]:
        """Take these jobs out, where they are held."""
        pulled = [job for job in chain(*self._held.values()) if job.id in jobs]
        for job in pulled:
            self._held[job.queue].remove(job)
        self.held -= len(pulled)
        return pulled

    def drop(self, inbox: Iterable[ClaimedJob] = ()) -> list[ClaimedJob]:
        """Forget these jobs, which will not start, and all that are held; gives the latter."""
        held = list(chain(*self._held.values()))
        for waiting in self._held.values():
            waiting.clear()
        self.held = 0
        self.forget(chain(inbox, held))
        return held

    def forget(self, jobs: Iterable[ClaimedJob]) -> None:
        """Count off jobs that will not start."""
        self._ended.update(job.queue for job in jobs if job.queue in self.most)
