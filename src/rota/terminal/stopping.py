"""Stopping a long command early: by Ctrl-C, SIGTERM, or a closed terminal."""

import contextlib
import signal
from collections.abc import Iterator
from typing import NoReturn

from rota.terminal.exits import INTERRUPTED, Failure

# Windows has no SIGHUP.
ENDS = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]


class Stopped(KeyboardInterrupt):
    """A signal that means the same as Ctrl-C; its name is the argument."""


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Let SIGTERM and SIGHUP stop the block as Ctrl-C does, so that it cleans up.

    Raises:
        Failure: The block was stopped; the message names the signal.
    """

    def stop(number: int, _frame: object) -> NoReturn:
        for end in ENDS:
            # A service manager may send several; the first is enough, and must not disturb the
            # cleaning up. Ctrl-C still does.
            signal.signal(end, signal.SIG_IGN)
        raise Stopped(signal.Signals(number).name)

    before = {number: signal.signal(number, stop) for number in ENDS}
    try:
        yield
    except KeyboardInterrupt as error:
        raise Failure(f"stopped by {name(error)}", INTERRUPTED) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def name(error: KeyboardInterrupt) -> str:
    """The name of what stopped the command."""
    return str(error) if isinstance(error, Stopped) else "Ctrl-C"
