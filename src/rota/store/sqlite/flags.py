"""The flags of this process's sleeping workers, and of callers that wait for jobs, by file."""

import threading
from collections import defaultdict


class Flags:
    """Sets the flags of threads that sleep on a database when there may be something to do."""

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
"""The flags of workers that sleep."""

WAITING = Flags()
"""The flags of callers that wait for the end of jobs."""
