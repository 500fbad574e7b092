"""The child's side of a process executor: reads a job, runs it, writes what came of it.

Everything on the pipe is JSON. The child ends when its parent does, however that happens.
"""

import contextlib
import importlib
import multiprocessing
import os
import signal
import threading
import time
from contextvars import copy_context
from datetime import datetime
from multiprocessing.connection import Connection, wait
from traceback import format_exception
from typing import Any

import msgspec

from rota.app.context import Context
from rota.app.task import Task
from rota.model.chosen import retries
from rota.model.job import ClaimedJob
from rota.model.notes import Note, Notes
from rota.outcome import Again, Discard, Outcome, Retry, Snooze
from rota.worker.undone import undone

PACE = 0.25
"""Seconds between two reports of what a handler tells; the worker writes them more rarely still."""


class Order(msgspec.Struct):
    """What the parent wants done: a job, and where to find its task."""

    module: str
    qualname: str
    job: ClaimedJob


class Answer(msgspec.Struct):
    """What came of it. `kind` is returned, again, snooze, retry, discard, raised, hopeless or unstorable.

    `hopeless`: it raised what its task does not retry, which only the child can tell.

    Before that there may be answers of the kind told, with what the handler tells of its run.
    """

    kind: str
    result: str | None = None
    after: float | None = None
    at: datetime | None = None
    exception: str = ""
    message: str = ""
    traceback: str = ""
    notes: list[Note] = []


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


def main(pipe: Connection, module: str) -> None:
    """Import `module`, say so with an empty message, then serve orders until the pipe closes."""
    # A Ctrl-C at the terminal reaches the whole group; the parent decides when children end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(ValueError, OSError):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    decoder = msgspec.json.Decoder(Order)
    teller = Teller(pipe)
    # Imported here, so that no job's time is spent on it; what is wrong with it, the first order says.
    with contextlib.suppress(Exception):
        importlib.import_module(module)
    with contextlib.suppress(EOFError, BrokenPipeError):
        pipe.send_bytes(b"")
        while True:
            # In a context of its own: jobs do not see each other's variables.
            order = decoder.decode(pipe.recv_bytes())
            teller.answer(copy_context().run(serve, order, teller.notes))


def serve(order: Order, notes: Notes) -> Answer:
    """Run one job; what its handler tells goes to `notes`."""
    try:
        task = find(order.module, order.qualname)
    except BaseException as error:  # noqa: BLE001 - as below
        return _raised("raised", error)
    try:
        args, kwargs = task.codec.decode(order.job.args)
        if task.codec.context_parameter:
            kwargs[task.codec.context_parameter] = Context(order.job, notes=notes)
        value = task.function(*args, **kwargs)
    except Outcome as outcome:
        return _outcome(outcome)
    except BaseException as error:  # noqa: BLE001 - SystemExit too is an attempt that failed
        return _failed(task, error)
    return _returned(task, value)


def find(module: str, qualname: str) -> Task[..., Any, Any]:
    """Import the task's module and take the task from it."""
    found: Any = importlib.import_module(module)
    for name in qualname.split("."):
        found = getattr(found, name)
    if not isinstance(found, Task):
        message = f"{module}.{qualname} is no task in this process"
        raise TypeError(message)
    return found


def _returned(task: Task[..., Any, Any], value: object) -> Answer:
    if isinstance(value, Outcome):
        return _outcome(value)
    if (left := undone(value)) is not None:
        return _failed(task, left)
    if not task.store_result:
        return Answer("returned")
    try:
        return Answer("returned", result=task.result_codec.encode(value))
    except Exception as error:  # noqa: BLE001 - reported to the parent
        return _raised("unstorable", error)


def _failed(task: Task[..., Any, Any], error: BaseException) -> Answer:
    return _raised("raised" if retries(task.retry, error) else "hopeless", error)


def _outcome(outcome: Outcome) -> Answer:
    match outcome:
        case Snooze():
            return Answer("snooze", after=outcome.after)
        case Again():
            return Answer("again", after=outcome.after, at=outcome.at)
        case Retry():
            return Answer("retry", after=outcome.after, message=outcome.reason)
        case Discard():
            return Answer("discard", message=outcome.reason)
        case _:
            return _raised("raised", outcome)


def _raised(kind: str, error: BaseException) -> Answer:
    cls = type(error)
    return Answer(
        kind,
        exception=f"{cls.__module__}.{cls.__qualname__}",
        message=str(error).encode("utf-8", "backslashreplace").decode(),
        traceback="".join(format_exception(error)).encode("utf-8", "backslashreplace").decode(),
    )


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
