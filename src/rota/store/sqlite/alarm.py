"""A flag to sleep on, where a write to a file ends the sleep, too.

inotify (Linux) tells of each write, whoever makes it: another process, or a connection of a caller's.
Its weakness: it tells of the first page of a commit, not of its end, and readers see the commit only
after the log was flushed. So what is heard is a reason to look often for a while, no more; and where
nothing can be heard (other systems, folders of another machine, too many watches), looking now and
then must do.
"""

import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rota.store.sqlite.ear import Ear

SHORT = 0.002
"""Seconds of a sleep that is not worth listening in: `poll` counts in milliseconds."""


class Alarm(threading.Event):
    """A flag that any thread may set, and that one thread sleeps on.

    Args:
        file: Writes to it end a sleep, where the system tells of them.
    """

    def __init__(self, file: str) -> None:
        super().__init__()
        self._file = file
        self._lock = threading.Lock()
        self._ear: Ear | None = None
        self._closed = False

    def set(self) -> None:
        """End the sleep, or the next one."""
        super().set()
        with self._lock:
            if self._ear is not None:
                self._ear.wake()

    def sleep(self, timeout: float) -> bool:
        """Sleep until the flag is set, the file is written to, or for `timeout` seconds.

        Whether the file has been written to since the last time that this was true.
        """
        ear = self._listening()
        if ear is None or timeout < SHORT:
            self.wait(timeout)
            return False
        if self.is_set() or not ear.wait(timeout):
            return False
        with self._lock:
            return not self._closed and self._heard(ear)

    def close(self) -> None:
        """Listen no more."""
        with self._lock:
            self._closed = True
            self._forget()

    def _listening(self) -> "Ear | None":
        if self._ear is None and sys.platform == "linux":
            from rota.store.sqlite.ear import Ear  # here: few processes sleep

            with self._lock, suppress(OSError):  # no such file yet, or too many watches
                if not self._closed:
                    self._ear = Ear(self._file)
        return self._ear

    def _heard(self, ear: "Ear") -> bool:
        written, gone = ear.heard()
        if gone:  # whoever opens the database again makes another file
            self._forget()
        return written

    def _forget(self) -> None:
        ear, self._ear = self._ear, None
        if ear is not None:
            ear.close()
