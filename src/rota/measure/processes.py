"""Processes of a measurement: a parent that asks, children that report what they have seen.

A child reports only when it is asked, so watching costs little. It ignores Ctrl-C and its like,
which may be sent to all processes at once and which the parent handles; it ends when the parent
is gone.
"""

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from rota.errors import RotaError

T = TypeVar("T")

LONGEST_END = 60.0
"""Seconds that a child has for its end."""

# Windows has no SIGHUP.
UNHEARD = {signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])}
"""Signals that end the benchmark; `timeout` and service managers send them to all its processes."""


class ProcessEnded(RotaError):
    """A process of the benchmark ended by itself."""


@dataclass(frozen=True, slots=True)
class Last(Generic[T]):
    """The last report of a child."""

    told: T


class Child(Generic[T]):
    """A process that runs `main(line, *args)`; `main` says `line.ready()` before it begins."""

    def __init__(self, main: Callable[..., None], *args: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_run, args=(theirs, main, args), daemon=False)
        try:
            with _deaf():
                self._process.start()
            theirs.close()
        except BaseException:
            # A Ctrl-C came meanwhile, and only this object knows the process.
            if self._process.pid is not None:
                self.kill()
            raise

    def prepared(self) -> None:
        """Wait until the child is ready to begin."""
        self._receive()

    def go(self) -> None:
        """Let the child begin."""
        self._send("go")

    def begun(self) -> None:
        """Wait until the child has begun."""
        self._receive()

    def ask(self) -> None:
        """Ask what happened since the last time."""
        self._send("tell")

    def told(self) -> T:
        """The answer."""
        answer: T = self._receive()
        return answer

    @property
    def alive(self) -> bool:
        """Whether the child has not ended."""
        return self._process.is_alive()

    def stop(self) -> None:
        """Tell the child to end in order."""
        self._send("stop")

    def ended(self) -> list[T]:
        """Wait for the child's end; returns its last report, and an answer not yet received."""
        told: list[T] = []
        deadline = time.monotonic() + LONGEST_END
        while self._pipe.poll(max(0.0, deadline - time.monotonic())):
            answer = self._receive()
            if isinstance(answer, Last):
                told.append(answer.told)
                self._process.join(max(0.0, deadline - time.monotonic()))
                return told
            told.append(answer)
        raise ProcessEnded(f"a process of the benchmark did not end within {LONGEST_END:g} seconds")

    def kill(self) -> None:
        """Kill the child; fine if it has ended."""
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def _send(self, word: str) -> None:
        # If the child is gone, the next receive says so.
        with contextlib.suppress(OSError):
            self._pipe.send(word)

    def _receive(self) -> Any:
        try:
            return self._pipe.recv()
        except (EOFError, OSError) as error:
            raise ProcessEnded(
                "a process of the benchmark ended by itself; its messages are above"
            ) from error


class Group(Generic[T]):
    """Children that all run `main(line, plan)`; leaving the `with` block ends them all."""

    def __init__(self, main: Callable[..., None], plan: object, count: int) -> None:
        self._main = main
        self._plan = plan
        self._count = count
        self._children: list[Child[T]] = []

    def __enter__(self) -> Self:
        """Start the processes; they wait for `go`."""
        try:
            for _ in range(self._count):
                self._children.append(Child(self._main, self._plan))
            for child in self._children:
                child.prepared()
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._kill()

    def _kill(self) -> None:
        while self._children:
            self._children.pop().kill()

    def go(self) -> None:
        """Let all begin at once; returns when all have begun."""
        for child in self._children:
            child.go()
        for child in self._children:
            child.begun()

    def replace(self) -> int:
        """Replace the processes that have ended by themselves; returns their number."""
        gone = [number for number, child in enumerate(self._children) if not child.alive]
        for number in gone:
            self._children[number].kill()
            self._children[number] = Child(self._main, self._plan)
        for number in gone:
            self._children[number].prepared()
            self._children[number].go()
            self._children[number].begun()
        return len(gone)

    def tell(self) -> list[T]:
        """What each child has seen since the last time."""
        for child in self._children:
            child.ask()
        return [child.told() for child in self._children]

    def stop(self) -> list[T]:
        """Let all end in order; returns what they have seen since the last time."""
        for child in self._children:
            child.stop()
        told = [answer for child in self._children for answer in child.ended()]
        self._kill()
        return told


class Line(Generic[T]):
    """The child's end."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._listener: threading.Thread | None = None

    def ready(self) -> None:
        """Say that the child is ready, and wait for the word to begin."""
        self._pipe.send("ready")
        if self._pipe.recv() != "go":
            raise SystemExit

    def begin(self, take: Callable[[], T], stop: Callable[[], None]) -> None:
        """Say that the child has begun, and answer from now on with what `take` gives."""
        self._pipe.send("begun")
        self._listener = threading.Thread(target=self._listen, args=(take, stop), daemon=True)
        self._listener.start()

    def _listen(self, take: Callable[[], T], stop: Callable[[], None]) -> None:
        try:
            while self._pipe.recv() == "tell":
                self._pipe.send(take())
        except (EOFError, OSError):
            os._exit(1)  # the parent is gone
        stop()

    def end(self, told: T) -> None:
        """Send the last report, once the child was told to stop."""
        if self._listener is not None:
            self._listener.join()
        self._pipe.send(Last(told))


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Processes that are started in the block ignore `UNHEARD`, even while they start."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    # The first process of multiprocessing starts this tracker, too, which would unblock signals.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, UNHEARD)
    try:
        yield
    finally:
        # A signal that came meanwhile is delivered now.
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def emptied(values: list[T]) -> list[T]:
    """Take everything out of a list to which other threads go on adding."""
    found = values[:]
    del values[: len(found)]
    return found


def _run(pipe: Connection, main: Callable[..., None], args: tuple[Any, ...]) -> None:
    for number in UNHEARD:
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(EOFError, BrokenPipeError):
        main(Line(pipe), *args)
