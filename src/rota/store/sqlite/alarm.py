"""A flag to sleep on, where a write to a file and a bell end the sleep, too.

inotify (Linux) tells of each write, whoever makes it: another process, or a connection of a
caller's. Its weakness: it tells of the first page of a commit, not of its end, and readers see the
commit only after the log was flushed. So a write is a reason to look often for a while, no more.
Rota's own writers ring when they are done (`Gate.ring`), which is a reason to look once, and at
once. Where nothing can be heard (other systems, folders of another machine, too many watches),
looking now and then must do.
"""

import sys
import threading
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rota.store.sqlite.ear import Ear

SHORT = 0.002
"""Seconds up to which writes do not end a sleep: after one the commit is still under way."""


class Sound(Enum):
    """What ended a sleep."""

    NONE = "time, or another thread"
    WRITE = "a write to the file: a commit has begun"
    BELL = "the bell: a commit is done"


class Alarm(threading.Event):
    """A flag that any thread may set, and that one thread sleeps on.

    Args:
        file: Writes to it end a sleep, where the system tells of them.
        bell: The file that rings when it is read.
    """

    def __init__(self, file: str, bell: str) -> None:
        super().__init__()
        self._file = file
        self._bell = bell
        self._lock = threading.Lock()
        self._ear: Ear | None = None
        self._closed = False

    def set(self) -> None:
        """End the sleep, or the next one."""
        super().set()
        with self._lock:
            if self._ear is not None:
                self._ear.wake()

    def sleep(self, timeout: float) -> Sound:
        """Sleep until the flag is set, something is heard, or for `timeout` seconds.

        What has been heard since the last time that something was.
        """
        ear = self._listening()
        if ear is None:
            self.wait(timeout)
            return Sound.NONE
        listen = ear.wait_shortly if timeout < SHORT else ear.wait
        if self.is_set() or not listen(timeout):
            return Sound.NONE
        with self._lock:
            return Sound.NONE if self._closed else self._heard(ear)

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
                    self._ear = Ear(self._file, self._bell)
        return self._ear

    def _heard(self, ear: "Ear") -> Sound:
        written, rung, gone = ear.heard()
        if gone:  # whoever opens the database again makes another file
            self._forget()
        if rung:
            return Sound.BELL
        return Sound.WRITE if written else Sound.NONE

    def _forget(self) -> None:
        ear, self._ear = self._ear, None
        if ear is not None:
            ear.close()
