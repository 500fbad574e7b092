"""Waiting for the end of jobs: one thread and one connection for all the waits of an app.

The thread exists only while the app waits for a job, and a moment longer. It hears from the store
which jobs have ended, and looks for these alone. What it may not have heard of, because the job
ended in the moment it began to listen, or notifications do not arrive, it finds by looking now and
then: soon after the wait has begun, then ever more rarely, down to once a second for all waits
together.

To follow a job is to wait for any change of it. All that follow jobs in an app look at the same
moments, in two statements for all these jobs, so that a thousand cost the server hardly more than
one.
"""

import logging
import os
import threading
import time
from collections.abc import Collection
from typing import TYPE_CHECKING

from rota.errors import JobNotFound, RotaError, StoreUnavailable
from rota.model.job import LARGEST_ID, JobId, JobRecord, possible
from rota.model.notes import with_notes

if TYPE_CHECKING:
    from rota.store.connections import Listener
    from rota.store.protocol import Store

logger = logging.getLogger("rota")

SHORTEST = 0.02
"""Seconds from a wait's beginning to the second look; then twice as long each time."""

LONGEST = 1.0
"""Seconds between two looks at the most."""

PACE = 0.5
"""Seconds between two looks at followed jobs; handlers' notes are stored about once a second."""

SOONEST = 0.1
"""Seconds at least between looks at a followed job, whatever is heard: on SQLite each commit is."""

LINGER = 1.0
"""Seconds for which the thread listens on after the last wait."""

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0
"""Seconds between two tries while the database cannot be reached."""

PATIENCE = 10.0
"""Seconds for which a database may be away before the waits end with an error."""


class Wait:
    """A wait for one job. `ended` becomes its record, or an error."""

    __slots__ = ("due", "ended", "job", "pause", "soonest")

    def __init__(self, job: JobId) -> None:
        from concurrent.futures import Future  # here: most programs never wait

        self.job = job
        self.ended: Future[JobRecord] = Future()
        # An asyncio task that is cancelled must not cancel what the thread is about to set.
        self.ended.set_running_or_notify_cancel()
        self.due = 0.0
        self.pause = SHORTEST
        self.soonest = 0.0


class Following(Wait):
    """A wait for a job that is other than it is `known` to be. `ended` gets its notes, too.

    `looked` is when it was known to be so.
    """

    __slots__ = ("known",)

    def __init__(self, job: JobId, known: JobRecord | None, looked: float | None) -> None:
        super().__init__(job)
        self.known = known
        if looked is not None:
            self.rest(looked)

    def rest(self, looked: float) -> None:
        """Look again at the next of the moments at which all look that follow jobs."""
        self.due = (looked // PACE + 1) * PACE
        self.soonest = looked + SOONEST


class Waiting:
    """The waits for jobs of one store."""

    def __init__(self, store: "Store") -> None:
        self._store = store
        self._lock = threading.Lock()
        self._waits: dict[JobId, list[Wait]] = {}
        self._listener: Listener | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        self._pid = os.getpid()

    def begin(self, job: JobId) -> Wait:
        """Wait for a job from now on; `end` it, whatever happens."""
        wait = Wait(job)
        self._begin(wait)
        return wait

    def follow(self, job: JobId, known: JobRecord | None, looked: float | None) -> Following:
        """Wait for a change of a job from now on; `end` it, whatever happens."""
        wait = Following(job, known, looked)
        self._begin(wait)
        return wait

    def _begin(self, wait: Wait) -> None:
        with self._lock:
            if self._pid != os.getpid():
                # Threads do not come along into a forked process, nor do the waits.
                self._waits, self._listener, self._pid = {}, None, os.getpid()
            self._closed = False
            self._waits.setdefault(wait.job, []).append(wait)
            if self._listener is None:
                self._listener = self._store.listener()
                self._thread = threading.Thread(
                    target=self._serve, args=(self._listener,), name="rota-waiting", daemon=True
                )
                self._thread.start()
            else:
                self._listener.wake()

    def end(self, wait: Wait) -> None:
        """Wait no more."""
        with self._lock:
            waits = self._waits.get(wait.job, [])
            if wait in waits:
                waits.remove(wait)
            if not waits:
                self._waits.pop(wait.job, None)

    def close(self) -> None:
        """Listen no more. Waits that are left end with an error."""
        if self._pid != os.getpid():
            return
        with self._lock:
            self._closed = True
            listener, thread = self._listener, self._thread
            if listener is not None:
                listener.wake()
        if thread is not None:
            thread.join(PATIENCE)

    # The thread ------------------------------------------------------------------------------

    def _serve(self, listener: "Listener") -> None:
        idle = time.monotonic()
        lost: float | None = None
        while True:
            now = time.monotonic()
            with self._lock:
                if self._waits:
                    idle = now
                if self._closed or now - idle >= LINGER:
                    # A wait that begins from here on starts another thread.
                    self._listener = self._thread = None
                    left, self._waits = self._waits, {}
                    break
            try:
                self._step(listener, idle)
                lost = None
            except RotaError as error:
                lost = now if lost is None else lost
                if not isinstance(error, StoreUnavailable) or now - lost >= PATIENCE:
                    self._fail(error)
                listener.connection.close()
                time.sleep(min(LONGEST_PAUSE, max(FIRST_PAUSE, now - lost)))
            except Exception as error:
                logger.exception("waiting for jobs failed")
                self._fail(error)
                time.sleep(FIRST_PAUSE)
        listener.close()
        closed = StoreUnavailable("the app was closed while a call waited for a job")
        for wait in (wait for waits in left.values() for wait in waits):
            wait.ended.set_exception(closed)

    def _step(self, listener: "Listener", idle: float) -> None:
        """Look for the jobs whose turn it is, or sleep."""
        if listener.listen():
            self._hurry(None)
        now = time.monotonic()
        with self._lock:
            waits = [wait for waits in self._waits.values() for wait in waits]
        next_due = min((wait.due for wait in waits), default=idle + LINGER)
        if next_due > now:
            self._hurry(listener.wait(next_due - now))
            return
        due = [wait for wait in waits if wait.due <= now]
        records = listener.connection.run(self._store.get(sorted({wait.job for wait in due})))
        followed = sorted({wait.job for wait in due if isinstance(wait, Following)})
        # After the jobs: if one has ended, its notes are complete.
        notes = listener.connection.run(self._store.notes(followed)) if followed else {}
        found = {record.id: with_notes(record, notes.get(record.id, ())) for record in records}
        self._tell({wait.job for wait in due}, found, frozenset(followed))

    def _hurry(self, jobs: Collection[JobId] | None) -> None:
        """Look at these jobs now; at all of them, if `None`."""
        with self._lock:
            for job in self._waits if jobs is None else self._waits.keys() & set(jobs):
                for wait in self._waits[job]:
                    wait.due = min(wait.due, wait.soonest)

    def _tell(
        self, due: Collection[JobId], records: dict[JobId, JobRecord], followed: Collection[JobId]
    ) -> None:
        """End the waits whose job has ended, or is gone, or has changed; the others look again later.

        `followed`: of which jobs the records have their notes.
        """
        now = time.monotonic()
        with self._lock:
            for job in due:
                record = records.get(job)
                left: list[Wait] = []
                for wait in self._waits.pop(job, ()):
                    if record is None:
                        wait.ended.set_exception(not_found(job))
                    elif isinstance(wait, Following) and job not in followed:
                        left.append(wait)  # it began meanwhile
                    elif record.state.finished or (
                        isinstance(wait, Following) and record != wait.known
                    ):
                        wait.ended.set_result(record)
                    else:
                        left.append(wait)
                        _later(wait, now)
                if left:
                    self._waits[job] = left

    def _fail(self, error: Exception) -> None:
        """End all waits with this error."""
        with self._lock:
            waits, self._waits = self._waits, {}
        for wait in (wait for those in waits.values() for wait in those):
            wait.ended.set_exception(error)


def _later(wait: Wait, now: float) -> None:
    if isinstance(wait, Following):
        wait.rest(now)
        return
    wait.due = now + wait.pause
    wait.pause = min(2 * wait.pause, LONGEST)


def not_found(job: JobId) -> JobNotFound:
    """The error about a job that is not there."""
    if not possible(job):
        message = f"no job can have this id: ids are whole numbers from 1 to {LARGEST_ID}"
        return JobNotFound(message)
    return JobNotFound(f"job {job} does not exist (it may have been deleted)")
