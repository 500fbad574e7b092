"""The flags on which the threads of this process sleep, by database file."""

import threading
from collections import defaultdict


class Flags:
    """Flags to be set when there may be something to do in a database."""

    def __init__(self) -> None:
        self._flags: dict[str, set[threading.Event]] = defaultdict(set)
        self._lock = threading.Lock()

    def add(self, path: str, flag: threading.Event) -> None:
        """Set this flag from now on."""
        with self._lock:
            self._flags[path].add(flag)

    def remove(self, path: str, flag: threading.Event) -> None:
        """Leave this flag alone from now on."""
        with self._lock:
            self._flags[path].discard(flag)
            if not self._flags[path]:
                del self._flags[path]

    def wake(self, path: str) -> None:
        """Set the flags of a database."""
        if path in self._flags:
            with self._lock:
                for flag in self._flags.get(path, ()):
                    flag.set()


WORKERS = Flags()
"""Of workers that have nothing to do."""

WAITERS = Flags()
"""Of threads that wait for the end of jobs."""
