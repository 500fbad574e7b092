"""A thread that repeats one step until it is told to stop, whatever the database does."""

import logging
import threading
from collections.abc import Callable

from rota.errors import RotaError
from rota.events import Events, StoreLost, StoreRecovered

logger = logging.getLogger("rota")

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0
"""Seconds between two tries while the database cannot be reached."""


def repeat(
    name: str, step: Callable[[], None], stopping: threading.Event, events: Events
) -> threading.Thread:
    """Start a thread that calls `step` again and again until `stopping` is set.

    A step waits by itself. An error of Rota's own tree is reported once and the step tried again after growing
    pauses; any other exception is a defect of Rota's and is logged with its traceback, and the
    thread goes on: a worker must not lose its heartbeat to a bug elsewhere.
    """

    def run() -> None:
        pause = 0.0
        while not stopping.is_set():
            try:
                step()
            except RotaError as error:
                if not pause:
                    logger.warning("%s: %s", name, error)
                    events.emit(StoreLost(error))
                pause = min(max(pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
                stopping.wait(pause)
            except Exception:
                logger.exception("%s failed", name)
                stopping.wait(LONGEST_PAUSE)
            else:
                if pause:
                    logger.warning("%s: the database answers again", name)
                    events.emit(StoreRecovered())
                pause = 0.0

    thread = threading.Thread(target=run, name=f"rota-{name}", daemon=True)
    thread.start()
    return thread
