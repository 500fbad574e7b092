"""What stops a long command before its end: Ctrl-C, SIGTERM, or a terminal that goes away."""

import contextlib
import signal
from collections.abc import Iterator
from typing import NoReturn

from rota.terminal.exits import INTERRUPTED, Failure

# Windows has no SIGHUP.
ENDS = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]


class Stopped(KeyboardInterrupt):
    """A signal came that means the same as Ctrl-C; its name is the argument."""


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Let SIGTERM, and a terminal that goes away, be like Ctrl-C: what was made is removed.

    Raises:
        Failure: It was stopped; says by what.
    """

    def stop(number: int, _frame: object) -> NoReturn:
        for one in ENDS:
            # A service manager may send several; the first one is enough, and what is being
            # removed must be removed to its end. Ctrl-C still ends that.
            signal.signal(one, signal.SIG_IGN)
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
    """What it was."""
    return str(error) if isinstance(error, Stopped) else "Ctrl-C"
