"""The session's deadline: a thread that looks at the clock while another one waits for the database.

A renewal may hang: in a network that drops packets, in a server that does not answer, in a name
that is not resolved. Others take the jobs over when the session's time is up, whatever this worker
waits for.
"""

import threading
import time
from collections.abc import Callable

from rota.worker.loop import PATIENCE


class Deadline:
    """Calls `passed` at the deadline, once the worker has tried to renew for `patience` seconds.

    A worker that was frozen finds the deadline passed when it wakes up. Its next renewal, which is
    about to be sent, may find the session alive: hence the patience.
    """

    def __init__(self, passed: Callable[[], None], patience: float) -> None:
        self._miss = passed
        self._patience = patience
        self._changed = threading.Condition()
        self._at: float | None = None
        self._began: float | None = None
        self._closed = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look."""
        self._thread = threading.Thread(target=self._watch, name="rota-deadline", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(PATIENCE)

    def set(self, at: float | None) -> None:
        """The deadline, by the monotonic clock; `None` while there is no session."""
        with self._changed:
            self._at = at
            self._changed.notify()

    @property
    def passed(self) -> bool:
        """Whether there is no session, or its time is up, by this machine's clock."""
        at = self._at
        return at is None or time.monotonic() >= at

    def begin(self) -> None:
        """The worker tries to renew; again, if `end` was not called since the last time."""
        if self._began is None:
            with self._changed:
                self._began = time.monotonic()
                self._changed.notify()

    def end(self) -> None:
        """The database has answered."""
        self._began = None

    def _watch(self) -> None:
        while self._wait():
            self._miss()

    def _wait(self) -> bool:
        """Wait until the deadline has passed; false where there is nothing more to wait for."""
        with self._changed:
            while not self._closed:
                left = self._left()
                if left is not None and left <= 0:
                    self._at = None
                    return True
                self._changed.wait(left)
        return False

    def _left(self) -> float | None:
        """Seconds until the deadline counts as passed; `None`: it cannot pass now."""
        if self._at is None or self._began is None:
            return None
        return max(self._at, self._began + self._patience) - time.monotonic()
