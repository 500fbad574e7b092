"""Async subscribers to events: where they run, and the line in which events wait for each.

A subscriber is called with one event after another, in the order in which they happened. It runs on
the loop of the worker that runs in this process (the one that started last). Where none does, as in
a process that only enqueues, a thread `rota-events` has a loop for all of them.

What can fail. A subscriber that raises is logged and called with the next event. One that is slower
than the events has a line of `LONGEST`; what comes then is not told to it, and logged. A worker
that stops waits `PATIENCE` for what is in the lines, and so does a process that ends; the rest is
not told, and logged as well.
"""

import asyncio
import atexit
import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

logger = logging.getLogger("rota")

LONGEST = 10_000
"""Events that wait for one subscriber, at most."""

PATIENCE = 5.0
"""Seconds that a worker which stops, or a process which ends, waits for async subscribers."""

REMINDER = 60.0
"""Seconds between two warnings of the same subscriber, whose line is full."""

Handler = Callable[[Any], Coroutine[Any, Any, None]]


class Line:
    """The events that wait for one subscriber; a plain subscriber itself, which puts them there."""

    def __init__(self, handler: Handler, home: "AsyncSubscribers") -> None:
        self._handler = handler
        self._home = home
        self._lock = threading.Lock()
        self._waiting: deque[object] = deque()
        self._lost = 0
        self._warned = -REMINDER
        self._running = False
        self._task: asyncio.Task[None] | None = None

    def __call__(self, event: object) -> None:
        """Take an event in, in whatever thread it happens."""
        with self._lock:
            if len(self._waiting) >= LONGEST:
                self._lost += 1
                self._warn()
                return
            self._waiting.append(event)
            if self._running:
                return
            self._running = True
        self._start()

    def running_on(self, loop: asyncio.AbstractEventLoop) -> "asyncio.Task[None] | None":
        """The task that calls the subscriber on this loop, while there are events for it."""
        task = self._task
        return task if task is not None and task.get_loop() is loop and not task.done() else None

    def give_up(self) -> None:
        """Call the subscriber no more with what has happened so far."""
        with self._lock:
            left = len(self._waiting)
            self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
        logger.warning(
            "async subscriber %s took too long; it was stopped, and %d event(s) were not delivered to it",
            self._name, left,
        )  # fmt: skip

    @property
    def _name(self) -> str:
        return str(getattr(self._handler, "__qualname__", self._handler))

    def _start(self) -> None:
        while True:
            loop = self._home.loop()
            try:
                loop.call_soon_threadsafe(self._begin, loop)
            except RuntimeError:
                # It has closed; the home is another one now.
                self._home.leave(loop)
            else:
                return

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        self._task = loop.create_task(self._serve(loop))

    async def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        """Call the subscriber with what waits, until nothing does, or its home is another loop."""
        try:
            while self._home.loop() is loop:
                with self._lock:
                    if not self._waiting:
                        self._running = False
                        return
                    event = self._waiting.popleft()
                await self._tell(event)
        except asyncio.CancelledError:
            # Given up, or the loop ends; what has come since then starts anew.
            with self._lock:
                self._running = again = bool(self._waiting)
            if again:
                self._start()
            raise
        self._start()

    async def _tell(self, event: object) -> None:
        try:
            await self._handler(event)
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            logger.exception("a subscriber to %s failed", type(event).__name__)

    def _warn(self) -> None:
        if (now := time.monotonic()) >= self._warned + REMINDER:
            self._warned = now
            logger.warning(
                "async subscriber %s is slower than its events: %d wait, and %d were not delivered to it",
                self._name, len(self._waiting), self._lost,
            )  # fmt: skip


class AsyncSubscribers:
    """Those of one app, and the loop on which they run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: list[Line] = []
        self._workers: list[asyncio.AbstractEventLoop] = []
        self._own: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def line(self, handler: Handler) -> Line:
        """A line for one more subscriber."""
        line = Line(handler, self)
        self._lines.append(line)
        return line

    def loop(self) -> asyncio.AbstractEventLoop:
        """Where they run now."""
        with self._lock:
            return self._workers[-1] if self._workers else self._own_loop()

    def leave(self, loop: asyncio.AbstractEventLoop) -> None:
        """They run on this loop no more."""
        with self._lock, contextlib.suppress(ValueError):
            self._workers.remove(loop)

    @asynccontextmanager
    async def hosted(self) -> AsyncIterator[None]:
        """Run them on the running loop while the block runs, and finish at its end."""
        loop = asyncio.get_running_loop()
        with self._lock:
            self._workers.append(loop)
        try:
            yield
        finally:
            await self.finish()
            self.leave(loop)
            # What has come meanwhile moves.
            await self.finish()

    async def finish(self) -> None:
        """Wait until no event waits on the running loop; give up after `PATIENCE`."""
        loop, deadline = asyncio.get_running_loop(), time.monotonic() + PATIENCE
        while self._lines:
            # What has just been put in gets its task.
            await asyncio.sleep(0)
            tasks = [
                (line, task) for line in self._lines if (task := line.running_on(loop)) is not None
            ]
            left = deadline - time.monotonic()
            if not tasks or left <= 0:
                break
            await asyncio.wait([task for _, task in tasks], timeout=left)
        else:
            return
        for line, _ in tasks:
            line.give_up()
        await asyncio.sleep(0)

    def close(self) -> None:
        """Wait for what the thread has to tell, if there is one. Blocks, for `PATIENCE` at the most."""
        own = self._own
        if own is None or self._thread in (None, threading.current_thread()):
            return
        with contextlib.suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self.finish(), own).result(PATIENCE + 1)

    def _own_loop(self) -> asyncio.AbstractEventLoop:
        # A process that was forked has no such thread.
        if self._own is None or self._thread is None or not self._thread.is_alive():
            self._own = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._own.run_forever, name="rota-events", daemon=True
            )
            self._thread.start()
            atexit.register(self.close)
        return self._own
