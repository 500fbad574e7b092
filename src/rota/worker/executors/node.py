"""A node's side: runs a bundle's jobs one by one, in a thread or process of the cluster's engine.

Short jobs are over before anybody could ask. Where a bundle takes longer than a `PACE`, the worker
is told so: what has ended can be settled, and jobs that have not begun are given back, to run
elsewhere. A bundle is run only once: some engines run the tasks of a node that was lost a second
time, by themselves.
"""

import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context

import msgspec

from rota.app.context import Context
from rota.app.resources import OF_CLUSTER, Resources
from rota.model.notes import LINES, Note, Notes
from rota.worker.executors.bundle import Bundle, Ran, Report
from rota.worker.executors.remote import serve

logger = logging.getLogger("rota")

PACE = 0.25
"""Seconds between two reports."""

MEMORY = 10_000
"""So many keys of bundles are remembered that have begun."""

THIS = uuid.uuid4().hex
"""Which process this is. After a fork two may believe the same; nodes running jobs do not fork."""

_lock = threading.Lock()
_running: "dict[str, Running]" = {}
_begun: dict[str, None] = {}
_early: deque[tuple[str, int]] = deque(maxlen=MEMORY)
"""Requests to stop that came before their bundles."""

Tell = Callable[[bytes], object]
"""Sends a report to the worker while the bundle runs."""


class Refused(Exception):
    """A bundle that was meant for another process, or has begun before."""


def this() -> str:
    """Which process this is."""
    return THIS


def run(given: bytes, tell: Tell) -> bytes:
    """Run a bundle; the last report.

    Raises:
        Refused: It is not for this process, or has begun before.
    """
    bundle = msgspec.json.decode(given, type=Bundle)
    running = Running(bundle, tell)
    with _lock:
        if bundle.key in _begun or bundle.node not in {None, THIS}:
            raise Refused
        _remember(bundle.key)
        _running[bundle.key] = running
        early = [place for key, place in _early if key == bundle.key]
    for place in early:
        running.stop(place)
    try:
        with TELLER.telling_of(running):
            running.run()
    finally:
        with _lock:
            del _running[bundle.key]
    return msgspec.json.encode(running.last_report())


def stop(key: str, place: int) -> None:
    """Tell the handler of a job to stop, or do not begin it."""
    with _lock:
        running = _running.get(key)
        if key not in _begun:
            _early.append((key, place))
    if running is not None:
        running.stop(place)


def _remember(key: str) -> None:
    """Forget the oldest one for it. Called with the lock held."""
    _begun[key] = None
    if len(_begun) > MEMORY:
        del _begun[next(iter(_begun))]


class Running:
    """A bundle that is run here."""

    def __init__(self, bundle: Bundle, tell: Tell) -> None:
        self._bundle = bundle
        self._tell = tell
        self._notes = Notes(_nothing)
        self._lock = threading.Lock()
        self._telling = threading.Lock()
        self._waiting = deque(range(len(bundle.orders)))
        self._withdrawn: list[int] = []
        self._untold: list[Note] = []
        self._ran: list[Ran] = []
        self._place: int | None = None
        self._context: Context | None = None
        self._unwanted: set[int] = set()

    def run(self) -> None:
        """Run one job after another, until none is left."""
        if self._bundle.watched:
            self._tell(msgspec.json.encode(Report(self._bundle.key)))
        while True:
            with self._lock:
                self._context = None
                self._place = self._waiting.popleft() if self._waiting else None
                if (place := self._place) is None:
                    return
            began = time.perf_counter()
            # In a context of its own: jobs do not see each other's variables.
            answer = copy_context().run(
                serve,
                self._bundle.orders[place],
                self._notes,
                Resources(OF_CLUSTER),
                begins=self._begins,
            )
            with self._lock:
                self._ran.append(Ran(place, time.perf_counter() - began, answer))

    def stop(self, place: int) -> None:
        """Tell the handler of a job to stop, or do not begin it."""
        with self._lock:
            if place in self._waiting:
                self._waiting.remove(place)
                self._withdrawn.append(place)
            else:
                self._unwanted.add(place)
                if place == self._place and self._context is not None:
                    self._context.request_cancel()

    def report(self) -> Report:
        """What has happened since the last report; jobs that wait are withdrawn."""
        with self._lock:
            ran, self._ran = self._ran, []
            withdrawn, self._withdrawn = [*self._withdrawn, *self._waiting], []
            self._waiting.clear()
            notes = [*self._untold[-LINES:], *self._notes.take()]
            self._untold = []
            return Report(self._bundle.key, ran, withdrawn, notes, self._place)

    def last_report(self) -> Report:
        """The report after all others, with what could not be told before."""
        with self._telling:
            return self.report()

    def tell(self) -> None:
        """Send a report, if there is something to say."""
        with self._telling:
            report = self.report()
            if not (report.ran or report.withdrawn or report.notes):
                return
            try:
                self._tell(msgspec.json.encode(report))
            except Exception as error:  # noqa: BLE001 - the engine's own
                logger.warning("a report to the worker is sent later: %s", error)
                with self._lock:
                    self._ran[:0], self._withdrawn[:0] = report.ran, report.withdrawn
                    self._untold = report.notes

    def _begins(self, context: Context) -> None:
        with self._lock:
            self._context = context
            if self._place in self._unwanted:
                context.request_cancel()


class Teller:
    """A thread that tells of its bundles every `pace` seconds, while any runs."""

    def __init__(self, pace: float = PACE) -> None:
        self._pace = pace
        self._lock = threading.Lock()
        self._running: list[Running] = []
        self._news = threading.Event()
        self._begun = False

    @contextmanager
    def telling_of(self, running: Running) -> Iterator[None]:
        """While the bundle runs."""
        with self._lock:
            self._running.append(running)
            if not self._begun:
                self._begun = True
                threading.Thread(target=self._tell, name="rota-teller", daemon=True).start()
            self._news.set()
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(running)

    def _tell(self) -> None:
        while self._news.wait():
            time.sleep(self._pace)
            with self._lock:
                every = [*self._running]
                if not every:
                    self._news.clear()
            for running in every:
                running.tell()


TELLER = Teller()
"""The one of this process."""


def _nothing() -> None:
    """Nobody waits for a handler to tell something: it is taken with the next report."""
