"""The note writer: writes what handlers tell of their runs, about once a second for all of them.

It has a thread and a connection of its own, which begin with the first thing that any handler
tells. What a run told last is written by the settler, just before the settlement: where a job is
seen to have ended, all that it told is there, too. No job waits for its notes. Where the database
cannot be reached they are kept and written later; where it refuses them they are left, with a
warning.
"""

import logging
import threading
import time
from collections.abc import Iterable

from rota.dispatch import Events
from rota.errors import RotaError, StoreUnavailable
from rota.model.job import JobId, LeaseId
from rota.model.notes import Note, Notes
from rota.model.settlement import Settlement
from rota.model.states import Move
from rota.store.connections import Connection
from rota.store.protocol import Store
from rota.worker.loop import REMINDER, finish, repeat

logger = logging.getLogger("rota")

PACE = 1.0
"""Seconds between two writings."""


class NoteWriter:
    """Writes notes. Handlers tell `notes`, from any thread."""

    def __init__(self, store: Store, events: Events) -> None:
        self.notes = Notes(self._wake)
        self.used = False
        self._store = store
        self._events = events
        self._connection = store.connect("notes")
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        # The settler writes, too: newer notes must not overtake those taken but not yet written.
        self._writing = threading.Lock()
        self._unwritten: list[Note] = []
        self._reminded = -REMINDER

    def before(self, connection: Connection, settlements: Iterable[Settlement]) -> None:
        """Write what runs told, just before they are settled.

        Raises:
            StoreUnavailable: The database cannot be reached; it is written later.
        """
        if not self.used:
            return
        kept: list[tuple[JobId, LeaseId]] = []
        gone: list[tuple[JobId, LeaseId]] = []
        for settlement in settlements:
            vanishes = settlement.move in {Move.COMPLETE, Move.CANCEL} and not settlement.keep
            (gone if vanishes else kept).append((settlement.job, settlement.lease))
        self.notes.take(gone)
        self._write(connection, kept)

    def stop(self) -> None:
        """Write what is left, and end."""
        self._stopping.set()
        self._news.set()
        if self._thread is not None:
            finish(self._thread, self._connection)
            try:
                self._write(self._connection, None)
            except RotaError as error:
                logger.warning(
                    "the last progress and log lines of handlers were not written: %s", error
                )
        self._connection.close()

    def _wake(self) -> None:
        if self._thread is None:
            self.used = True
            self._thread = repeat("notes", self._step, self._stopping, self._events, self._refuse)
        self._news.set()

    def _step(self) -> None:
        if not self._unwritten:
            self._news.wait()
            self._news.clear()
        self._write(self._connection, None)
        self._stopping.wait(PACE)

    def _write(self, connection: Connection, runs: Iterable[tuple[JobId, LeaseId]] | None) -> None:
        with self._writing:
            self._unwritten += self.notes.take(runs)
            if not self._unwritten:
                return
            try:
                connection.run(self._store.note(self._unwritten))
            except StoreUnavailable:
                raise
            except RotaError as error:
                self._refuse(error)
            self._unwritten = []

    def _refuse(self, error: RotaError) -> None:
        now = time.monotonic()
        if now >= self._reminded + REMINDER:
            self._reminded = now
            logger.warning("progress and log lines of handlers cannot be written: %s", error)
