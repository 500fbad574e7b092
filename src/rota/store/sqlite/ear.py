"""Hearing writes to a file, and a bell, by inotify; this module can be imported on Linux alone."""

import os
from contextlib import suppress
from math import ceil
from select import POLLIN, poll, select

from inotify_simple import INotify, flags  # type: ignore[import-untyped]

GONE = flags.DELETE_SELF | flags.MOVE_SELF | flags.IGNORED

FEW = 1024
"""The files of a process up to which `select` can wait, which counts in microseconds."""


class Ear:
    """Hears of writes to a file, of the bell (reads of another file), and of other threads."""

    def __init__(self, file: str, bell: str) -> None:
        self._threads = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._writes = INotify()
        self._bell = INotify()
        try:
            self._writes.add_watch(file, flags.MODIFY | flags.DELETE_SELF | flags.MOVE_SELF)
            with suppress(OSError):  # no gate, no bell
                self._bell.add_watch(bell, flags.ACCESS | flags.DELETE_SELF | flags.MOVE_SELF)
        except BaseException:
            self.close()
            raise
        self._but_writes = [self._threads, self._bell.fileno()]
        self._poll = poll()
        for file_number in (*self._but_writes, self._writes.fileno()):
            self._poll.register(file_number, POLLIN)

    def wait(self, timeout: float) -> bool:
        """Wait for a sound, in milliseconds; whether there was one."""
        return bool(self._poll.poll(ceil(timeout * 1000)))

    def wait_shortly(self, timeout: float) -> bool:
        """Wait for the bell or another thread, in microseconds where the system can."""
        if max(self._but_writes) < FEW:
            return bool(select(self._but_writes, (), (), timeout)[0])
        return self.wait(timeout)

    def heard(self) -> tuple[bool, bool, bool]:
        """Whether the file was written to, the bell has rung, and one of the files is gone."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._threads)
        writes, rings = _seen(self._writes), _seen(self._bell)
        return (
            bool(writes & flags.MODIFY),
            bool(rings & flags.ACCESS),
            bool((writes | rings) & GONE),
        )

    def wake(self) -> None:
        """End the wait of another thread."""
        os.eventfd_write(self._threads, 1)

    def close(self) -> None:
        """Hear no more."""
        os.close(self._threads)
        self._writes.close()
        self._bell.close()


def _seen(notices: INotify) -> int:
    seen = 0
    for event in notices.read(timeout=0):
        seen |= event.mask
    return seen
