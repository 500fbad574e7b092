"""The thread that looks at the database, so that the screen never waits for it.

It reports from its thread: a `Snapshot`, that the database is `Lost`, or the answer to a request. A
thread that hangs in a dead connection is left behind when the program ends.
"""

import os
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rota.errors import RotaError, StoreUnavailable
from rota.store.protocol import Store
from rota.top.snapshot import Snapshot, look

PATIENCE = 1.0
"""Seconds that the thread has to end."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A look failed; the next may succeed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Paused:
    """A queue was paused or resumed, or was so already, or that failed."""

    queue: str
    paused: bool
    changed: bool
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Pause:
    """The request to pause a queue, or to resume it."""

    queue: str
    paused: bool


@dataclass(frozen=True, slots=True)
class Broken:
    """The thread has ended by an unforeseen error."""

    error: Exception


News = Snapshot | Lost | Paused | Broken


class Sees(Protocol):
    """What a looker looks with: one database, or several."""

    def look(self) -> Snapshot | Lost:
        """Look once."""
        ...

    def pause(self, request: Pause) -> Paused:
        """Pause a queue, or resume it."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...


class Eye:
    """Looks at one database on a connection of its own, in one thread at a time.

    Args:
        store: The database's.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._connection = store.connect("top")
        self._product = ""
        self._file: tuple[int, int] | None = None

    def look(self) -> Snapshot | Lost:
        """Look once."""
        try:
            self._find()
            if not self._product:
                self._product = self._connection.run(self._store.product())
            return look(self._store, self._connection, self._product)
        except RotaError as error:
            # Another server may answer next time.
            self._product, self._file = "", None
            with suppress(RotaError):
                self._connection.close()
            return Lost(str(error))

    def pause(self, request: Pause) -> Paused:
        """Pause a queue, or resume it."""
        change = self._store.pause if request.paused else self._store.resume
        try:
            self._find()
            changed = self._connection.run(change(request.queue))
        except RotaError as error:
            return Paused(request.queue, request.paused, changed=False, failure=str(error))
        return Paused(request.queue, request.paused, changed)

    def close(self) -> None:
        """Close its connection."""
        self._connection.close()

    def _find(self) -> None:
        """Check SQLite's file: a removed file would be read on, or made anew.

        Raises:
            StoreUnavailable: The file is missing.
        """
        path = getattr(self._store, "path", None)
        if path is None:
            return
        try:
            status = os.stat(Path(path))  # noqa: PTH116 - as the store's own connections do
        except OSError as error:
            message = f"the database file {path} is missing: {error.strerror}"
            raise StoreUnavailable(message) from error
        file = status.st_dev, status.st_ino
        if self._file not in {None, file}:
            self._connection.close()
        self._file = file


class Looker:
    """Looks every few seconds, and pauses and resumes queues on request.

    Args:
        eye: Used only by the looker's thread, once that has started.
        every: Seconds from the beginning of a look to that of the next look.
    """

    def __init__(self, eye: Sees, every: float) -> None:
        self.every = every
        self._eye = eye
        self._asked: queue.SimpleQueue[Pause | None] = queue.SimpleQueue()
        self._tell: Callable[[News], object] = lambda _: None
        self._thread = threading.Thread(target=self._run, name="looker", daemon=True)

    def start(self, tell: Callable[[News], object]) -> None:
        """Begin to look."""
        self._tell = tell
        self._thread.start()

    def pause(self, name: str, *, paused: bool) -> None:
        """Pause a queue or resume it, soon."""
        self._asked.put(Pause(name, paused))

    def stop(self) -> None:
        """End the thread; a thread that hangs is left behind."""
        self._asked.put(None)
        if self._thread.ident is not None:
            self._thread.join(PATIENCE)

    def _run(self) -> None:
        try:
            self._look_on()
        except Exception as error:  # noqa: BLE001 - the screen shall end with the thread, not freeze
            self._tell(Broken(error))
        with suppress(RotaError):
            self._eye.close()

    def _look_on(self) -> None:
        due = time.monotonic()
        while True:
            self._tell(self._eye.look())
            due = max(due + self.every, time.monotonic())
            try:
                request = self._asked.get(timeout=max(0.0, due - time.monotonic()))
            except queue.Empty:
                continue
            if request is None:
                break
            self._tell(self._eye.pause(request))
            due = time.monotonic()
