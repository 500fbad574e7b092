"""Stopping on SIGTERM and SIGINT: the first one asks, the second one does not wait."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def on_signals(
    loop: asyncio.AbstractEventLoop, first: Callable[[], None], second: Callable[[], None]
) -> Iterator[None]:
    """Call `first` at the first signal and `second` at each further one, on the event loop.

    Outside the main thread nothing is called: Python tells only the main thread of signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    calls = [second, first]

    def handle() -> None:
        (calls.pop() if len(calls) > 1 else second)()

    installed = []
    previous = {}
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, handle)
            installed.append(number)
        except NotImplementedError:
            # Windows: no handlers on the loop, but the classic ones work in the main thread.
            previous[number] = signal.signal(number, lambda *_: loop.call_soon_threadsafe(handle))
    try:
        yield
    finally:
        for number in installed:
            loop.remove_signal_handler(number)
        for number, handler in previous.items():
            signal.signal(number, handler)
