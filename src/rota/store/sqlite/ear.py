"""Hearing of writes to a file, by inotify. On Linux alone: elsewhere this module cannot be imported."""

import os
from contextlib import suppress
from math import ceil
from select import POLLIN, poll

from inotify_simple import INotify, flags  # type: ignore[import-untyped]

GONE = flags.DELETE_SELF | flags.MOVE_SELF | flags.IGNORED


class Ear:
    """Hears of writes to a file, and of other threads."""

    def __init__(self, file: str) -> None:
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._notices = INotify()
        try:
            self._notices.add_watch(file, flags.MODIFY | flags.DELETE_SELF | flags.MOVE_SELF)
        except BaseException:
            self.close()
            raise
        self._poll = poll()
        self._poll.register(self._notices.fileno(), POLLIN)
        self._poll.register(self._bell, POLLIN)

    def wait(self, timeout: float) -> bool:
        """Wait for a sound; whether there was one."""
        return bool(self._poll.poll(ceil(timeout * 1000)))

    def heard(self) -> tuple[bool, bool]:
        """Whether the file was written to, and whether it is gone."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._bell)
        seen = 0
        for event in self._notices.read(timeout=0):
            seen |= event.mask
        return bool(seen & flags.MODIFY), bool(seen & GONE)

    def wake(self) -> None:
        """End the wait of another thread."""
        os.eventfd_write(self._bell, 1)

    def close(self) -> None:
        """Hear no more."""
        os.close(self._bell)
        self._notices.close()
