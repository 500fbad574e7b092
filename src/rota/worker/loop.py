"""A thread that repeats one step until it is told to stop, whatever the database does."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rota.dispatch import Events
from rota.errors import (
    ConfigError,
    PoolerUnannounced,
    RotaError,
    SchemaIncomplete,
    SchemaMissing,
    SchemaOutdated,
    SchemaTooNew,
)
from rota.events import StoreLost, StoreRecovered
from rota.store.connections import Connection

logger = logging.getLogger("rota")

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0
"""Seconds between two tries while the database cannot be reached."""

REMINDER = 60.0
"""Seconds after which the same trouble is told again."""

LASTING = (ConfigError, SchemaIncomplete, SchemaMissing, SchemaOutdated, SchemaTooNew)
"""Errors that do not pass by themselves: no such right, no such table."""

FINAL = PoolerUnannounced
"""An error that comes now and then, whatever is put right, until the worker gets another URL."""

PATIENCE = 2.0
"""Seconds for which a worker that stops waits for a statement, then for its being cancelled."""


class Repeating(threading.Thread):
    """The thread of `repeat`, as others see it.

    Attributes:
        trouble: What its last step ended with, if that was an exception.
        since: When the step that it takes now began, by the monotonic clock.
    """

    trouble: Exception | None = None
    since: float = 0.0


def finish(thread: threading.Thread, connection: Connection) -> None:
    """Wait until a thread that was told to stop has ended, and what it runs in the database.

    What takes longer is cancelled; a connection of which nothing comes back then is cut, so that no
    lock and no dead network keeps a worker from ending.
    """
    for cut in (False, True):
        thread.join(PATIENCE)
        if not thread.is_alive():
            return
        connection.interrupt(cut=cut)
    thread.join(PATIENCE)


@contextmanager
def hurried(connection: Connection) -> Iterator[None]:
    """Cut the connection off where the block takes long: a worker that ends has said goodbye then."""
    hurry = threading.Timer(2 * PATIENCE, connection.interrupt, kwargs={"cut": True})
    hurry.start()
    try:
        yield
    finally:
        hurry.cancel()


def repeat(
    name: str,
    step: Callable[[], None],
    stopping: threading.Event,
    events: Events,
    refuse: Callable[[RotaError], None],
) -> Repeating:
    """Start a thread that calls `step` again and again until `stopping` is set.

    A step waits by itself. If the database refuses the first one for good, or any one for the URL's
    sake, `refuse` is called and the thread ends: it would never do any good. After a step that
    succeeded, an error of Rota's own tree is reported, now and every minute, and the step tried
    again after growing pauses, because its cause may be put right. Any other exception is a defect
    of Rota's and is logged with its traceback, and the thread goes on: a worker must not lose its
    heartbeat to a bug elsewhere.
    """

    def run() -> None:
        pause = remind = 0.0
        succeeded = False
        while not stopping.is_set():
            thread.since = time.monotonic()
            try:
                step()
            except RotaError as error:
                thread.trouble = error
                if isinstance(error, FINAL if succeeded else LASTING):
                    refuse(error)
                    return
                if not pause or time.monotonic() >= remind:
                    events.emit(StoreLost(error, name))
                    remind = time.monotonic() + REMINDER
                pause = min(max(pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
                stopping.wait(pause)
            except Exception as error:
                thread.trouble = error
                logger.exception("%s failed", name)
                stopping.wait(LONGEST_PAUSE)
            else:
                if pause:
                    events.emit(StoreRecovered(name))
                thread.trouble = None
                pause = 0.0
                succeeded = True

    thread = Repeating(target=run, name=f"rota-{name}", daemon=True)
    thread.start()
    return thread
