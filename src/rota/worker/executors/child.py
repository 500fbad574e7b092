"""The child's side of a process executor: reads a job, runs it, writes what came of it.

Everything on the pipe is JSON. The child ends when its parent does, however that happens. The
lifespans of children are entered before the first job, in the thread that runs the jobs, and left
when the parent closes the pipe or the child has done all it may; a child that is killed leaves
none.
"""

import contextlib
import importlib
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from contextvars import copy_context
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import msgspec

from rota.app.lifespan import made
from rota.app.resources import OF_CHILDREN, Resources
from rota.errors import ConfigError
from rota.model.notes import Notes
from rota.worker.executors.remote import Answer, Order, Place, raised, serve

logger = logging.getLogger("rota")

PACE = 0.25
"""Seconds between two reports of what a handler tells; the worker writes them more rarely still."""


@dataclass(frozen=True, slots=True)
class OfApp:
    """What is of one app.

    Attributes:
        lifespans: In the order in which they are entered.
        tasks: Those whose handlers are given resources.
    """

    lifespans: tuple[Place, ...] = ()
    tasks: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Setting:
    """What all children of a worker have in common.

    Attributes:
        apps: What is of each app.
        max_jobs: After how many jobs a child ends.
        max_memory: The bytes of memory above which a child ends after its job.
        begin: Called first of all.
    """

    apps: tuple[OfApp, ...] = ()
    max_jobs: int | None = None
    max_memory: int | None = None
    begin: Callable[[], object] | None = None


class Teller:
    """Sends what handlers tell to the parent: at once, then a few times a second at the most."""

    def __init__(self, pipe: Connection) -> None:
        self.notes = Notes(self._news)
        self._pipe = pipe
        # Two threads write to the pipe: the teller's, and the main thread, which answers.
        self._lock = threading.Lock()
        self._told = threading.Event()
        self._started = False

    def answer(self, answer: Answer) -> None:
        """Send what is still to be told, and then the answer."""
        self._send()
        with self._lock:
            self._pipe.send_bytes(msgspec.json.encode(answer))

    def _news(self) -> None:
        if not self._started:
            # Only where a handler tells anything.
            self._started = True
            threading.Thread(target=self._tell, name="rota-teller", daemon=True).start()
        self._told.set()

    def _tell(self) -> None:
        with contextlib.suppress(OSError):
            while self._told.wait():
                self._told.clear()
                self._send()
                time.sleep(PACE)

    def _send(self) -> None:
        with self._lock:
            if notes := self.notes.take():
                self._pipe.send_bytes(msgspec.json.encode(Answer("told", notes=notes)))


def main(pipe: Connection, module: str, setting: Setting) -> None:
    """Import `module`, enter the lifespans, say so, then serve orders until the pipe closes."""
    # A Ctrl-C at the terminal reaches the whole group; the parent decides when children end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(ValueError, OSError):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    teller = Teller(pipe)
    if setting.begin is not None:
        setting.begin()
    # Imported here, so that no job's time is spent on it; what is wrong with it, the first order
    # says.
    with contextlib.suppress(Exception):
        importlib.import_module(module)
    stack = ExitStack()
    try:
        # Its worker may go, even before it has read the last answer.
        with contextlib.suppress(EOFError, ConnectionError):
            resources = [Resources(OF_CHILDREN) for _ in setting.apps]
            ready = Answer("ready")
            for app, own in zip(setting.apps, resources, strict=True):
                if ready.kind == "ready":
                    ready = enter(app, own, stack)
            teller.answer(ready)
            if ready.kind == "ready":
                _serve_all(pipe, teller, resources, setting)
        stack.close()
    except Exception:
        logger.exception("a lifespan of a child process raised an exception as it ended")


def enter(app: OfApp, resources: Resources, stack: ExitStack) -> Answer:
    """Enter the lifespans of an app, which yield its resources; what to tell the parent."""
    try:
        for place in app.lifespans:
            lifespan = made(place.find(), place.name, 0)
            try:
                manager: Any = lifespan.manager(resources)
                if not isinstance(manager, AbstractContextManager):
                    message = (
                        f"lifespan {place.name!r} is async, but a child process has no event loop"
                    )
                    raise ConfigError(message)  # noqa: TRY301 - told like the others
                resources.add(place.name, stack.enter_context(manager))
            except ConfigError:
                raise
            except Exception as error:  # noqa: BLE001 - told to the parent
                return raised("broken", lifespan.failed(error))
        for place in app.tasks:
            resources.of(place.find())
    except Exception as error:  # noqa: BLE001 - told to the parent
        return raised("unfit", error)
    return Answer("ready")


def _serve_all(
    pipe: Connection, teller: Teller, resources: Sequence[Resources], setting: Setting
) -> None:
    """Serve orders, until the pipe closes or the child has done all it may."""
    decoder = msgspec.json.Decoder(Order)
    jobs, last = 0, False
    while not last:
        order = decoder.decode(pipe.recv_bytes())
        # In a context of its own: jobs do not see each other's variables.
        answer = copy_context().run(
            serve, order, teller.notes, resources[order.app], interrupts=True
        )
        jobs += 1
        if setting.max_memory is not None:
            answer.memory = memory()
            last = answer.memory > setting.max_memory
        answer.last = last = last or jobs == setting.max_jobs
        teller.answer(answer)


def memory() -> int:
    """Bytes of memory that this process has in use; where the system does not tell, had at the most."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak
    return pages * os.sysconf("SC_PAGE_SIZE")


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
