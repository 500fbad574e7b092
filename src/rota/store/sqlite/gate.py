"""The gate: a lock file next to the database, at which writers take turns.

SQLite's own way of waiting for a lock is to sleep and try again, longer each time, so a process
that writes all the time starves the others (4000 to 0 was measured for two workers). A writer
therefore holds this lock while it holds SQLite's. It also keeps two of Rota's connections from
writing and checkpointing at the same instant, which loses commits in SQLite before 3.51.3
(sqlite.org/wal.html, "the WAL-reset bug").

A writer that leaves can ring, too: sleepers of other processes hear that its commit is done
(`alarm`). The bell is a byte in the lock file, which is read: that changes nothing on the disk, and
the system tells of it.

Correctness never depends on either. A holder that was stopped must not stop the others, so after
`PATIENCE` a writer goes on without the gate, and hardly waits for it at all until it has got it
again. The kernel opens the gate when its holder dies. Where there are no such locks, or the folder
is read-only, there is no gate.
"""

import os
import sys
import time
from contextlib import suppress

if sys.platform != "win32":
    import fcntl

SUFFIX = "-gate"
"""What the lock file's name has more than that of the database."""

PATIENCE = 0.5
"""Seconds to wait at the gate."""

STUCK_PATIENCE = 0.005
"""The same, after a wait in vain."""

NAP = 0.0005
"""Seconds between two tries."""


class Gate:
    """The gate as one connection sees it. Not for several threads at once."""

    def __init__(self, database: str) -> None:
        self._path = database + SUFFIX
        self._file: int | None = None
        self._pid = 0
        self._patience = PATIENCE
        self.held = False

    def enter(self) -> None:
        """Wait for a turn, but not for long."""
        file = self._open()
        if file is None or self.held:
            return
        deadline = time.monotonic() + self._patience
        while not self._lock(file):
            if time.monotonic() >= deadline:
                self._patience = STUCK_PATIENCE
                return
            time.sleep(NAP)
        self._patience = PATIENCE
        self.held = True

    def leave(self) -> None:
        """Let the next writer through."""
        if self.held and self._file is not None and self._pid == os.getpid():
            self._unlock(self._file)
        self.held = False

    def ring(self) -> None:
        """Let those hear who sleep beside this file."""
        if self._file is not None and self._pid == os.getpid():
            with suppress(OSError):
                os.pread(self._file, 1, 0)

    def close(self) -> None:
        """Forget the lock file."""
        self.leave()
        if self._file is not None:
            # In a forked child this closes a copy, which unlocks nothing.
            os.close(self._file)
            self._file = None

    def _open(self) -> int | None:
        if self._pid != os.getpid():
            # After a fork the file is shared with the parent, and so are its locks.
            self.held = False
            self.close()
            self._pid = os.getpid()
        if self._file is None and sys.platform != "win32":
            try:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
                if not os.fstat(self._file).st_size:
                    os.pwrite(self._file, b"\n", 0)
            except OSError:
                return self._file
        return self._file

    if sys.platform != "win32":

        def _lock(self, file: int) -> bool:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            except OSError:  # a file system without such locks
                return True
            return True

        def _unlock(self, file: int) -> None:
            fcntl.flock(file, fcntl.LOCK_UN)
    else:

        def _lock(self, _file: int) -> bool:
            return True

        def _unlock(self, _file: int) -> None:
            pass
